"""How functions are marked to be compiled. numba is imported when the first of them is called.

Importing it takes a third of a second, more than many a command.
"""

from __future__ import annotations

import random  # noqa: F401 - which numba loads: what it has done at forks must not begin in one
import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from klsa_search.forks import held_at_forks
from klsa_search.lazily import lazily

if TYPE_CHECKING:
    from types import FunctionType, ModuleType

F = TypeVar("F", bound=Callable[..., Any])

_loading: Final = threading.Lock()
_loaded: list[ModuleType] = []


def _making() -> Any:
    """The module that makes what numba compiles, loaded by one thread, for which a fork waits."""
    if not _loaded:
        with _loading:
            if not _loaded:
                from klsa_search.compiled import making

                _loaded.append(making)
    return _loaded[0]


def _hold_compilers() -> Callable[[], None]:
    """Let no thread load numba, compile, or use LLVM at all, while the process forks."""
    _loading.acquire()
    if not _loaded:
        return _loading.release
    _loading.release()  # it is loaded, and a thread that compiles may look whether it is
    let_go: Callable[[], None] = _loaded[0].hold_compilers()
    return let_go


held_at_forks(_hold_compilers)


class Compiled:
    """A function, compiled at its first call; to numba it is the dispatcher that it makes then.

    Calling it takes .2 µs more than calling the dispatcher.
    """

    def __init__(self, function: Callable[..., Any], *, kept: bool = True, **options: Any) -> None:
        update_wrapper(self, function)
        # What numba looks for where one compiled function calls another:
        self.py_func, self.targetoptions = cast("FunctionType", function), options
        self._is_kept = kept

    @lazily
    def dispatcher(self) -> Any:
        """What numba makes of it."""
        return _making().dispatcher_of(self.py_func, self.targetoptions, kept=self._is_kept)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.dispatcher(*arguments)


class Intrinsic:
    """A function that writes LLVM code wherever a compiled function calls it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.py_func = cast("FunctionType", function)
        self.__doc__ = function.__doc__

    @lazily
    def _numba_type_(self) -> Any:
        return _making().type_of_intrinsic(self.py_func)


def compiled(function: F) -> F:
    """Decorate a function to be compiled at its first call, to code that runs without the GIL.

    Once for each set of types it is called with: numba by itself compiles it again for every number
    that a caller writes out. Arguments go by their places.
    """
    return cast(F, Compiled(function, nogil=True))


def internal(function: F) -> F:
    """Decorate a function that only compiled ones call: as `compiled`, without a way in for Python.

    That way takes as long to compile as the function where many arrays are handed over.
    """
    return cast(
        F,
        Compiled(
            function,
            nogil=True,
            no_cpython_wrapper=True,
            no_cfunc_wrapper=True,
        ),
    )


def inlined(function: F) -> F:
    """Decorate a function to be compiled as part of whatever calls it."""
    return cast(F, Compiled(function, kept=False, inline="always"))


def intrinsic(function: Callable[..., Any]) -> Any:
    """Decorate a function whose LLVM code is written out, as numba's own `intrinsic` does."""
    return Intrinsic(function)
