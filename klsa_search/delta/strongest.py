"""The strongest entries of the rows of K of new documents, among all documents before them.

Those of a pool of candidates: see `candidates`. Sums over features are whole numbers, and the rest
is as the query engine has it, so an entry is the same bits wherever it is computed.

    search_rows(begin, end, ...) finds those of documents begin..end
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.compiling import compiled
from klsa_search.delta.candidates import add_up, choose
from klsa_search.expansion.packing import LEVELS
from klsa_search.kernel.entries import FILTER
from klsa_search.selection import LOW, select_largest, sort_ascending

POSTINGS: Final = 60_000
"""Postings of the epoch that are added for a document."""

POOL: Final = 500
"""Documents whose K is computed.

With both the entries that are found have .995 of the sum of those that 2,000 documents and all
postings would give, among 300,000 documents; with twice the postings .997, for a third more time.
"""


class Held(NamedTuple):
    """Documents as the kernel compares them.

    starts    (n + 1,)
    features  packed
    facts     (n, 3) step, S and SΦμ
    boosts    (n,) S · K(x,x)^-¼
    """

    starts: npt.NDArray[np.int64]
    features: npt.NDArray[np.uint32]
    facts: npt.NDArray[np.float32]
    boosts: npt.NDArray[np.float32]


class Scratch(NamedTuple):
    """Memory of one thread; `wide` is all 0 between documents, and so are sums and `asked`."""

    sums: npt.NDArray[np.float32]
    touched: npt.NDArray[np.int32]
    order: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    wide: npt.NDArray[np.uint8]
    asked: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, positions: int, features: int, longest: int) -> Scratch:
        """Make it for so many positions and features, and terms of one document."""
        return cls(
            np.zeros(positions, np.float32),
            np.zeros(positions + 1, np.int32),
            np.zeros(max(longest, 1), np.int64),
            np.zeros(4 * POOL, np.int64),
            np.zeros(features, np.uint8),
            np.zeros(FILTER, np.bool_),
        )


@compiled
def search_rows(
    begin: int, end: int, offset: int, asking: Any, postings: Any, later: Any, old: Any, new: Any,
    first: int, mean_square: Any, limits: Any, scratch: Any, values: Any, found: Any,
) -> None:  # fmt: skip
    """Find the strongest entries of new documents begin..end, those numbered less than each.

    offset       number of the first of `asking`
    postings     starts, entries, run_starts, runs, bits
    first        position of new document 0
    limits       postings and pool
    values       (n, entries) float32, strongest first, then 0; their positions in `found`
    """
    sums, touched, order, keys, wide, asked = scratch
    one = np.zeros(1, np.float32)
    bits = one.view(np.int32)
    for d in range(begin, end):
        touches = add_up(d, offset, asking, postings, later, first, limits[0], sums, touched, order)
        held = choose(touches, old, new, first, limits[1], sums, touched, keys, one, bits)
        size = _entries(d, keys, held, old, new, first, mean_square, wide, asked, one, bits)
        row = d - offset
        width = min(size, values.shape[1])
        if size > width:
            select_largest(keys, size, width)
        sort_ascending(keys, 0, width)
        for i in range(width):
            key = keys[width - 1 - i]
            bits[0] = key >> 32
            values[row, i] = one[0]
            found[row, i] = LOW - (key & LOW)


@compiled
def _entries(
    d: int, keys: Any, held: int, old: Any, new: Any, first: int, mean_square: Any,
    wide: Any, asked: Any, one: Any, bits: Any,
) -> int:  # fmt: skip
    """Turn keys of the pool into those of the positive entries of row d; returns how many."""
    old_starts, old_features, old_facts, _ = old
    new_starts, new_features, new_facts, _ = new
    mask = np.uint32(FILTER - 1)
    level = np.uint32(LEVELS)
    for p in range(new_starts[d], new_starts[d + 1]):
        feature = new_features[p] >> np.uint32(8)
        wide[feature] = new_features[p] & level
        asked[feature & mask] = True
    step, scale, towards = new_facts[d, 0], new_facts[d, 1], new_facts[d, 2]
    size = 0
    for i in range(held):
        x = LOW - (keys[i] & LOW)
        if x < first:
            total = _product(old_starts[x], old_starts[x + 1], old_features, wide, asked)
            own_step, own_scale, own_towards = old_facts[x, 0], old_facts[x, 1], old_facts[x, 2]
        else:
            j = x - first
            total = _product(new_starts[j], new_starts[j + 1], new_features, wide, asked)
            own_step, own_scale, own_towards = new_facts[j, 0], new_facts[j, 1], new_facts[j, 2]
        value = np.float64(step) * own_step * total
        value -= np.float64(towards) * own_scale
        value -= np.float64(scale) * (own_towards - own_scale * mean_square)
        one[0] = value
        if one[0] > 0:
            keys[size] = (np.int64(bits[0]) << 32) | (LOW - x)
            size += 1
    for p in range(new_starts[d], new_starts[d + 1]):
        feature = new_features[p] >> np.uint32(8)
        wide[feature] = 0
        asked[feature & mask] = False
    return size


@compiled
def _product(begin: int, end: int, features: Any, wide: Any, asked: Any) -> Any:
    """Sum of products of levels, a whole number."""
    mask = np.uint32(FILTER - 1)
    total: Any = 0
    for p in range(begin, end):
        feature = features[p] >> np.uint32(8)
        if asked[feature & mask]:
            total += np.int64(wide[feature]) * np.int64(features[p] & np.uint32(LEVELS))
    return total
