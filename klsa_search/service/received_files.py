"""Bodies of requests as temporary files, also those that a killed service has left behind.

Each is in a folder for it alone, which its service keeps locked. The system removes locks however a
process ends, so another service removes the folders without one.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Final

from starlette.requests import Request

from klsa_search.service.middleware.bodies import spool

_PREFIX: Final = "klsa-file-"
_NAME: Final = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
"""Name of a folder as `TemporaryDirectory` makes it, which only its user may read."""
_NEW_SECONDS: Final = 60.0  # age of a folder up to which its service may not have locked it yet


@asynccontextmanager
async def received(request: Request, name: str) -> AsyncIterator[Path]:
    """The body of a request as a temporary file of this name, alone in its folder."""
    with ExitStack() as stack:
        folder = await asyncio.to_thread(_locked_folder, stack)
        try:
            path = folder / name
            body = await asyncio.to_thread(path.open, "wb")
            try:
                await spool(request, body)
            finally:
                await asyncio.to_thread(body.close)
            yield path
        finally:
            await asyncio.to_thread(stack.close)


def _locked_folder(stack: ExitStack) -> Path:
    temporary = TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
    folder = Path(stack.enter_context(temporary))
    stack.callback(os.close, _lock(folder))
    return folder


def _lock(folder: Path) -> int:
    """Lock a folder, and return its descriptor; OSError if another process has locked it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def remove_abandoned() -> None:
    """Remove the files of services that were killed; nothing without a temporary folder."""
    try:
        paths = [path for path in Path(gettempdir()).iterdir() if _NAME.fullmatch(path.name)]
    except OSError:
        return
    for folder in paths:
        with suppress(OSError):  # of another user, in use, or removed meanwhile
            facts = folder.lstat()
            is_private = stat.S_IMODE(facts.st_mode) == stat.S_IRWXU
            if is_private and time.time() - facts.st_mtime > _NEW_SECONDS:
                descriptor = _lock(folder)
                try:
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(descriptor)
