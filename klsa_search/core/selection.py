"""Selection and sorting of the largest keys.

A key is `score << 32 | (2^32 - 1 - doc id)` with a whole-number score: descending order of the keys
is the ranking, by score descending and then by doc id ascending.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled, internal

Keys = npt.NDArray[np.int64]

LOW = 0xFFFFFFFF  # the bits of the doc id
DIGIT = 11  # bits of one pass of the radix sort
BUCKETS = 1 << DIGIT
SHORT = 48  # number of keys up to which insertion sort is the fastest


@compiled
def select_largest(keys: Keys, count: int, k: int) -> None:
    """Move the k largest of keys[:count] to the front, the smallest of them last; k >= 1.

    The threshold is found by bisection of the range of the keys: counting the larger ones is
    vectorised and has no unpredictable branches. O(n) per step, at most 64 steps; takes a third of
    the time of quickselect.
    """
    if k < count:
        threshold = _threshold(keys, count, k)
        front = 0
        for i in range(count):
            key = keys[i]
            keys[i] = keys[front]
            keys[front] = key
            front += key > threshold
        for i in range(front, count):  # fill up with keys that equal the threshold
            if front == k:
                break
            if keys[i] == threshold:
                keys[i], keys[front] = keys[front], threshold
                front += 1
    last, size = 0, min(k, count)
    for i in range(1, size):
        last = i if keys[i] < keys[last] else last
    if size > 0:
        keys[last], keys[size - 1] = keys[size - 1], keys[last]


@internal
def _threshold(keys: Keys, count: int, k: int) -> int:
    """Return a number with at most k keys above it and at least k keys above or equal."""
    low = high = keys[0]
    for i in range(count):
        low, high = min(low, keys[i]), max(high, keys[i])
    low -= 1
    while high - low > 1:
        middle = low + ((high - low) >> 1)
        above = 0
        for i in range(count):
            above += keys[i] > middle
        if above > k:
            low = middle
        else:
            high = middle
            if above == k:
                break
    return int(high)


@compiled
def sort_descending(keys: Keys, count: int, spare: Keys) -> None:
    """Sort distinct keys[:count], largest first; `spare` is as long. O(n) per radix pass.

    By score first, which has a small range, then each run of equal scores by doc id.
    """
    _sort_by(keys, 0, count, spare, 32)
    first = 0
    while first < count:
        after = first + 1
        while after < count and keys[after] >> 32 == keys[first] >> 32:
            after += 1
        if after - first > 1:
            _sort_by(keys, first, after, spare, 0)
        first = after


@compiled
def _sort_by(keys: Keys, first: int, after: int, spare: Keys, low: int) -> None:
    """Sort keys[first:after] by their bits from `low` up: insertion if few, else stable radix."""
    if after - first <= SHORT:
        _insert(keys, first, after)
        return
    lowest = highest = keys[first] >> low
    for i in range(first, after):
        lowest = min(lowest, keys[i] >> low)
        highest = max(highest, keys[i] >> low)
    places = np.empty(BUCKETS, np.int32)
    shift = 0
    while (highest - lowest) >> shift > 0:
        places[:] = 0
        for i in range(first, after):
            places[_bucket(keys[i] >> low, lowest, shift)] += 1
        total = first
        for bucket in range(BUCKETS):
            size = places[bucket]
            places[bucket] = total
            total += size
        for i in range(first, after):
            bucket = _bucket(keys[i] >> low, lowest, shift)
            spare[places[bucket]] = keys[i]
            places[bucket] += 1
        for i in range(first, after):
            keys[i] = spare[i]
        shift += DIGIT


@compiled
def _bucket(value: int, lowest: int, shift: int) -> int:
    """Return the bucket of a digit, that of the largest first."""
    return BUCKETS - 1 - (((value - lowest) >> shift) & (BUCKETS - 1))


@compiled
def sort_ascending(values: npt.NDArray[np.signedinteger], first: int, after: int) -> None:
    """Sort values[first:after] in place, smallest first, by Shell's sort.

    It is fast for few values, the usual case; numba's own sort takes seconds to compile.
    """
    gap = 1 if after - first <= SHORT else (after - first) * 4 // 9
    while gap > 0:
        for i in range(first + gap, after):
            value = values[i]
            j = i
            while j >= first + gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap = 1 if 1 < gap < 3 else gap * 4 // 9


@compiled
def _insert(keys: Keys, first: int, after: int) -> None:
    """Sort keys[first:after] by insertion, largest first."""
    for i in range(first + 1, after):
        key = keys[i]
        j = i - 1
        while j >= first and keys[j] < key:
            keys[j + 1] = keys[j]
            j -= 1
        keys[j + 1] = key
