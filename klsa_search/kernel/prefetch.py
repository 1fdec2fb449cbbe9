"""Asking for memory before it is needed."""

from __future__ import annotations

from typing import Any

from klsa_search.compiled import intrinsic, llvm


@intrinsic
def prefetch(context: Any, array: Any, position: Any) -> Any:
    """Begin to load the cache line of array[position]; `position` is not checked. No result."""

    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        of_type: Any = llvm.arrayobj.make_array  # numba has no types
        structure = of_type(signature.args[0])
        data = structure(context, builder, values[0]).data
        address = builder.bitcast(builder.gep(data, [values[1]]), llvm.cgutils.voidptr_t)
        word = llvm.ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [llvm.cgutils.voidptr_t],
            llvm.ir.FunctionType(llvm.ir.VoidType(), [llvm.cgutils.voidptr_t, word, word, word]),
        )
        # To read, keep in all caches, data rather than instructions.
        builder.call(function, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return llvm.types.void(array, llvm.types.int64), code
