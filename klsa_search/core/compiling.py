"""Functions that numba compiles at their first call, and the compiled code that is kept on disk.

numba is imported when the first of them is called: that takes a third of a second, more than many a
command. Code is kept by numba's own cache, in one folder for each version of a function, named by a
digest of its bytecode, of the functions and constants it uses, and of the versions of Python,
klsa-search and numba. The folders are in `NUMBA_CACHE_DIR` or the user's cache folder.

Commands that serve have the engine compiled in a child process (`compile_in_child`) and use NumPy
until that is done (`lacks`); commands that answer one question use NumPy only (`do_without`).
"""

from __future__ import annotations

import hashlib
import inspect
import os
import random  # noqa: F401 - imported by numba: its hook at forks must not be registered during one
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, update_wrapper
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final, TypeVar, cast

from platformdirs import user_cache_path

from klsa_search.core.cached import lazy_property
from klsa_search.core.child_processes import command_of, has_interpreter
from klsa_search.core.forks import hold_at_forks
from klsa_search.core.parallel import exit_with_parent
from klsa_search.core.version import __version__

F = TypeVar("F", bound=Callable[..., Any])

_VARIABLES: Final = (
    *("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_BOUNDSCHECK"),
    *("NUMBA_DEBUGINFO", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE", "NUMBA_DISABLE_JIT"),
)
"""Environment variables of numba that change the code."""
_AGAIN: Final = 0.2
"""Seconds between two looks for code that is not there yet."""

_lock: Final = threading.RLock()  # one thread at a time loads numba or compiles


def _hold() -> Callable[[], None]:
    _lock.acquire()
    return _lock.release


hold_at_forks(_hold)


class Compiled:
    """A function that is compiled at its first call; used by other compiled functions as it is."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        update_wrapper(self, function)
        self.py_func, self.options = cast("FunctionType", function), options
        self._is_ready = False

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        if not self._is_ready:
            self._prepare(arguments)
        return self.dispatcher(*arguments)

    @lazy_property
    def dispatcher(self) -> Any:
        """What `numba.njit` makes of the function, with those of the functions it uses."""
        with _lock:
            from numba import config, njit

            function, used = self.py_func, self._used()
            dispatchers = {k: v.dispatcher for k, v in used.items() if isinstance(v, Compiled)}
            names = {**function.__globals__, **dispatchers}
            made = FunctionType(
                *(function.__code__, names, function.__name__),
                *(function.__defaults__, function.__closure__),
            )
            made.__module__, made.__qualname__ = function.__module__, function.__qualname__
            folder, settings = self._cache_folder(), cast("Any", config)
            named = settings.CACHE_DIR
            settings.CACHE_DIR = str(folder or "")
            try:  # numba chooses the folder here, and remembers it
                return cast("Any", njit)(made, nogil=True, cache=folder is not None, **self.options)
            finally:
                settings.CACHE_DIR = named

    @lazy_property
    def name(self) -> str:
        """Name of the folder for this version; "" for a function without a source file."""
        file = inspect.getfile(self.py_func)
        if not os.path.isfile(file):
            return ""
        place = hashlib.sha256(file.encode()).hexdigest()[:8]
        told = [_text_of(self.py_func.__code__), repr(self.options), *_versions()]
        told += [f"{name} {_described(value)}" for name, value in sorted(self._used().items())]
        digest = hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]
        return f"{self.py_func.__module__}.{self.py_func.__name__}-{place}-{digest}"

    def is_cached(self) -> bool:
        """Return whether compiled code is kept on disk. Cost: 50 µs."""
        return bool(self.name) and any((code_folder() / self.name).glob("*/*.nbc"))

    def _used(self) -> dict[str, Any]:
        """Globals that the function uses or takes, by name, and some that it does not.

        Names of attributes may be among them. numba's cache refers to the types of arguments by
        module and name, so it cannot be read once one of them has moved.
        """
        names = {name for code in _codes(self.py_func.__code__) for name in code.co_names}
        names.update(
            *(
                re.findall(r"\w+", str(each))
                for each in inspect.get_annotations(self.py_func).values()
            )
        )
        return {k: v for k, v in self.py_func.__globals__.items() if k in names and v is not self}

    def _cache_folder(self) -> Path | None:
        if not self.name or self.options.get("inline"):
            return None
        kept = code_folder() / self.name
        if is_writable(code_folder()):
            return kept
        if not self.is_cached():
            return None
        # numba reads only from folders that it can write to.
        linked = Path(_temporary().name) / self.name
        shutil.copytree(kept.absolute(), linked, copy_function=os.symlink, dirs_exist_ok=True)
        return linked

    def _prepare(self, arguments: tuple[Any, ...]) -> None:
        """Compile for the types of these arguments, or load what is kept."""
        with _lock:
            if self._is_ready:
                return
            dispatcher, types = self.dispatcher, self._types(arguments)
            is_cached = self.is_cached()
            if not is_cached:
                keeping = bool(self.name) and is_writable(code_folder())
                for begun in _watchers:
                    begun(str(code_folder()) if keeping else None)
            # numba leaves cycles behind that hold the frames of the caller, with all their arrays;
            # so in a thread, which begins without a caller.
            with self._locked(), ThreadPoolExecutor(1) as thread:
                thread.submit(dispatcher.compile, types).result()
            if not is_cached and self.name:
                former = f"{self.name.rpartition('-')[0]}-*"
                for folder in code_folder().glob(former):
                    if folder.name != self.name:
                        shutil.rmtree(folder, ignore_errors=True)
            self._is_ready = True

    def _types(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        from numba import typeof

        code = self.py_func.__code__
        if code.co_flags & inspect.CO_VARARGS:
            arguments = *arguments[: code.co_argcount], arguments[code.co_argcount :]
        return tuple(map(cast("Any", typeof), arguments))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Compile a function in one process at a time: the others then load what it has kept."""
        folder = code_folder() / self.name
        if not (self.name and is_writable(code_folder()) and folder.is_dir()):
            yield
            return
        with _file_lock(folder / "lock"):
            yield


def compiled(function: F) -> F:
    """Decorate a function to be compiled at its first call, to code that runs without the GIL.

    Arguments are positional. Call it with arguments of the same types everywhere: it is compiled
    again for others.
    """
    return cast(F, Compiled(function))


def internal(function: F) -> F:
    """Decorate a function that only compiled functions call: as `compiled`, but not for Python.

    Compiling what hands many arrays over from Python takes as long as compiling the function.
    """
    return cast(F, Compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True))


def unchecked(function: F) -> F:
    """Decorate a function that divides: as `internal`, but a division by 0 is no error.

    So that loops with divisions are compiled to vector instructions.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
    return cast(F, Compiled(function, **options))


def inlined(function: F) -> F:
    """Decorate a function to be compiled as a part of each function that calls it."""
    return cast(F, Compiled(function, inline="always"))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _text_of(code: CodeType) -> str:
    """Write bytecode and constants down: as they are in use, whatever the file contains by now."""
    constants = [
        _text_of(each) if isinstance(each, CodeType) else _described(each)
        for each in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_flags
    return repr((code.co_code, constants, names))


def _described(value: Any) -> str:
    """Describe a constant or global: what may change the code of a function that uses it."""
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    if isinstance(value, Compiled):
        return value.name or repr(value.py_func.__code__.co_code)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{_described(type(value))} {value!r}"
    fields = getattr(value, "__annotations__", "") if hasattr(value, "_fields") else ""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return f"{getattr(value, '__module__', None)}.{name}{fields}" if name else repr(value)


@cache
def _versions() -> tuple[str, ...]:
    numba = metadata.version("numba")  # without importing it
    variables = (f"{name}={os.environ.get(name, '')}" for name in _VARIABLES)
    return __version__, sys.version, numba, metadata.version("llvmlite"), *variables


def code_folder() -> Path:
    """Return the folder that compiled code is kept in, which may be missing or read-only."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    return Path(named) if named else user_cache_path("klsa-search") / "compiled"


def is_writable(folder: Path) -> bool:
    """Return whether a folder can be written to, after an attempt to make it."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="klsa-compiled-")


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    if os.name != "posix":
        yield
        return
    import fcntl

    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_watchers: Final[list[Callable[[str | None], None]]] = []


@contextmanager
def on_compile(begun: Callable[[str | None], None]) -> Iterator[None]:
    """Call `begun` before each function is compiled, with the folder that will keep it, if any."""
    _watchers.append(begun)
    try:
        yield
    finally:
        _watchers.remove(begun)


@dataclass
class _Child:
    """The process that compiles, and the functions that were missed and are not there yet."""

    module: str
    arguments: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    failure: str | None = None
    there: set[Compiled] = field(default_factory=set)
    missing: dict[Compiled, float] = field(default_factory=dict)  # when it was looked for
    lock: threading.Lock = field(default_factory=threading.Lock)

    def lacks(self, function: Compiled) -> bool:
        if function in self.there:
            return False
        with self.lock:
            lacking = self._lacks(function)
            if lacking and self.process is None and self.failure is None:
                self.process = subprocess.Popen(
                    command_of(self.module, *self.arguments),
                    stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            return lacking

    def still_missing(self) -> list[str]:
        with self.lock:
            return sorted(each.py_func.__name__ for each in list(self.missing) if self._lacks(each))

    def _lacks(self, function: Compiled) -> bool:
        """Look for the code, unless that was done a moment ago; the lock is held."""
        now = time.monotonic()
        if now < self.missing.get(function, -_AGAIN) + _AGAIN:
            return True
        if function.is_cached():
            self.there.add(function)
            self.missing.pop(function, None)
            return False
        self.missing[function] = now
        ended = self.process.poll() if self.process else None
        if ended is not None and self.failure is None:
            self.failure = (
                f"the compilation process ended with status {ended}; klsa-index warm shows why"
            )
        return True


class _NoCompiler:
    """Takes the place of the child process where nothing is compiled."""

    failure: Final = "NumPy answers one question sooner"

    def lacks(self, function: Compiled) -> bool:
        return True

    def still_missing(self) -> list[str]:
        return []


_compiler: list[_Child | _NoCompiler] = []


def disable_compiling() -> None:
    """From now on use NumPy where there is such a way, even where compiled code is kept.

    For a process that answers one question: loading numba takes longer than NumPy takes.
    """
    if not _compiler:
        _compiler.append(_NoCompiler())


def compile_in_child(module: str, *arguments: str) -> None:
    """From now on use NumPy for what is not compiled yet, and compile it in a child process.

    module     which `python -m` runs to compile, started when something is missing for the first
               time; see `run_as_child`
    Does nothing where compiled code cannot be kept: the child could not hand any on.
    """
    if not _compiler and has_interpreter() and is_writable(code_folder()):
        _compiler.append(_Child(module, arguments))


def not_compiled(function: Any) -> bool:
    """Return whether a compiled function has no code yet, and something else compiles it.

    Its caller then uses NumPy. Cost: .2 µs once the code is there.
    """
    return bool(_compiler) and _compiler[0].lacks(function)


def wait_until_compiled(function: Any) -> None:
    """Wait until a compiled function has code, where a child process compiles it.

    For what NumPy cannot do. If the child process failed, it is compiled at its first call.
    """
    while not_compiled(function) and _compiler[0].failure is None:
        time.sleep(_AGAIN)


def missing_functions() -> tuple[list[str], str | None]:
    """Return names of the functions that are not compiled yet, and why they will not be."""
    if not _compiler:
        return [], None
    return _compiler[0].still_missing(), _compiler[0].failure


@contextmanager
def run_as_child(last: Callable[[], object] | None = None) -> Iterator[None]:
    """Make this the process that compiles: one on a machine at a time; it ends with its parent.

    last  what is done when it ends so; see `end_with_starter`
    """
    exit_with_parent(last)
    with suppress(OSError):
        os.nice(5)
    if not is_writable(code_folder()):
        yield
        return
    with _file_lock(code_folder() / "child.lock"):
        yield
