"""Where collections that are known by name lie, unless the caller says otherwise."""

from __future__ import annotations

import os
from pathlib import Path


def collections_homes() -> list[Path]:
    """Return the folders that collections are looked for in, in this order.

    The folder that the environment variable `KLSA_COLLECTIONS` names, the folder shared/collections
    next to the working directory if it exists, and the user's cache, which `klsa-eval fetch` fills.
    """
    named = os.environ.get("KLSA_COLLECTIONS")
    shared = Path.cwd().parent / "shared" / "collections"
    return [
        *([Path(named)] if named else []),
        *([shared] if shared.is_dir() else []),
        cache_home(),
    ]


def cache_home() -> Path:
    """Return the folder that `klsa-eval fetch` fills unless the caller names another."""
    from platformdirs import user_cache_path

    return user_cache_path("klsa-search") / "collections"
