"""The inner loops: adding postings to the accumulator, and finding what is high in it.

What is compared is whole numbers; floats above 0 are in the order of their bits, so they are
compared as those. Each loop runs over a whole array by its index, without a branch: so it is
compiled to vector instructions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal

LANES = 64  # spans of scores are multiples of it
WIDTH = 32  # bits of the masks of scores
HALVINGS = 32  # bits of what is halved
SAMPLE = 8  # one vector in eight is counted first
SAMPLED = 128  # where there are this many

Numbers = npt.NDArray[np.int32]


@internal
def mask_above(numbers: Numbers, bar: int) -> np.uint32:
    """Bit i: whether numbers[i] is above the bar, of at most 32."""
    mask, least = np.uint32(0), np.int32(bar)
    for i in range(len(numbers)):
        mask = np.uint32(mask | np.uint32(np.uint32(numbers[i] > least) << np.uint32(i)))
    return mask


@internal
def keep_masked(numbers: Numbers, mask: np.uint32) -> None:
    """Set those of at most 32 numbers to 0 whose bit in the mask is 0."""
    for i in range(len(numbers)):
        kept = np.int32(np.uint32(mask >> np.uint32(i)) & np.uint32(1))
        numbers[i] = np.int32(numbers[i] & np.int32(-kept))


@inlined
def set_bits(mask: np.uint32) -> int:
    """How many bits of a mask are set; LLVM knows these steps as one instruction."""
    mask = np.uint32(mask - (np.uint32(mask >> np.uint32(1)) & np.uint32(0x55555555)))
    mask = np.uint32(
        (mask & np.uint32(0x33333333)) + (np.uint32(mask >> np.uint32(2)) & np.uint32(0x33333333))
    )
    mask = np.uint32((mask + np.uint32(mask >> np.uint32(4))) & np.uint32(0x0F0F0F0F))
    return int(np.int64(np.uint32(mask * np.uint32(0x01010101)) >> np.uint32(24)))


@inlined
def lowest_bit(mask: np.uint32) -> int:
    """Number of the lowest set bit of a mask that is not 0."""
    return set_bits(np.uint32(np.uint32(mask - np.uint32(1)) & ~mask))


@inlined
def without_lowest(mask: np.uint32) -> np.uint32:
    """The mask with its lowest set bit set to 0."""
    return np.uint32(mask & np.uint32(mask - np.uint32(1)))


@internal
def count_above(numbers: Numbers, bar: int) -> int:
    """How many of the numbers are above the bar."""
    count, least = np.int32(0), np.int32(bar)
    for i in range(len(numbers)):
        count = np.int32(count + np.int32(numbers[i] > least))
    return int(np.int64(count))


@internal
def count_sampled(numbers: Numbers, bar: int) -> int:
    """How many of every eighth 64 numbers are above the bar."""
    count = 0
    for place in range(0, len(numbers), SAMPLE * LANES):
        count += count_above(numbers[place : place + LANES], bar)
    return count


@internal
def are_above(numbers: Numbers, bar: int, wanted: int) -> bool:
    """Whether so many of the numbers are above the bar, in all likelihood.

    A sample tells where it has twice as many; else all are looked at.
    """
    if len(numbers) >= SAMPLED * LANES and count_sampled(numbers, bar) * SAMPLE >= 2 * wanted:
        return True
    return count_above(numbers, bar) >= wanted


@internal
def places_above(numbers: Numbers, bar: int, places: Numbers) -> int:
    """Write down which of the numbers are above the bar, ascending; returns how many.

    places  room for all
    """
    count = 0
    for begin in range(0, len(numbers), LANES):
        if count_above(numbers[begin : begin + LANES], bar) == 0:
            continue
        for first in range(begin, min(begin + LANES, len(numbers)), WIDTH):
            mask = mask_above(numbers[first : first + WIDTH], bar)
            while mask != 0:
                places[count] = first + lowest_bit(mask)
                count += 1
                mask = without_lowest(mask)
    return count


@internal
def bar_of(numbers: Numbers, low: int, high: int, wanted: int) -> int:
    """Find a bar that at least `wanted` scores are above, and hardly more than twice as many.

    By halving between low, which as many are known to be above, and high. Counting is so cheap
    that this takes a fraction of the time of any selection among the scores themselves, most of
    all on a sample.
    """
    if len(numbers) >= SAMPLED * LANES:
        share = wanted // SAMPLE + wanted // (4 * SAMPLE) + 1
        if count_sampled(numbers, low) > share:
            bar = _halved(numbers, low, high, share, True)
            if count_above(numbers, bar) >= wanted:
                return bar
            high = bar
    return _halved(numbers, low, high, wanted, False)


@inlined
def _halved(numbers: Numbers, low: int, high: int, wanted: int, sampled: bool) -> int:
    for _ in range(HALVINGS):
        middle = (low + high) >> 1
        count = count_sampled(numbers, middle) if sampled else count_above(numbers, middle)
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
        # Without a branch, which would be mispredicted.
        low = low + half if entries[low + half] <= key else low
        count -= half
    return low
