"""The HTTP service over the indexes of a directory.

`create_app` makes the application; `app` is the one with the settings of the environment, for any
server: `uvicorn klsa_search.service:app`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klsa_search.service.application import create_app
    from klsa_search.service.settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app"]


def __getattr__(name: str) -> Any:
    """Import a name when it is read, and create `app` then."""
    if name == "ServiceSettings":
        from klsa_search.service.settings import ServiceSettings

        return ServiceSettings
    if name in ("app", "create_app"):
        from klsa_search.service.application import create_app

        return create_app() if name == "app" else create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
