"""Memory at an address, as an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]  # numba has no stubs for carray
from numba.core import cgutils

from klsa_search.compiled import inlined, intrinsic


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
def uint64_at(address: int, length: int) -> npt.NDArray[np.uint64]:
    """View the memory at an address as an array; no copy, no check."""
    return carray(_pointer(address), (length,), np.uint64)


@inlined
def uint32_at(address: int, length: int) -> npt.NDArray[np.uint32]:
    """View the memory at an address as an array; no copy, no check."""
    return carray(_pointer(address), (length,), np.uint32)


@inlined
def uint16_at(address: int, length: int) -> npt.NDArray[np.uint16]:
    """View the memory at an address as an array; no copy, no check."""
    return carray(_pointer(address), (length,), np.uint16)


@inlined
def float32_at(address: int, length: int) -> npt.NDArray[np.float32]:
    """View the memory at an address as an array; no copy, no check."""
    return carray(_pointer(address), (length,), np.float32)


@inlined
def vector(entry: npt.NDArray[np.int64], kind: Any) -> Any:
    """View an array of one dimension, given its address, length and width; no check."""
    return carray(_pointer(entry[0]), (entry[1],), kind)


@inlined
def table(entry: npt.NDArray[np.int64], kind: Any) -> Any:
    """View an array of two dimensions, given its address, length and width; no check."""
    return carray(_pointer(entry[0]), (entry[1], entry[2]), kind)
