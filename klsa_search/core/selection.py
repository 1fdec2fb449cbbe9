"""Select and sort the largest keys; arrays that grow by appending.

A key is `score << 32 | (2^32 - 1 - position)`, with the score in steps of the grid: the ranking,
score descending and then position ascending, is the descending order of plain integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled, internal

Keys = npt.NDArray[np.int64]

LOW = 0xFFFFFFFF  # the bits of the position
DIGIT = 11  # bits of one pass of the radix sort
BUCKETS = 1 << DIGIT
SHORT = 48  # keys that insertion sorts faster than any other way


@compiled
def select_largest(keys: Keys, count: int, k: int) -> None:
    """Move the k largest of keys[:count] to the front, the k-th last, the others behind; k >= 1.

    The bar is found by halving the span of the keys: counting what is above goes by whole vectors,
    and no branch hangs on the comparison of two keys, which is unpredictable. O(n) a halving,
    64 at most, and a third of the time that quickselect takes.
    """
    if k < count:
        bar = _bar(keys, count, k)
        front = 0
        for i in range(count):
            key = keys[i]
            keys[i] = keys[front]
            keys[front] = key
            front += key > bar
        for i in range(front, count):  # of those at the bar as many as are missing
            if front == k:
                break
            if keys[i] == bar:
                keys[i], keys[front] = keys[front], bar
                front += 1
    last, size = 0, min(k, count)
    for i in range(1, size):
        last = i if keys[i] < keys[last] else last
    if size > 0:
        keys[last], keys[size - 1] = keys[size - 1], keys[last]


@internal
def _bar(keys: Keys, count: int, k: int) -> int:
    """Find a number that k keys are above, or fewer, and k with those that equal it."""
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
    """Sort distinct keys[:count], largest first; `spare` is as long. O(n) a radix pass.

    By score first, whose span is short, then each run of equal scores by position.
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
    """Sort keys[first:after] by their bits from `low` up: insertion if few, else radix.

    A radix pass keeps the order of what is equal in its digit, so later digits come last.
    """
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
            held = places[bucket]
            places[bucket] = total
            total += held
        for i in range(first, after):
            bucket = _bucket(keys[i] >> low, lowest, shift)
            spare[places[bucket]] = keys[i]
            places[bucket] += 1
        for i in range(first, after):
            keys[i] = spare[i]
        shift += DIGIT


@compiled
def _bucket(value: int, lowest: int, shift: int) -> int:
    """Place of a digit, the largest first."""
    return BUCKETS - 1 - (((value - lowest) >> shift) & (BUCKETS - 1))


@compiled
def sort_ascending(values: npt.NDArray[np.signedinteger], first: int, after: int) -> None:
    """Sort values[first:after] in place, smallest first, by Shell's sort; equal ones are the same.

    Few as a rule, for which it is fast; numba's own sort takes seconds to compile.
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


_LEAST = 1024  # rows there is room for at first


class AppendableArray:
    """An array that grows at its end; appending n rows costs O(n) on average.

    kind   of the numbers
    width  of a row; None for an array of one dimension
    """

    def __init__(self, kind: npt.DTypeLike, width: int | None = None) -> None:
        self._room = np.zeros(_LEAST if width is None else (_LEAST, width), kind)
        self._size = 0

    def __len__(self) -> int:
        """Rows that are held."""
        return self._size

    @property
    def held(self) -> npt.NDArray[Any]:
        """The rows; a view, which stays as it is while others are appended."""
        return self._room[: self._size]

    def extend(self, rows: npt.NDArray[Any]) -> None:
        """Append rows."""
        size = self._size + len(rows)
        if size > len(self._room):
            larger = np.zeros(
                (max(size, 2 * len(self._room)), *self._room.shape[1:]), self._room.dtype
            )
            larger[: self._size] = self.held
            self._room = larger
        self._room[self._size : size] = rows
        self._size = size
