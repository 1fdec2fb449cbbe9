"""Entries of K between one document and some others, and the strongest of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from klsa_search.compiling import compiled
from klsa_search.selection import LOW, select_largest, sort_ascending

FILTER = 1 << 14
"""Bytes of the filter that spares look-ups; fits the first cache."""


@compiled
def entries_of_row(
    own: Any, first: int, features: Any, centring: Any, pool: Any, held: int, keys: Any, size: int,
    others: Any, wide: Any, asked: Any, one: Any, bits: Any,
) -> int:  # fmt: skip
    """Add the keys of the positive entries of a row with the documents from `first` on.

    own       columns and weights of the row's document, S and SΦμ
    features  of the documents from `first` on, and likewise `centring`
    pool      (held,) keys of documents; those elsewhere are passed over
    keys      value and document of each entry, `size` of them so far
    others    (held,) at least
    wide      (F,) zeros, and zeros again at the end; `asked` likewise, its filter
    one       (1,) float32, which `bits` views as an integer
    Returns how many entries there are.
    """
    starts, columns, weights = features
    scales, towards_mean, mean_square = centring
    own_columns, own_weights, scale, towards = own
    count = 0
    for i in range(held):
        x = LOW - (pool[i] & LOW) - first
        if 0 <= x < len(scales):
            others[count] = x
            count += 1
    if count == 0:
        return size
    mask = np.int32(FILTER - 1)
    for p in range(len(own_columns)):
        wide[np.uint32(own_columns[p])] = own_weights[p]
        asked[own_columns[p] & mask] = True
    for i in range(count):
        x = others[i]
        total = np.float32(0)
        for p in range(starts[x], starts[x + 1]):
            if asked[columns[p] & mask]:
                total += weights[p] * wide[np.uint32(columns[p])]
        total -= towards * scales[x] + scale * (towards_mean[x] - scales[x] * mean_square)
        if total <= 0:
            continue
        one[0] = total
        keys[size] = (np.int64(bits[0]) << 32) | (LOW - x - first)
        size += 1
    for p in range(len(own_columns)):
        wide[np.uint32(own_columns[p])] = 0
        asked[own_columns[p] & mask] = False
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
