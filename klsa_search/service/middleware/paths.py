"""The path of a request within the application, whatever prefix it is served under."""

from __future__ import annotations

from starlette.types import Scope


def path_of(scope: Scope) -> str:
    """Return the path of a request without the prefix of a mount or of `root_path`.

    A proxy may have removed the prefix already.
    """
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :] or "/"
    return path
