"""The inner loops: adding postings to the accumulator, and finding what is high in it.

What is compared is whole numbers; floats above 0 are in the order of their bits, so they are
compared as those.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.compiled import compiled, internal, intrinsic, llvm

LANES = 64  # numbers that one comparison looks at
HALVINGS = 32  # bits of what is halved
SAMPLE = 8  # one vector in eight is counted first
SAMPLED = 128  # where there are this many


@intrinsic
def mask_above(context: Any, address: Any, bar: Any) -> Any:
    """Bit i: whether the i-th of the 64 int32 at `address` is above `bar`.

    One vector comparison of LLVM, four instructions where the machine has AVX-512. A loop over
    the scores with a branch, or a running maximum, is many times slower.
    """

    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        return _mask(builder, values, builder.icmp_signed, ">")

    return llvm.types.uint64(llvm.types.int64, llvm.types.int32), code


@intrinsic
def mask_below(context: Any, address: Any, bar: Any) -> Any:
    """Bit i: whether the i-th of the 64 uint32 at `address` is below `bar`."""

    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        return _mask(builder, values, builder.icmp_unsigned, "<")

    return llvm.types.uint64(llvm.types.int64, llvm.types.uint32), code


@intrinsic
def keep_masked(context: Any, address: Any, mask: Any) -> Any:
    """Set those of the 64 int32 at `address` to 0 whose bit in the mask is 0."""

    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        lanes = llvm.ir.VectorType(llvm.ir.IntType(32), LANES)
        place = builder.inttoptr(values[0], lanes.as_pointer())
        numbers = builder.load(place)
        numbers.align = 4
        kept = builder.bitcast(values[1], llvm.ir.VectorType(llvm.ir.IntType(1), LANES))
        stored = builder.store(
            builder.select(kept, numbers, llvm.ir.Constant(lanes, [0] * LANES)), place
        )
        stored.align = 4
        return context.get_dummy_value()

    return llvm.types.void(llvm.types.int64, llvm.types.uint64), code


def _mask(builder: llvm.ir.IRBuilder, values: Any, compare: Any, sign: str) -> Any:
    """Write code that compares the 64 numbers at an address with one, all at once."""
    compared = compare(sign, _load(builder, values[0]), _spread(builder, values[1]))
    return builder.bitcast(compared, llvm.ir.IntType(LANES))


def _load(builder: llvm.ir.IRBuilder, address: Any) -> Any:
    """Write code that loads the 64 numbers at an address."""
    lanes = llvm.ir.VectorType(llvm.ir.IntType(32), LANES)
    numbers = builder.load(builder.inttoptr(address, lanes.as_pointer()))
    numbers.align = 4
    return numbers


def _spread(builder: llvm.ir.IRBuilder, number: Any) -> Any:
    """Write code that puts a number into all 64 lanes."""
    lanes = llvm.ir.VectorType(llvm.ir.IntType(32), LANES)
    undefined = llvm.ir.Constant(lanes, llvm.ir.Undefined)
    one = builder.insert_element(undefined, number, llvm.ir.Constant(llvm.ir.IntType(32), 0))
    first = llvm.ir.Constant(lanes, [0] * LANES)
    return builder.shuffle_vector(one, undefined, first)


@intrinsic
def lowest_bit(context: Any, mask: Any) -> Any:
    """Number of the lowest set bit of a mask that is not 0."""

    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], llvm.ir.Constant(llvm.ir.IntType(1), 1))

    return llvm.types.int64(llvm.types.uint64), code


@intrinsic
def set_bits(context: Any, mask: Any) -> Any:
    """How many bits of a mask are set."""

    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        return builder.ctpop(values[0])

    return llvm.types.int64(llvm.types.uint64), code


@intrinsic
def _count_above(context: Any, address: Any, length: Any, bar: Any, stride: Any) -> Any:
    """How many of the int32 at the address are above the bar: see `count_above`.

    Counted lane by lane in vectors, and put together at the end.
    """

    def code(context: Any, builder: llvm.ir.IRBuilder, signature: Any, values: Any) -> Any:
        address, length, bar, stride = values
        lanes = llvm.ir.VectorType(llvm.ir.IntType(32), LANES)
        bars = _spread(builder, bar)
        none = llvm.ir.Constant(lanes, [0] * LANES)
        counts = llvm.cgutils.alloca_once_value(builder, none)  # type: ignore[no-untyped-call]  # numba has no types
        zero = llvm.ir.Constant(llvm.ir.IntType(64), 0)
        with llvm.cgutils.for_range_slice(builder, zero, length, stride, inc=True) as (place, _):
            at = builder.add(address, builder.shl(place, place.type(2)))
            above = builder.icmp_signed(">", _load(builder, at), bars)
            # What is true is -1 as a number.
            counts_ = builder.sub(builder.load(counts), builder.sext(above, lanes))
            builder.store(counts_, counts)
        kind = llvm.ir.FunctionType(llvm.ir.IntType(32), [lanes])
        name = f"llvm.vector.reduce.add.v{LANES}i32"
        add = llvm.cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]  # likewise
        return builder.zext(builder.call(add, [builder.load(counts)]), llvm.ir.IntType(64))

    signature = llvm.types.int64(
        llvm.types.int64, llvm.types.int64, llvm.types.int32, llvm.types.int64
    )
    return signature, code


@internal
def count_above(address: int, length: int, bar: int, stride: int = LANES) -> int:
    """How many of the int32 at the address are above the bar; length is a multiple of 64.

    stride  from vector to vector: 64 looks at all, 512 at every eighth
    """
    return int(_count_above(address, length, np.int32(bar), stride))


@internal
def are_above(address: int, length: int, bar: int, wanted: int) -> bool:
    """Whether so many of the int32 at the address are above the bar, in all likelihood.

    A sample tells where it has twice as many; else all are looked at.
    """
    if length >= SAMPLED * LANES:
        sampled = count_above(address, length, bar, SAMPLE * LANES)
        if sampled * SAMPLE >= 2 * wanted:
            return True
    return count_above(address, length, bar) >= wanted


@internal
def places_above(
    address: int,
    length: int,
    bar: int,
    words: npt.NDArray[np.uint64],
    places: npt.NDArray[np.int32],
) -> int:
    """Write down which of the int32 at the address are above the bar, ascending; returns how many.

    words   room for two for every 64 numbers, and two
    places  room for all
    Without a branch that hangs on a score: from bit to bit, and past words without one.
    """
    filled, count = 0, 0
    for place in range(0, length, LANES):
        mask = mask_above(address + 4 * place, np.int32(bar))
        words[filled], words[filled + 1] = mask, np.uint64(place)
        filled += 2 * (mask != 0)
        count += set_bits(mask)
    word, mask = np.int64(0), words[0]
    for i in range(count):
        places[i] = np.int64(words[word + 1]) + lowest_bit(mask)
        mask &= mask - np.uint64(1)
        passed = np.uint64(mask == 0)
        word += np.int64(passed + passed)
        mask |= words[word] & (np.uint64(0) - passed)
    return count


@compiled
def bar_of(address: int, length: int, low: int, high: int, wanted: int) -> int:
    """Find a bar that at least `wanted` scores are above, and hardly more than twice as many.

    By halving between low, which as many are known to be above, and high. Counting is so cheap
    that this takes a fraction of the time of any selection among the scores themselves, most of
    all on a sample.
    """
    if length >= SAMPLED * LANES:
        stride = SAMPLE * LANES
        share = wanted // SAMPLE + wanted // (4 * SAMPLE) + 1
        if count_above(address, length, low, stride) > share:
            bar = _halved(address, length, low, high, share, stride)
            if count_above(address, length, bar) >= wanted:
                return bar
            high = bar
    return _halved(address, length, low, high, wanted, LANES)


@internal
def _halved(address: int, length: int, low: int, high: int, wanted: int, stride: int) -> int:
    for _ in range(HALVINGS):
        middle = (low + high) >> 1
        count = count_above(address, length, middle, stride)
        if count >= wanted:
            low = middle
            if count <= wanted + wanted // 8:
                break
        else:
            high = middle
    return low


@internal
def add_postings(
    accumulator: npt.NDArray[np.int32], entries: npt.NDArray[np.uint32], weight: int
) -> None:
    """accumulator[place] += 1 + ⌊weight · saturation / 2^16⌋, for every posting."""
    for i in range(len(entries)):
        entry = entries[i]
        place = entry >> np.uint32(16)
        accumulator[place] += np.int32(1) + np.int32(
            (np.uint64(weight) * np.uint64(entry & np.uint32(0xFFFF))) >> np.uint64(16)
        )


@internal
def find(entries: npt.NDArray[np.uint32], low: int, high: int, key: int) -> int:
    """Place of the last entry of the ascending entries[low:high] that is <= key, or low."""
    count = high - low
    while count > 1:
        half = count >> 1
        # Without a branch: nobody can foretell which half it is.
        low = low + half if entries[low + half] <= key else low
        count -= half
    return low
