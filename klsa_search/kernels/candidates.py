"""Candidates for the nearest neighbours of a document, by partial sums over truncated postings.

The postings of a feature are truncated to its largest values. Each is scaled by K(x,x)^-¼, because
otherwise long documents dominate the postings, and documents close to the mean the candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.core.compiling import compiled
from klsa_search.core.selection import LOW, select_largest, sort_ascending

TruncatedPostings = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Start of the postings of each feature, their documents in ascending order, and their values."""


def truncate_postings(
    features: sparse.csr_array,
    scales: npt.NDArray[np.float32],
    limit: int,
    *,
    keep_single: bool = False,
) -> TruncatedPostings:
    """Return the `limit` largest postings of each feature, times the scales of the documents.

    keep_single  whether a feature of a single document has postings
    Cost O(nnz); memory 8 bytes per entry temporarily, and 8 bytes per posting kept.
    """
    by_feature = features.tocsc()
    sizes = np.diff(by_feature.indptr)
    kept = np.where(sizes > (0 if keep_single else 1), np.minimum(sizes, limit), 0)
    starts = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
    documents = np.empty(starts[-1], np.int32)
    values = np.empty(starts[-1], np.float32)
    scaled = np.empty(sizes.max(initial=0), np.float32)
    _truncate(
        by_feature.indptr, by_feature.indices, by_feature.data, scales, starts, documents, values,
        scaled, scaled.view(np.int32), np.empty(len(scaled), np.int64),
    )  # fmt: skip
    return starts, documents, values


@compiled
def _truncate(
    whole: Any, documents: Any, weights: Any, scales: Any,
    starts: Any, kept_documents: Any, kept_values: Any, scaled: Any, bits: Any, keys: Any,
) -> None:  # fmt: skip
    """Keep the largest values, the first documents among equals; `bits` views them as integers."""
    for feature in range(len(starts) - 1):
        begin, size = whole[feature], whole[feature + 1] - whole[feature]
        at = starts[feature]
        kept = starts[feature + 1] - at
        if kept == 0:
            continue
        for i in range(size):
            scaled[i] = weights[begin + i] * scales[documents[begin + i]]
        threshold = np.float32(-1)
        ties = 0
        if kept < size:
            for i in range(size):  # positive floats are ordered like their bits
                keys[i] = bits[i]
            select_largest(keys, size, kept)
            place = 0
            while bits[place] != keys[kept - 1]:
                place += 1
            threshold = scaled[place]
            ties = kept
            for i in range(size):
                ties -= scaled[i] > threshold
        for i in range(size):
            if scaled[i] > threshold or (scaled[i] == threshold and ties > 0):
                ties -= scaled[i] == threshold
                kept_documents[at] = documents[begin + i]
                kept_values[at] = scaled[i]
                at += 1


@compiled
def select_query_features(
    columns: Any,
    weights: Any,
    starts: Any,
    limits: Any,
    order: Any,
    query: Any,
    query_weights: Any,
) -> int:
    """Write the largest features of a document to `query`, in order; return their number.

    columns, weights  (m,) its features, none of them negative
    starts            (F + 1,) start of the postings of each feature, over all documents
    limits            maximum number of features and postings
    order             (m,) at least, scratch
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
        query[used], query_weights[used] = columns[at], weights[at]
        spent += postings
        used += 1
        if used == limits[0]:
            break
    return used


@compiled
def find_candidates(
    d: int, query: Any, query_weights: Any, used: int, postings: Any, first: int, limit: int,
    sums: Any, sums_bits: Any, touched: Any, keys: Any, found: int,
) -> int:  # fmt: skip
    """Move the `limit` largest keys of candidates of document d to the front; return their number.

    query      largest features of d, in order, `used` of them
    postings   of the documents from `first` on, numbered from there
    sums       zeros for these documents, also on return; `sums_bits` views them as integers
    keys       (4 · limit,) with `found` keys of earlier documents
    """
    size = 4 * limit
    count = _accumulate(query, query_weights, used, postings, sums, touched)
    least = np.int64(LOW)  # a document touched twice has a sum of 0 the second time
    own = d - first
    low = LOW - first
    for i in range(count):
        x = np.uint32(touched[i])
        # Positive floats are ordered like their bits.
        key = (np.int64(sums_bits[x]) << 32) | (low - np.int64(x))
        sums[x] = 0
        if key > least and x != own:
            keys[found] = key
            found += 1
            if found == size:
                select_largest(keys, found, limit)
                found = limit
                least = keys[limit - 1]  # select_largest puts the smallest last
    if found > limit:
        select_largest(keys, found, limit)
        found = limit
    return found


@compiled
def _accumulate(
    query: Any, query_weights: Any, used: int, postings: Any, sums: Any, touched: Any
) -> int:
    """Add the postings of features in order; return the number of touched documents.

    A document with a sum of 0 may be touched more than once.
    """
    starts, documents, values = postings
    count = 0
    for i in range(used):
        weight = query_weights[i]
        for p in range(starts[query[i]], starts[query[i] + 1]):
            document = np.uint32(documents[p])
            before = sums[document]
            touched[count] = documents[p]
            count += before == 0
            sums[document] = before + weight * values[p]
    return count
