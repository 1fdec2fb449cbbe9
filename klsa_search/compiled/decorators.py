"""How functions are marked to be compiled, and what compiling leaves behind."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event
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

    def on_start(self, compiling: event.Event) -> None:
        """Wait for the end."""

    def on_end(self, compiling: event.Event) -> None:
        """Look for cycles, once a function of ours and not once for each that it calls."""
        if compiling.data["dispatcher"].py_func in _OURS:
            gc.collect()


_OURS: set[Callable[..., Any]] = set()
event.register("numba:compile", _Tidy())  # type: ignore[no-untyped-call]  # numba has no types


def compiled(function: F) -> F:
    """Decorate a function to be compiled at its first call, to code that runs without the GIL."""
    _OURS.add(function)
    dispatcher = njit(function, nogil=True)
    dispatcher._cache = KeptCode(dispatcher)  # where cache=True puts the one of numba
    return cast(F, dispatcher)


def inlined(function: F) -> F:
    """Decorate a function to be compiled as part of whatever calls it."""
    return cast(F, njit(function, inline="always"))
