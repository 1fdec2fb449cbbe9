"""Compiled code on disk: one file a function and signature, named after what it was made of.

The folders are the one that `NUMBA_CACHE_DIR` names, `__pycache__` beside the source, and one in
the user's cache: code is read from any of them, and written to the first that can be written to.
Where there is none, every process compiles for itself, half a minute at its first query.

numba's own cache knows the file a function stands in and not what the function calls, and two
processes that compile at once may give one of its files the name of another.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import re
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from numba.core import config, serialize, sigutils
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from platformdirs import user_cache_path

from klsa_search.compiled.ingredients import Unknown, digest_of, digest_of_call

_DIGITS: Final = 20  # of a digest, in a name
_SUM: Final = hashlib.sha256().digest_size
_OPTIONS: Final = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")

# numba has no types:
_settings: Any = config
_to_bytes: Any = serialize.dumps
_rebuilt: Any = CompileResult._rebuild
_normal: Any = sigutils.normalize_signature


class KeptCode(_Cache):
    """Keeps what a dispatcher compiles, in place of numba's own cache.

    A file that is damaged, or cannot be read, is as good as none. What one version of the function
    left is removed when the next is kept.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        function = dispatcher.py_func
        plain = re.sub("[<>]", "", f"{function.__module__}.{function.__qualname__}")
        self._name = f"{plain}.{sys.implementation.cache_tag}-"
        self._source = Path(inspect.getfile(function)).absolute()
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """The folder that code is kept in; None where no folder can keep it."""
        return next((str(folder) for folder in self._folders() if _can_keep(folder)), None)

    def enable(self) -> None:
        """Read and write again."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write."""
        self._enabled = False

    def flush(self) -> None:
        """Remove all that is kept of the function."""
        for folder in self._folders():
            self._remove(folder, but="")

    def holds(self, signature: Any) -> bool:
        """Whether code is kept for a signature. Cost: a few ms."""
        context: Any = self._dispatcher.targetctx
        name = self._file(signature, context.codegen())
        return bool(name) and any((folder / name).is_file() for folder in self._folders())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Give the code kept for a signature, ready to run; None where there is none."""
        target_context.refresh()
        name = self._file(sig, target_context.codegen())
        for folder in self._folders() if name else ():
            try:
                kept = (folder / name).read_bytes()
            except OSError:
                continue
            content = kept[_SUM:]
            if hashlib.sha256(content).digest() == kept[:_SUM]:
                # Of a folder that runs code as numba's own cache does: who writes there is trusted.
                return _rebuilt(target_context, *pickle.loads(content))  # noqa: S301
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep code, in the first folder that can be written to."""
        name = self._file(sig, data.codegen)
        if not name or data.lifted or data.library.has_dynamic_globals:
            return
        content = _to_bytes(data._reduce())
        for folder in self._folders():
            fresh = folder / f"{name}.{uuid.uuid4().hex}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                fresh.write_bytes(hashlib.sha256(content).digest() + content)
                fresh.replace(folder / name)  # in one step: a reader sees all of it or nothing
            except OSError:
                with suppress(OSError):
                    fresh.unlink()
                continue
            self._remove(folder, but=name.rpartition("-")[0])
            return

    def _file(self, sig: Any, codegen: Any) -> str:
        """Name of the file of a signature; "" for what cannot be told from something else."""
        if not self._enabled:
            return ""
        signature, _ = _normal(sig)
        options = tuple(str(getattr(_settings, name)) for name in _OPTIONS)
        try:
            code = digest_of(self._dispatcher)[:_DIGITS]
            call = digest_of_call(signature, (codegen.magic_tuple(), options))[:_DIGITS]
        except Unknown:
            return ""
        return f"{self._name}{code}-{call}"

    def _folders(self) -> Iterator[Path]:
        if not self._source.is_file():  # made up while running, or in an archive
            return
        beside = self._source.parent
        apart = f"{beside.name}-{hashlib.sha256(bytes(beside)).hexdigest()[:_DIGITS]}"
        if _settings.CACHE_DIR:
            yield Path(_settings.CACHE_DIR) / apart
        yield beside / "__pycache__"
        yield user_cache_path("klsa-search") / "compiled" / apart

    def _remove(self, folder: Path, *, but: str) -> None:
        """Remove the files of the function, except those whose name begins like that."""
        try:
            for path in folder.iterdir():
                if path.name.startswith(self._name) and not (but and path.name.startswith(but)):
                    path.unlink(missing_ok=True)
        except OSError:
            return


def _can_keep(folder: Path) -> bool:
    """Whether a folder can be written to, or made."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def writable_folder() -> Path | None:
    """A folder that compiled code can be kept in; None where there is none."""
    own = Path(__file__).absolute().parent / "__pycache__"
    named = [Path(_settings.CACHE_DIR)] if _settings.CACHE_DIR else []
    for folder in (*named, own, user_cache_path("klsa-search") / "compiled"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None
