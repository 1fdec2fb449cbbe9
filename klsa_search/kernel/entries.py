"""Entries of K between one document and some others, and the strongest of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from klsa_search.compiled import compiled
from klsa_search.kernel.prefetch import prefetch
from klsa_search.selection import LOW, select_largest, sort_ascending

FILTER = 1 << 14
"""Bytes of the filter that spares look-ups; fits the first cache."""

_AHEAD = 6  # documents whose features are asked for before their turn
_LINE = 16  # numbers of a cache line


@compiled
def entries_of_row(
    d: int, features: Any, centring: Any, keys: Any, held: int,
    wide: Any, asked: Any, one: Any, bits: Any,
) -> int:  # fmt: skip
    """Turn the keys of documents into those of their positive entries of row d.

    keys     (held,) at least: the pool; afterwards value and document of each entry
    wide     (F,) zeros, and zeros again at the end; `asked` likewise, its filter
    one      (1,) float32, which `bits` views as an integer
    Returns how many entries there are.
    """
    starts, columns, weights = features
    scales, towards_mean, mean_square = centring
    begin, end = starts[d], starts[d + 1]
    mask = np.int32(FILTER - 1)
    for p in range(begin, end):
        wide[np.uint32(columns[p])] = weights[p]
        asked[columns[p] & mask] = True
    size = 0
    for i in range(held):
        if i + 2 * _AHEAD < held:
            prefetch(starts, LOW - (keys[i + 2 * _AHEAD] & LOW))
        if i + _AHEAD < held:
            later = LOW - (keys[i + _AHEAD] & LOW)
            for p in range(starts[later], starts[later + 1], _LINE):
                prefetch(columns, p)
                prefetch(weights, p)
        x = LOW - (keys[i] & LOW)
        total = np.float32(0)
        for p in range(starts[x], starts[x + 1]):
            if asked[columns[p] & mask]:
                total += weights[p] * wide[np.uint32(columns[p])]
        total -= towards_mean[d] * scales[x] + scales[d] * (
            towards_mean[x] - scales[x] * mean_square
        )
        if total <= 0:
            continue
        one[0] = total
        keys[size] = (np.int64(bits[0]) << 32) | (LOW - x)
        size += 1
    for p in range(begin, end):
        wide[np.uint32(columns[p])] = 0
        asked[columns[p] & mask] = False
    return size


@compiled
def keep_largest(keys: Any, size: int, at: int, kept: Any, one: Any, bits: Any) -> None:
    """Write the largest keys to row `at` of columns, values and sizes, in document order."""
    columns, values, sizes = kept
    width = min(size, columns.shape[1])
    if size > width:
        select_largest(keys, size, width)
    for i in range(width):
        keys[i] = ((LOW - (keys[i] & LOW)) << 32) | (keys[i] >> 32)
    sort_ascending(keys, 0, width)
    for i in range(width):
        columns[at, i] = keys[i] >> 32
        bits[0] = keys[i] & LOW
        values[at, i] = one[0]
    sizes[at] = width


@compiled
def compact(columns: Any, values: Any, sizes: Any) -> int:
    """Move the first sizes[i] entries of each row i to the front of all; return their number."""
    flat_columns, flat_values = columns.ravel(), values.ravel()
    total = 0
    for row in range(len(sizes)):
        first = row * columns.shape[1]
        for p in range(first, first + sizes[row]):
            flat_columns[total], flat_values[total] = flat_columns[p], flat_values[p]
            total += 1
    return total
