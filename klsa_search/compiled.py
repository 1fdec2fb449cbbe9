"""Functions compiled by numba: at their first call, kept on disk where that is possible.

Compiled code is kept in `__pycache__` beside the source, else in the user's cache folder;
`NUMBA_CACHE_DIR` names another. Where none of them can be written to, every process compiles for
itself, some seconds at its first query. numba notices a change of the file a function stands in,
not of the functions it calls: who works on compiled code empties the cache.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event
from numba.extending import intrinsic as untyped_intrinsic

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
    try:
        return cast(F, njit(function, nogil=True, cache=True))
    except RuntimeError:  # "no locator available": there is no folder to keep it in
        return cast(F, njit(function, nogil=True))


def inlined(function: F) -> F:
    """Decorate a function to be compiled as part of whatever calls it."""
    return cast(F, njit(function, inline="always"))
