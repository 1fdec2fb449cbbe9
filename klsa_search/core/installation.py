"""The installed package: its version, and the folder of its caches."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path

__version__ = version("klsa-search")


def cache_folder() -> Path | None:
    """Return the user's cache folder of klsa-search, which may be missing or read-only.

    None for a user without a home, for example in a container with any user ID.
    """
    try:
        return user_cache_path("klsa-search")
    except RuntimeError:  # neither HOME nor XDG_CACHE_HOME, and no entry of the user
        return None
