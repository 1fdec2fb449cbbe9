"""How the engine's functions are compiled, and how they see memory.

Compiled code is kept by numba in `__pycache__` beside the source, else in the user's cache folder;
`NUMBA_CACHE_DIR` names another. Where none of them can be written to, every process compiles for
itself, some seconds at its first query. numba notices a change of the file a function stands in,
not of the functions it calls: who works on the engine empties the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic as untyped_intrinsic

F = TypeVar("F", bound=Callable[..., Any])

intrinsic = cast(Callable[[Callable[..., Any]], Any], untyped_intrinsic)
"""numba's decorator for functions whose LLVM code is written out."""


def compiled(function: F) -> F:
    """Compile at the first call, to code that runs without the GIL; kept on disk where possible."""
    try:
        return cast(F, njit(function, nogil=True, cache=True))
    except RuntimeError:  # "no locator available": there is no folder to keep it in
        return cast(F, njit(function, nogil=True))


def inlined(function: F) -> F:
    """Compile as part of whatever calls it."""
    return cast(F, njit(function, inline="always"))


@intrinsic
def _pointer(context: Any, address: Any) -> Any:
    """int64 to a pointer."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), code


@inlined
def int32_at(address: int, length: int) -> npt.NDArray[np.int32]:
    """View the memory at an address as an array; no copy, no check."""
    return carray(_pointer(address), (length,), np.int32)


@inlined
def int64_at(address: int, length: int) -> npt.NDArray[np.int64]:
    """View the memory at an address as an array; no copy, no check."""
    return carray(_pointer(address), (length,), np.int64)


@inlined
def float32_at(address: int, length: int) -> npt.NDArray[np.float32]:
    """View the memory at an address as an array; no copy, no check."""
    return carray(_pointer(address), (length,), np.float32)
