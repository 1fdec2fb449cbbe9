"""The inner loops: adding postings to the accumulator, and finding high scores in it.

Integers are compared; positive floats have the order of their bits, so they are compared as
integers too. Loops run over whole arrays by index, without branches, so that they are compiled to
vector instructions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import inlined, internal

LANES = 64  # arrays of scores are padded to a multiple of it
WIDTH = 32  # bits of a mask of scores
HALVINGS = 32  # bits of a score
SAMPLE = 8  # one vector in eight is sampled
SAMPLED = 128  # smallest number of vectors that are sampled

Numbers = npt.NDArray[np.int32]


@internal
def mask_above(numbers: Numbers, threshold: int) -> np.uint32:
    """Return a mask of which of at most 32 numbers exceed the threshold."""
    mask, limit = np.uint32(0), np.int32(threshold)
    for i in range(len(numbers)):
        mask = np.uint32(mask | np.uint32(np.uint32(numbers[i] > limit) << np.uint32(i)))
    return mask


@internal
def keep_masked(numbers: Numbers, mask: np.uint32) -> None:
    """Set those of at most 32 numbers to 0 whose bit in the mask is 0."""
    for i in range(len(numbers)):
        kept = np.int32(np.uint32(mask >> np.uint32(i)) & np.uint32(1))
        numbers[i] = np.int32(numbers[i] & np.int32(-kept))


@inlined
def set_bits(mask: np.uint32) -> int:
    """Return the number of set bits; LLVM compiles these steps to one instruction."""
    mask = np.uint32(mask - (np.uint32(mask >> np.uint32(1)) & np.uint32(0x55555555)))
    mask = np.uint32(
        (mask & np.uint32(0x33333333)) + (np.uint32(mask >> np.uint32(2)) & np.uint32(0x33333333))
    )
    mask = np.uint32((mask + np.uint32(mask >> np.uint32(4))) & np.uint32(0x0F0F0F0F))
    return int(np.int64(np.uint32(mask * np.uint32(0x01010101)) >> np.uint32(24)))


@inlined
def lowest_bit(mask: np.uint32) -> int:
    """Return the index of the lowest set bit of a mask that is not 0."""
    return set_bits(np.uint32(np.uint32(mask - np.uint32(1)) & ~mask))


@inlined
def without_lowest(mask: np.uint32) -> np.uint32:
    """Return the mask with its lowest set bit cleared."""
    return np.uint32(mask & np.uint32(mask - np.uint32(1)))


@internal
def count_above(numbers: Numbers, threshold: int) -> int:
    """Return how many numbers exceed the threshold."""
    count, limit = np.int32(0), np.int32(threshold)
    for i in range(len(numbers)):
        count = np.int32(count + np.int32(numbers[i] > limit))
    return int(np.int64(count))


@internal
def count_sampled(numbers: Numbers, threshold: int) -> int:
    """Return how many numbers of every eighth 64 exceed the threshold."""
    count = 0
    for place in range(0, len(numbers), SAMPLE * LANES):
        count += count_above(numbers[place : place + LANES], threshold)
    return count


@internal
def has_many_above(numbers: Numbers, threshold: int, target: int) -> bool:
    """Return whether at least `target` numbers exceed the threshold, in all likelihood.

    A sample decides if it has twice as many; otherwise all are counted.
    """
    if len(numbers) >= SAMPLED * LANES and count_sampled(numbers, threshold) * SAMPLE >= 2 * target:
        return True
    return count_above(numbers, threshold) >= target


@internal
def indices_above(numbers: Numbers, threshold: int, indices: Numbers) -> int:
    """Write the indices of numbers that exceed the threshold, ascending; return how many.

    indices  as long as `numbers`
    """
    count = 0
    for begin in range(0, len(numbers), LANES):
        if count_above(numbers[begin : begin + LANES], threshold) == 0:
            continue
        for first in range(begin, min(begin + LANES, len(numbers)), WIDTH):
            mask = mask_above(numbers[first : first + WIDTH], threshold)
            while mask != 0:
                indices[count] = first + lowest_bit(mask)
                count += 1
                mask = without_lowest(mask)
    return count


@internal
def find_threshold(numbers: Numbers, low: int, high: int, target: int) -> int:
    """Return a threshold that at least `target` scores exceed, and hardly more than twice as many.

    By bisection between low, which that many exceed, and high. Counting is so cheap that this takes
    a fraction of the time of a selection among the scores, above all on a sample.
    """
    if len(numbers) >= SAMPLED * LANES:
        share = target // SAMPLE + target // (4 * SAMPLE) + 1
        if count_sampled(numbers, low) > share:
            threshold = _bisect(numbers, low, high, share, True)
            if count_above(numbers, threshold) >= target:
                return threshold
            high = threshold
    return _bisect(numbers, low, high, target, False)


@inlined
def _bisect(numbers: Numbers, low: int, high: int, target: int, sampled: bool) -> int:
    for _ in range(HALVINGS):
        middle = (low + high) >> 1
        count = count_sampled(numbers, middle) if sampled else count_above(numbers, middle)
        if count >= target:
            low = middle
            if count <= target + target // 8:
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
    """Return the index of the last entry of ascending entries[low:high] that is <= key, or low."""
    count = high - low
    while count > 1:
        half = count >> 1
        # Without a branch, which would be mispredicted.
        low = low + half if entries[low + half] <= key else low
        count -= half
    return low
