"""The pool of a document: those whose K with it is worth computing.

Partial sums over postings that hold, of each feature, its strongest documents only. A posting is
scaled by (K(x,x))^-¼: without it long documents crowd the postings, and documents that are the mean
crowd the pool.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.core.compiling import compiled
from klsa_search.core.selection import LOW, select_largest, sort_ascending

TruncatedPostings = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Where each feature's postings begin, their documents in ascending order, their values."""


def truncate_postings(
    features: sparse.csr_array, scales: npt.NDArray[np.float32], cut: int
) -> TruncatedPostings:
    """Postings of each feature, times the documents' scales, cut to its strongest.

    None for a feature of a single document. Cost O(nnz); memory 8 bytes for each of them while it
    works, and 8 for each posting that stays.
    """
    by_feature = features.tocsc()
    sizes = np.diff(by_feature.indptr)
    kept = np.where(sizes > 1, np.minimum(sizes, cut), 0)
    starts = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
    documents = np.empty(starts[-1], np.int32)
    values = np.empty(starts[-1], np.float32)
    scaled = np.empty(sizes.max(initial=0), np.float32)
    _cut(
        by_feature.indptr, by_feature.indices, by_feature.data, scales, starts, documents, values,
        scaled, scaled.view(np.int32), np.empty(len(scaled), np.int64),
    )  # fmt: skip
    return starts, documents, values


@compiled
def _cut(
    whole: Any, documents: Any, weights: Any, scales: Any,
    starts: Any, kept_documents: Any, kept_values: Any, scaled: Any, bits: Any, keys: Any,
) -> None:  # fmt: skip
    """Of equal values the first documents stay; `bits` views the scaled values as integers."""
    for feature in range(len(starts) - 1):
        begin, size = whole[feature], whole[feature + 1] - whole[feature]
        at = starts[feature]
        kept = starts[feature + 1] - at
        if kept == 0:
            continue
        for i in range(size):
            scaled[i] = weights[begin + i] * scales[documents[begin + i]]
        level = np.float32(-1)
        level_room = 0
        if kept < size:
            for i in range(size):  # positive floats are ordered as their bits are
                keys[i] = bits[i]
            select_largest(keys, size, kept)
            place = 0
            while bits[place] != keys[kept - 1]:
                place += 1
            level = scaled[place]
            level_room = kept
            for i in range(size):
                level_room -= scaled[i] > level
        for i in range(size):
            if scaled[i] > level or (scaled[i] == level and level_room > 0):
                level_room -= scaled[i] == level
                kept_documents[at] = documents[begin + i]
                kept_values[at] = scaled[i]
                at += 1


@compiled
def select_query_features(
    columns: Any, weights: Any, starts: Any, limits: Any, order: Any, asked: Any, asked_weights: Any
) -> int:
    """Choose the features of a document that are asked, heaviest first; return how many.

    columns, weights  (m,) its features, none of them negative
    starts            (F + 1,) where each feature's postings begin, of all documents
    limits            most features and postings
    order             (m,) at least
    """
    bits = weights.view(np.int32)
    size = len(columns)
    for i in range(size):
        order[i] = (np.int64(bits[i]) << 32) | (LOW - i)
    sort_ascending(order, 0, size)
    used, spent = 0, 0
    for i in range(size - 1, -1, -1):
        at = LOW - (order[i] & LOW)
        postings = starts[columns[at] + 1] - starts[columns[at]]
        if postings == 0 or (used > 0 and spent + postings > limits[1]):
            continue
        asked[used], asked_weights[used] = columns[at], weights[at]
        spent += postings
        used += 1
        if used == limits[0]:
            break
    return used


@compiled
def find_candidates(
    d: int, asked: Any, asked_weights: Any, used: int, postings: Any, first: int, pool: int,
    sums: Any, sums_bits: Any, touched: Any, keys: Any, held: int,
) -> int:  # fmt: skip
    """Keep the keys of the pool of document d in front of `keys`; return how many there are.

    asked     features of d, heaviest first, `used` of them
    postings  of the documents from `first` on, numbered from there
    sums      a zero for each of them, and zeros again at the end; `sums_bits` views them as
              integers
    held      keys that other documents have brought there
    """
    size = 4 * pool
    count = _accumulate(asked, asked_weights, used, postings, sums, touched)
    least = np.int64(LOW)  # no key without a sum: that is what a document's second visit has
    own = d - first
    low = LOW - first
    for i in range(count):
        x = np.uint32(touched[i])
        # Positive floats are ordered as their bits are.
        key = (np.int64(sums_bits[x]) << 32) | (low - np.int64(x))
        sums[x] = 0
        if key > least and x != own:
            keys[held] = key
            held += 1
            if held == size:
                select_largest(keys, held, pool)
                held = pool
                least = keys[pool - 1]  # select_largest puts the least of them last
    if held > pool:
        select_largest(keys, held, pool)
        held = pool
    return held


@compiled
def _accumulate(
    asked: Any, asked_weights: Any, used: int, postings: Any, sums: Any, touched: Any
) -> int:
    """Add the postings of some features in their order; return how many are touched.

    A document whose postings are 0 is touched more than once.
    """
    starts, documents, values = postings
    count = 0
    for i in range(used):
        weight = asked_weights[i]
        for p in range(starts[asked[i]], starts[asked[i] + 1]):
            document = np.uint32(documents[p])
            before = sums[document]
            touched[count] = documents[p]
            count += before == 0
            sums[document] = before + weight * values[p]
    return count
