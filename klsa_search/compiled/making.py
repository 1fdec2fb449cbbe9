"""What numba makes of functions that are marked, and what compiling leaves behind."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any

from llvmlite.binding import ffi
from numba import njit
from numba.core import event, types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from klsa_search.compiled.keeping import KeptCode

# numba has no types:
_compiler: Any = global_compiler_lock
_llvm: Any = ffi.lib._lock
_njit: Any = njit
_intrinsic: Any = intrinsic
_target: Any = cpu_target
_unliteral: Any = types.unliteral


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


# What numba loads and makes at its first use, made here, where no process can fork meanwhile.
for _context in (_target.typing_context, _target.target_context):
    _context.refresh()
event.register("numba:compile", _Tidy())  # type: ignore[no-untyped-call]  # numba has no types


def hold_compilers() -> Callable[[], None]:
    """Wait until no thread compiles or uses LLVM; returns what lets them go on."""
    _compiler.acquire()
    _llvm.__enter__()

    def go_on() -> None:
        _llvm.__exit__()
        _compiler.release()

    return go_on


def dispatcher_of(function: Callable[..., Any], options: Mapping[str, Any], *, kept: bool) -> Any:
    """Make what compiles a function for each set of types it is called with."""
    dispatcher = _njit(function, **options)
    if kept:
        dispatcher._cache = KeptCode(dispatcher)  # where cache=True puts the one of numba
        called = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: called(
            tuple(map(_unliteral, args)), {name: _unliteral(kind) for name, kind in kws.items()}
        )
    return dispatcher


def type_of_intrinsic(function: Callable[..., Any]) -> Any:
    """Make numba's type of a function that writes LLVM code."""
    made, context = _intrinsic(function), _target.typing_context
    context.refresh()
    return context.resolve_value_type(made)
