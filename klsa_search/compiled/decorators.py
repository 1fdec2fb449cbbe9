"""How functions are marked to be compiled, and what compiling leaves behind."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite.binding import ffi
from numba import njit
from numba.core import event, types
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic as untyped_intrinsic

from klsa_search.compiled.keeping import KeptCode

F = TypeVar("F", bound=Callable[..., Any])

intrinsic = cast(Callable[[Callable[..., Any]], Any], untyped_intrinsic)
"""numba's decorator for functions whose LLVM code is written out."""


class _Tidy(event.Listener):
    """Frees what compiling leaves behind.

    numba leaves cycles that hold the frames of whoever called, and so all of their arrays, until
    Python happens to look for cycles: half of the memory of a large build, and to its end.
    """

    def __init__(self) -> None:
        self._under_way = 0  # one thread compiles at a time: numba has a lock for that

    def on_start(self, compiling: event.Event) -> None:
        """Wait for the end."""
        self._under_way += 1

    def on_end(self, compiling: event.Event) -> None:
        """Look for cycles once what was called is compiled, not once for each that it calls."""
        self._under_way -= 1
        if self._under_way == 0:
            gc.collect()


event.register("numba:compile", _Tidy())  # type: ignore[no-untyped-call]  # numba has no types


def _wait_for_compilers() -> None:
    """Let no thread compile, or use LLVM at all, while the process forks: see `forks`."""
    _compiler.acquire()
    _llvm.__enter__()


def _let_compilers_go_on() -> None:
    _llvm.__exit__()
    _compiler.release()


_compiler: Any = global_compiler_lock  # numba has no types
_llvm: Any = ffi.lib._lock
_njit: Any = njit
_unliteral: Any = types.unliteral
if hasattr(os, "register_at_fork"):
    # Registered after `forks` and so called before it: no lock of moments waits for a compiler.
    os.register_at_fork(
        before=_wait_for_compilers,
        after_in_parent=_let_compilers_go_on,
        after_in_child=_let_compilers_go_on,
    )


def compiled(function: F) -> F:
    """Decorate a function to be compiled at its first call, to code that runs without the GIL.

    Once for each set of types it is called with: numba by itself compiles it again for every number
    that a caller writes out.
    """
    return cast(F, _kept(_njit(function, nogil=True)))


def internal(function: F) -> F:
    """Decorate a function that only compiled ones call: as `compiled`, without a way in for Python.

    That way takes as long to compile as the function where many arrays are handed over.
    """
    dispatcher = _njit(function, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast(F, _kept(dispatcher))


def _kept(dispatcher: Any) -> Any:
    dispatcher._cache = KeptCode(dispatcher)  # where cache=True puts the one of numba
    called, unliteral = dispatcher.get_call_template, _unliteral
    dispatcher.get_call_template = lambda args, kws: called(
        tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()}
    )
    return dispatcher


def inlined(function: F) -> F:
    """Decorate a function to be compiled as part of whatever calls it."""
    return cast(F, njit(function, inline="always"))
