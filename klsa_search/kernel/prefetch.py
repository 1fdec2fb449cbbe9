"""Asking for memory before it is needed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np import arrayobj

from klsa_search.compiled import intrinsic


@intrinsic
def prefetch(context: Any, array: Any, position: Any) -> Any:
    """Begin to load the cache line of array[position]; `position` is not checked. No result."""

    def code(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        of_type: Any = arrayobj.make_array  # numba has no types
        structure = of_type(signature.args[0])
        data = structure(context, builder, values[0]).data
        address = builder.bitcast(builder.gep(data, [values[1]]), cgutils.voidptr_t)
        word = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [cgutils.voidptr_t],
            ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word]),
        )
        # To read, keep in all caches, data rather than instructions.
        builder.call(function, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), code
