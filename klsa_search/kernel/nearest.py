"""The strongest entries of each row of K, without looking at all pairs of documents.

A document's heaviest features are a query against postings that hold, for each feature, its
strongest documents only. The documents with the largest partial sums are its pool; for those K is
computed exactly, and the strongest are kept. What may be missed is a document that shares many weak
features with another and no strong one; what is kept has its true value.

Cost a document: at most `_POSTINGS` additions and `_POOL` sparse inner products, whatever N is, so
the whole is linear in N. Each row depends on nothing but the collection: the number of threads does
not change a bit.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.compiled import compiled
from klsa_search.kernel.document import DocumentKernel

_CUT = 4000  # documents kept of a feature
_FEATURES = 24  # of a document that are asked
_POSTINGS = 40_000  # that are added for a document
_POOL = 300  # documents whose K is computed
_CHUNK = 256  # documents a task
_FILTER = 1 << 14  # bytes of the filter that spares look-ups; fits the first cache

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Nearest:
    """What a pass over the documents finds.

    rows     (N, N) sparse float32: of each row of K its strongest positive entries, the diagonal
             among them
    cosines  (N, N) sparse float32: of each row the largest positive cosines, without the diagonal
    """

    rows: sparse.csr_array
    cosines: sparse.csr_array


@dataclass(frozen=True)
class Effort:
    """How hard to look; the defaults keep .98 of the mass of exact rows at 300,000 documents."""

    cut: int = _CUT
    features: int = _FEATURES
    postings: int = _POSTINGS
    pool: int = _POOL


def nearest_rows(
    kernel: DocumentKernel,
    entries: int,
    count: int,
    *,
    threads: int | None = None,
    effort: Effort | None = None,
    documents: npt.NDArray[np.integer[Any]] | None = None,
) -> Nearest:
    """Find the `entries` strongest of each row of K, and its `count` largest cosines.

    documents  positions to do, ascending; the rows of all others stay empty. All by default
    threads    as many as the machine has processors by default
    Memory: 12 bytes for each feature of a document, 8 for each entry that is kept.
    """
    effort = effort or Effort()
    N, F = kernel.features.shape
    chosen = np.arange(N) if documents is None else np.asarray(documents)
    features = (
        kernel.features.indptr.astype(np.int64),
        kernel.features.indices.astype(np.int32, copy=False),
        kernel.features.data.astype(np.float32),
    )
    postings = _cut_postings(kernel.features, effort.cut)
    lengths = np.sqrt(kernel.diagonal)
    inverse = np.divide(1.0, lengths, out=np.zeros(N), where=lengths > 0)
    centring = (
        kernel.scales.astype(np.float32),
        kernel.towards_mean.astype(np.float32),
        np.float32(kernel.mean_square),
        inverse.astype(np.float32),
    )
    longest = int(np.diff(features[0]).max(initial=0))
    kept_rows = _empty(len(chosen), entries)
    kept_cosines = _empty(len(chosen), count)
    local = threading.local()

    def work(first: int) -> None:
        if not hasattr(local, "scratch"):
            local.scratch = _scratch(N, F, effort, longest)
        last = min(first + _CHUNK, len(chosen))
        limits = (effort.features, effort.postings, effort.pool)
        _search(
            chosen[first:last], first, features, postings, centring, limits, local.scratch,
            kept_rows, kept_cosines,
        )  # fmt: skip

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as workers:
        for _ in workers.map(work, range(0, len(chosen), _CHUNK)):
            pass
    return Nearest(_matrix(kept_rows, chosen, N), _matrix(kept_cosines, chosen, N))


def _empty(size: int, width: int) -> tuple[npt.NDArray[np.int32], _Floats, npt.NDArray[np.int32]]:
    return (
        np.zeros((size, width), np.int32),
        np.zeros((size, width), np.float32),
        np.zeros(size, np.int32),
    )


def _matrix(
    kept: tuple[npt.NDArray[np.int32], _Floats, npt.NDArray[np.int32]],
    chosen: npt.NDArray[np.integer[Any]],
    N: int,
) -> sparse.csr_array:
    columns, values, sizes = kept
    held = np.arange(columns.shape[1]) < sizes[:, None]
    of_document = np.zeros(N, np.int64)
    of_document[chosen] = sizes
    starts = np.concatenate(([0], np.cumsum(of_document)))
    matrix = sparse.csr_array((values[held], columns[held], starts), shape=(N, N))
    matrix.has_sorted_indices = True
    return matrix


def _scratch(N: int, F: int, effort: Effort, longest: int) -> tuple[npt.NDArray[Any], ...]:
    sums = np.zeros(N, np.float32)
    values = np.zeros(effort.pool + 1, np.float32)
    return (
        sums,
        sums.view(np.int32),
        np.zeros(min(N, effort.postings + effort.cut) + 1, np.int32),
        np.zeros(F, np.float32),
        np.zeros(_FILTER, np.bool_),
        np.zeros(max(longest, 4 * (effort.pool + 1)), np.int64),
        values,
        values.view(np.int32),
        np.zeros(effort.pool + 1, np.int64),
    )


def _cut_postings(
    features: sparse.csr_array, cut: int
) -> tuple[_Ints, npt.NDArray[np.int32], _Floats]:
    """Postings of each feature, cut to its strongest, in document order; none for a single one."""
    by_feature = features.astype(np.float32).tocsc()
    sizes = np.diff(by_feature.indptr)
    kept = np.where(sizes > 1, np.minimum(sizes, cut), 0)
    starts = np.concatenate(([0], np.cumsum(kept))).astype(np.int64)
    documents = np.empty(starts[-1], np.int32)
    values = np.empty(starts[-1], np.float32)
    _cut(
        by_feature.indptr.astype(np.int64), by_feature.indices.astype(np.int32, copy=False),
        by_feature.data, starts, documents, values,
    )  # fmt: skip
    return starts, documents, values


@compiled
def _cut(
    whole: Any, documents: Any, values: Any, starts: Any, kept_documents: Any, kept_values: Any
) -> None:
    for feature in range(len(starts) - 1):
        begin, end = whole[feature], whole[feature + 1]
        at = starts[feature]
        room = starts[feature + 1] - at
        if room == 0:
            continue
        level = np.float32(-1)
        level_room = 0
        if room < end - begin:
            level = np.sort(values[begin:end])[end - begin - room]
            level_room = room
            for i in range(begin, end):
                level_room -= values[i] > level
        for i in range(begin, end):
            value = values[i]
            if value > level or (value == level and level_room > 0):
                level_room -= value == level
                kept_documents[at] = documents[i]
                kept_values[at] = value
                at += 1


@compiled
def select_largest(keys: Any, size: int, k: int) -> None:
    """Move the k largest of keys[:size] to the front, in any order. Cost O(size)."""
    low, high = 0, size - 1
    while low < high:
        a, b, c = keys[low], keys[(low + high) >> 1], keys[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while keys[i] > pivot:
                i += 1
            while keys[j] < pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@compiled
def _accumulate(
    begin: int,
    end: int,
    columns: Any,
    weights: Any,
    postings: Any,
    limits: Any,
    sums: Any,
    touched: Any,
    order: Any,
) -> int:
    """Add the postings of the heaviest features, heaviest first; return how many are touched."""
    starts, documents, values = postings
    most, budget, _ = limits
    size = end - begin
    bits = weights[begin:end].view(np.int32)
    for i in range(size):
        order[i] = (np.int64(bits[i]) << 32) | (np.int64(0xFFFFFFFF) - i)
    order[:size].sort()
    count, used, spent = 0, 0, 0
    for i in range(size - 1, -1, -1):
        at = begin + np.int64(0xFFFFFFFF) - (order[i] & np.int64(0xFFFFFFFF))
        first, last = starts[columns[at]], starts[columns[at] + 1]
        if first == last or (used > 0 and spent + last - first > budget):
            continue
        weight = weights[at]
        for p in range(first, last):
            document = np.uint32(documents[p])
            touched[count] = documents[p]
            count += sums[document] == 0
            sums[document] += weight * values[p]
        spent += last - first
        used += 1
        if used == most:
            break
    return count


@compiled
def _keep(keys: Any, size: int, bits: Any, width: int, at: int, columns: Any, values: Any) -> int:
    """Write the `width` largest keys (value, then first position), ordered by position."""
    kept = min(size, width)
    if size > width:
        select_largest(keys, size, width)
    for i in range(kept):
        key = keys[i]
        keys[i] = ((np.int64(0xFFFFFFFF) - (key & np.int64(0xFFFFFFFF))) << 32) | (key >> 32)
    keys[:kept].sort()
    for i in range(kept):
        columns[at, i] = keys[i] >> 32
        bits[0] = keys[i] & np.int64(0xFFFFFFFF)
        values[at, i] = bits.view(np.float32)[0]
    return kept


@compiled
def _search(
    chosen: Any,
    offset: int,
    features: Any,
    postings: Any,
    centring: Any,
    limits: Any,
    scratch: Any,
    rows: Any,
    cosines: Any,
) -> None:
    starts, columns, weights = features
    scales, towards_mean, mean_square, inverse = centring
    sums, sums_bits, touched, wide, asked, keys, exact, exact_bits, second = scratch
    pool = limits[2]
    room = 4 * pool
    mask = np.int32(len(asked) - 1)
    one = np.zeros(1, np.int32)
    low = np.int64(0xFFFFFFFF)
    for number in range(len(chosen)):
        d = chosen[number]
        begin, end = starts[d], starts[d + 1]
        count = _accumulate(begin, end, columns, weights, postings, limits, sums, touched, keys)
        held = 0
        least = np.int64(0)
        for i in range(count):
            x = np.int64(touched[i])
            key = (np.int64(sums_bits[x]) << 32) | (low - x)
            sums[x] = 0
            if key > least and x != d:
                keys[held] = key
                held += 1
                if held == room:
                    select_largest(keys, held, pool)
                    held = pool
                    least = keys[:pool].min()
        if held > pool:
            select_largest(keys, held, pool)
            held = pool
        keys[held] = low - d  # the document itself
        for i in range(begin, end):
            wide[columns[i]] = weights[i]
            asked[columns[i] & mask] = True
        size, size_of_cosines = 0, 0
        for i in range(held + 1):
            x = low - (keys[i] & low)
            total = np.float32(0)
            for p in range(starts[x], starts[x + 1]):
                if asked[columns[p] & mask]:
                    total += weights[p] * wide[columns[p]]
            total -= towards_mean[d] * scales[x] + scales[d] * (
                towards_mean[x] - scales[x] * mean_square
            )
            if total <= 0:
                continue
            exact[0] = total
            keys[size] = (np.int64(exact_bits[0]) << 32) | (low - x)
            size += 1
            cosine = total * inverse[d] * inverse[x]
            if x != d and cosine > 0:
                exact[0] = cosine
                second[size_of_cosines] = (np.int64(exact_bits[0]) << 32) | (low - x)
                size_of_cosines += 1
        for i in range(begin, end):
            wide[columns[i]] = 0
            asked[columns[i] & mask] = False
        at = offset + number
        rows[2][at] = _keep(keys, size, one, rows[0].shape[1], at, rows[0], rows[1])
        cosines[2][at] = _keep(
            second, size_of_cosines, one, cosines[0].shape[1], at, cosines[0], cosines[1]
        )
