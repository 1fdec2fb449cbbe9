"""Coverage of eight terms at a time: what neighbours lend, and how it saturates."""

from __future__ import annotations

from typing import Any

from klsa_search.compiled import intrinsic, llvm

TOGETHER = 8  # terms in a vector


@intrinsic
def saturated(
    context: Any,
    own: Any,
    impacts: Any,
    near: Any,
    shares: Any,
    hits: Any,
    part: Any,
    worth: Any,
    half: Any,
) -> Any:
    """Σ worth · y / (y + half) over eight terms, y = own + part · Σ_i shares[i] · impacts[near[i]].

    own, impacts, near, shares, worth, half are addresses; near[i] counts float32 from `impacts`.
    In vectors: term by term it takes three times as long.
    """
    vector = llvm.ir.VectorType(llvm.ir.FloatType(), TOGETHER)
    index = llvm.ir.VectorType(llvm.ir.IntType(32), TOGETHER)

    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        own, impacts, near, shares, hits, part, worth, half = values

        def load(address: Any) -> Any:
            loaded = builder.load(builder.inttoptr(address, vector.as_pointer()))
            loaded.align = 4
            return loaded

        def number(address: Any, kind: Any, place: Any) -> Any:
            return builder.load(builder.gep(builder.inttoptr(address, kind.as_pointer()), [place]))

        def spread(value: Any) -> Any:
            one = builder.insert_element(
                llvm.ir.Constant(vector, llvm.ir.Undefined),
                value,
                llvm.ir.Constant(llvm.ir.IntType(32), 0),
            )
            return builder.shuffle_vector(
                one,
                llvm.ir.Constant(vector, llvm.ir.Undefined),
                llvm.ir.Constant(index, [0] * TOGETHER),
            )

        none = llvm.ir.Constant(vector, [0.0] * TOGETHER)
        lent = llvm.cgutils.alloca_once_value(builder, none)  # type: ignore[no-untyped-call]  # numba has no types
        with llvm.cgutils.for_range(builder, hits) as loop:
            place = builder.zext(number(near, llvm.ir.IntType(32), loop.index), llvm.ir.IntType(64))
            share = number(shares, llvm.ir.FloatType(), loop.index)
            held = load(builder.add(impacts, builder.shl(place, place.type(2))))
            added = builder.fmul(spread(share), held)
            builder.store(builder.fadd(builder.load(lent), added), lent)
        y = builder.fadd(load(own), builder.fmul(spread(part), builder.load(lent)))
        sums = builder.fmul(load(worth), builder.fdiv(y, builder.fadd(y, load(half))))
        width = TOGETHER
        while width > 1:  # the upper half added to the lower: always in this order
            width //= 2
            upper = [(lane + width) % TOGETHER for lane in range(TOGETHER)]
            sums = builder.fadd(
                sums, builder.shuffle_vector(sums, none, llvm.ir.Constant(index, upper))
            )
        return builder.extract_element(sums, llvm.ir.Constant(llvm.ir.IntType(32), 0))

    signature = llvm.types.float32(
        llvm.types.int64,
        llvm.types.int64,
        llvm.types.int64,
        llvm.types.int64,
        llvm.types.int64,
        llvm.types.float32,
        llvm.types.int64,
        llvm.types.int64,
    )
    return signature, code
