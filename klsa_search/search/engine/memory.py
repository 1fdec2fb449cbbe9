"""Memory at an address, as an array without an owner; no copy, no check.

Written out, as numba's own `carray` takes ten times as long to compile wherever it stands.
"""

from __future__ import annotations

from typing import Any

from klsa_search.compiled import intrinsic, llvm


def _array(
    context: Any, builder: llvm.ir.IRBuilder, kind: Any, address: Any, shape: list[Any]
) -> Any:
    """Write code that makes an array of a C-ordered type."""
    of_type: Any = llvm.arrayobj.make_array  # numba has no types
    fill: Any = llvm.arrayobj.populate_array
    array = of_type(kind)(context, builder)
    size = llvm.ir.Constant(
        llvm.ir.IntType(64), context.get_abi_sizeof(context.get_data_type(kind.dtype))
    )
    strides = [size]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(address, array.data.type)
    fill(array, data, shape, strides, size, meminfo=None)
    return array._getvalue()


def _at(kind: Any) -> Any:
    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        return _array(context, builder, signature.return_type, values[0], [values[1]])

    return llvm.types.Array(kind, 1, "C")(llvm.types.int64, llvm.types.int64), code


@intrinsic
def int32_at(context: Any, address: Any, length: Any) -> Any:
    """View the memory at an address as (length,) int32."""
    return _at(llvm.types.int32)


@intrinsic
def int64_at(context: Any, address: Any, length: Any) -> Any:
    """View the memory at an address as (length,) int64."""
    return _at(llvm.types.int64)


@intrinsic
def uint32_at(context: Any, address: Any, length: Any) -> Any:
    """View the memory at an address as (length,) uint32."""
    return _at(llvm.types.uint32)


@intrinsic
def uint64_at(context: Any, address: Any, length: Any) -> Any:
    """View the memory at an address as (length,) uint64."""
    return _at(llvm.types.uint64)


@intrinsic
def uint16_at(context: Any, address: Any, length: Any) -> Any:
    """View the memory at an address as (length,) uint16."""
    return _at(llvm.types.uint16)


@intrinsic
def float32_at(context: Any, address: Any, length: Any) -> Any:
    """View the memory at an address as (length,) float32."""
    return _at(llvm.types.float32)


@intrinsic
def vector(context: Any, entry: Any, kind: Any) -> Any:
    """View an array of one dimension, given its address, length and width."""
    return _entry(entry, kind, 1)


@intrinsic
def table(context: Any, entry: Any, kind: Any) -> Any:
    """View an array of two dimensions, given its address, length and width."""
    return _entry(entry, kind, 2)


def _entry(entry: Any, kind: Any, dimensions: int) -> Any:
    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        of_type: Any = llvm.arrayobj.make_array
        words = of_type(signature.args[0])(context, builder, values[0]).data
        address, *shape = (
            builder.load(builder.gep(words, [llvm.ir.Constant(llvm.ir.IntType(64), place)]))
            for place in range(1 + dimensions)
        )
        return _array(context, builder, signature.return_type, address, shape)

    return llvm.types.Array(kind.dtype, dimensions, "C")(entry, kind), code
