"""Functions that numba compiles at their first call, and their cache on disk.

numba is imported at the first call of such a function, because importing it takes 0.3 s, longer
than many commands. numba's own cache stores the code, in one folder for each version of a function,
named by a digest of its bytecode, of the functions and constants it uses, and of the versions of
Python, klsa-search and numba. The folders are in `NUMBA_CACHE_DIR` or the user's cache folder.

Services compile the engine in a child process (`compile_in_child`) and use NumPy for functions that
are not compiled yet (`not_compiled`); commands that run one query use NumPy only
(`disable_compiling`).
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache, update_wrapper
from glob import escape, iglob
from importlib import metadata
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final, TypeVar, cast

from klsa_search.core.cache_folder import cache_folder
from klsa_search.core.cached import lazy_property
from klsa_search.core.child_processes import command_of, has_interpreter
from klsa_search.core.parallel import exit_with_parent
from klsa_search.core.version import __version__

F = TypeVar("F", bound=Callable[..., Any])

_VARIABLES: Final = (
    *("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_BOUNDSCHECK"),
    *("NUMBA_DEBUGINFO", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE", "NUMBA_DISABLE_JIT"),
)
"""Environment variables of numba that change the code."""
_POLL_INTERVAL: Final = 0.2
"""Seconds between two checks for code that is not compiled yet."""

_lock: Final = threading.RLock()  # one thread at a time imports numba or compiles


class Compiled:
    """A function that is compiled at its first call; other compiled functions can call it."""

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
        """Return the numba dispatcher, whose globals are the dispatchers of the functions used."""
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
            try:  # numba reads the setting here, once
                return cast("Any", njit)(made, nogil=True, cache=folder is not None, **self.options)
            finally:
                settings.CACHE_DIR = named

    @lazy_property
    def name(self) -> str:
        """Return the name of the folder for this version; "" without a source file."""
        file = inspect.getfile(self.py_func)
        if not os.path.isfile(file):
            return ""
        place = hashlib.sha256(file.encode()).hexdigest()[:8]
        parts = [_text_of(self.py_func.__code__), repr(self.options), *_versions()]
        parts += [f"{name} {_description(value)}" for name, value in sorted(self._used().items())]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
        return f"{self.py_func.__module__}.{self.py_func.__name__}-{place}-{digest}"

    def is_cached(self) -> bool:
        """Return whether compiled code is on disk. Cost: 50 µs."""
        folder = self._folder()
        return folder is not None and any(iglob(f"{escape(str(folder))}/*/*.nbc"))

    def _folder(self) -> Path | None:
        """Return the folder of the code on disk; None if it cannot be stored at all."""
        folder = code_folder()
        return folder / self.name if folder is not None and self.name else None

    def _writable_folder(self) -> Path | None:
        folder = self._folder()
        return folder if folder is not None and is_writable(folder.parent) else None

    def _used(self) -> dict[str, Any]:
        """Return globals that the function or its annotations use, by name, and some others.

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
        if self.options.get("inline"):
            return None
        folder = self._folder()
        if folder is None or is_writable(folder.parent):
            return folder
        if not self.is_cached():
            return None
        # numba reads only from folders that it can write to.
        links = Path(_temporary().name) / self.name
        shutil.copytree(folder.absolute(), links, copy_function=os.symlink, dirs_exist_ok=True)
        return links

    def _prepare(self, arguments: tuple[Any, ...]) -> None:
        """Compile for the types of these arguments, or load the code from disk."""
        with _lock:
            if self._is_ready:
                return
            dispatcher, types = self.dispatcher, self._types(arguments)
            is_cached, stored = self.is_cached(), self._writable_folder()
            with nullcontext() if is_cached else _noted(self):
                if not is_cached:
                    for callback in _callbacks:
                        callback(None if stored is None else str(stored.parent))
                # numba leaves reference cycles to the frames of the caller, with all their arrays;
                # a thread has no caller.
                with self._locked(), ThreadPoolExecutor(1) as thread:
                    thread.submit(dispatcher.compile, types).result()
            if not is_cached and stored is not None:
                all_versions = f"{self.name.rpartition('-')[0]}-*"
                for folder in stored.parent.glob(all_versions):
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
        """Let one process at a time compile the function; the others then load its code."""
        folder = self._writable_folder()
        if folder is None or not folder.is_dir():
            yield
            return
        with _file_lock(folder / "lock"):
            yield


def compiled(function: F) -> F:
    """Decorate a function to be compiled at its first call, to code that releases the GIL.

    Arguments are positional. Call it with the same types everywhere: other types compile it again.
    """
    return cast(F, Compiled(function))


def internal(function: F) -> F:
    """Decorate a function that only compiled functions call: as `compiled`, without a wrapper.

    Compiling the Python wrapper of a function with many arrays takes as long as the function.
    """
    return cast(F, Compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True))


def unchecked(function: F) -> F:
    """Decorate a function that divides: as `internal`, but dividing by 0 does not raise.

    This lets loops with divisions compile to vector instructions.
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
    """Return bytecode and constants as text: those in use, even if the file has changed since."""
    constants = [
        _text_of(each) if isinstance(each, CodeType) else _description(each)
        for each in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_flags
    return repr((code.co_code, constants, names))


def _description(value: Any) -> str:
    """Return what of a constant or global may change the code of a function that uses it."""
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    if isinstance(value, Compiled):
        return value.name or repr(value.py_func.__code__.co_code)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{_description(type(value))} {value!r}"
    fields = getattr(value, "__annotations__", "") if hasattr(value, "_fields") else ""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return f"{getattr(value, '__module__', None)}.{name}{fields}" if name else repr(value)


@cache
def _versions() -> tuple[str, ...]:
    numba = metadata.version("numba")  # without importing it
    variables = (f"{name}={os.environ.get(name, '')}" for name in _VARIABLES)
    return __version__, sys.version, numba, metadata.version("llvmlite"), *variables


def code_folder() -> Path | None:
    """Return the folder of compiled code, which may be missing or read-only.

    None for a user without a home, if `NUMBA_CACHE_DIR` names none.
    """
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(named)
    folder = cache_folder()
    return None if folder is None else folder / "compiled"


def is_writable(folder: Path) -> bool:
    """Return whether a folder is writable; creates it if possible."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    # The method of Path raises if a parent cannot be read.
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


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


_callbacks: Final[list[Callable[[str | None], None]]] = []


@contextmanager
def on_compile(callback: Callable[[str | None], None]) -> Iterator[None]:
    """Call `callback` before each compilation, with the cache folder or None."""
    _callbacks.append(callback)
    try:
        yield
    finally:
        _callbacks.remove(callback)


@dataclass
class _Child:
    """The process that compiles, and the functions requested and not compiled yet."""

    module: str
    arguments: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    failure: str | None = None
    ready: set[Compiled] = field(default_factory=set)
    missing: dict[Compiled, float] = field(default_factory=dict)  # time of the last check
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_missing(self, function: Compiled) -> bool:
        if function in self.ready:
            return False
        with self.lock:
            is_missing = self._is_missing(function)
            if is_missing and self.process is None and self.failure is None:
                self.process = subprocess.Popen(
                    command_of(self.module, *self.arguments),
                    stdin=subprocess.PIPE,  # closed when this process ends, however it ends
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            return is_missing

    def still_missing(self) -> list[str]:
        with self.lock:
            functions = list(self.missing)
            return sorted(each.py_func.__name__ for each in functions if self._is_missing(each))

    def _is_missing(self, function: Compiled) -> bool:
        """Check the disk at most once in `_POLL_INTERVAL`; the caller has the lock."""
        now = time.monotonic()
        if now < self.missing.get(function, -_POLL_INTERVAL) + _POLL_INTERVAL:
            return True
        if function.is_cached():
            self.ready.add(function)
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
    """Stands for the child process if nothing is compiled."""

    failure: Final = "NumPy is faster for a single query"

    def is_missing(self, function: Compiled) -> bool:
        return True

    def still_missing(self) -> list[str]:
        return []


_compiler: list[_Child | _NoCompiler] = []


def disable_compiling() -> None:
    """Use NumPy from now on wherever possible, even if compiled code is on disk.

    For a process that runs one query: loading numba takes longer than the query in NumPy.
    """
    if not _compiler:
        _compiler.append(_NoCompiler())


def compile_in_child(module: str, *arguments: str) -> None:
    """Compile in a child process from now on, and use NumPy until a function is compiled.

    module     module that compiles, run with `python -m` when the first function is missing; see
               `run_as_child`
    Does nothing if compiled code cannot be stored, because a child shares it only on disk.
    """
    folder = code_folder()
    if not _compiler and has_interpreter() and folder is not None and is_writable(folder):
        _compiler.append(_Child(module, arguments))


def not_compiled(function: Any) -> bool:
    """Return whether a function has no compiled code yet, so that its caller must use NumPy.

    Cost: 0.2 µs once the code exists.
    """
    return bool(_compiler) and _compiler[0].is_missing(function)


def wait_until_compiled(function: Any) -> None:
    """Wait until the child process has compiled a function that has no NumPy equivalent.

    If the child process failed, return at once: the function is compiled at its first call.
    """
    while not_compiled(function) and _compiler[0].failure is None:
        time.sleep(_POLL_INTERVAL)


@contextmanager
def _noted(function: Compiled) -> Iterator[None]:
    """Note that a function is being compiled in this process, for `is_compiling`."""
    _in_progress.append(function)
    try:
        yield
    finally:
        _in_progress.remove(function)


_in_progress: Final[list[Compiled]] = []


def is_compiling() -> bool:
    """Return whether a requested function is being compiled, in this process or its child."""
    return bool(_in_progress or missing_functions()[0])


def missing_functions() -> tuple[list[str], str | None]:
    """Return the names of functions not compiled yet, and the reason if compiling failed."""
    if not _compiler:
        return [], None
    return _compiler[0].still_missing(), _compiler[0].failure


@contextmanager
def run_as_child(cleanup: Callable[[], object] | None = None) -> Iterator[None]:
    """Make this process the compiler, one at a time on a machine, which exits with its parent.

    cleanup  called before that exit; see `exit_with_parent`
    """
    exit_with_parent(cleanup)
    with suppress(OSError):
        os.nice(5)
    folder = code_folder()
    if folder is None or not is_writable(folder):
        yield
        return
    with _file_lock(folder / "child.lock"):
        yield
