"""Nearest neighbours: the largest entries of each row of K, without comparing all pairs.

The largest features of a document are a query against truncated postings, which have only the
largest documents of each feature. The documents with the largest partial sums are candidates, for
which K is computed exactly; the largest entries are kept. A document can be missed if it is not
among the largest of any shared feature; entries kept are exact.

Documents can be divided into parts, of which one is in memory at a time: all parts add their
postings to the candidates, then each computes K for its own. The division does not change the
result, nor does the number of threads.

Cost per document: at most `KnnParams.postings` additions and `KnnParams.candidates` sparse inner
products, independent of N.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.core.array_types import narrow_indptr
from klsa_search.core.compiling import compiled
from klsa_search.core.parallel import processors
from klsa_search.core.progress import NEIGHBOURS, Progress
from klsa_search.core.selection import LOW, select_largest, sort_ascending
from klsa_search.kernels.candidates import (
    TruncatedPostings,
    find_candidates,
    select_query_features,
    truncate_postings,
)
from klsa_search.kernels.document_kernel import DocumentKernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from klsa_search.core.array_types import DocIds


FILTER = 1 << 14
"""Bytes of the filter that saves lookups; fits the L1 cache."""


@compiled
def score_candidates(
    own: Any, first: int, features: Any, centring: Any, candidates: Any, found: int, keys: Any,
    size: int, others: Any, dense: Any, filter_: Any, one: Any, bits: Any,
) -> int:  # fmt: skip
    """Add the keys of the positive entries of a row in the documents from `first` on.

    own         columns and weights of the document of the row, S and SΦμ
    features    of the documents from `first` on; `centring` likewise
    candidates  (found,) keys of documents; those of other parts are skipped
    keys        value and document of each entry, `size` of them so far
    others      (found,) at least, scratch
    dense       (F,) zeros, also on return; `filter_` likewise, indexed by the lowest bits
    one         (1,) float32, which `bits` views as an integer
    Returns the new number of entries.
    """
    starts, columns, weights = features
    scales, towards_mean, mean_square = centring
    own_columns, own_weights, scale, towards = own
    count = 0
    for i in range(found):
        x = LOW - (candidates[i] & LOW) - first
        if 0 <= x < len(scales):
            others[count] = x
            count += 1
    if count == 0:
        return size
    mask = np.int32(FILTER - 1)
    for p in range(len(own_columns)):
        dense[np.uint32(own_columns[p])] = own_weights[p]
        filter_[own_columns[p] & mask] = True
    for i in range(count):
        x = others[i]
        total = np.float32(0)
        for p in range(starts[x], starts[x + 1]):
            if filter_[columns[p] & mask]:
                total += weights[p] * dense[np.uint32(columns[p])]
        total -= towards * scales[x] + scale * (towards_mean[x] - scales[x] * mean_square)
        if total <= 0:
            continue
        one[0] = total
        keys[size] = (np.int64(bits[0]) << 32) | (LOW - x - first)
        size += 1
    for p in range(len(own_columns)):
        dense[np.uint32(own_columns[p])] = 0
        filter_[own_columns[p] & mask] = False
    return size


@compiled
def write_row(keys: Any, size: int, at: int, kept: Any, one: Any, bits: Any) -> None:
    """Write the entries of the largest keys to row `at`, in document order."""
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
    """Move the first sizes[i] entries of all rows i to the front; return their number."""
    flat_columns, flat_values = columns.ravel(), values.ravel()
    total = 0
    for row in range(len(sizes)):
        first = row * columns.shape[1]
        for p in range(first, first + sizes[row]):
            flat_columns[total], flat_values[total] = flat_columns[p], flat_values[p]
            total += 1
    return total


NearestRows = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int32]]
"""Columns and values of rows, and their number in each."""


@dataclass(frozen=True)
class KnnParams:
    """Limits of the search for neighbours, which trade time for recall.

    documents_per_feature  documents in the truncated postings of a feature, its largest
    features               features of a document in its query, its largest
    postings               postings added for a document
    candidates             documents whose K is computed
    """

    documents_per_feature: int = 2000
    features: int = 80
    postings: int = 80_000
    candidates: int = 200


class DocumentFeatures(NamedTuple):
    """The features of documents with doc ids from `first` on, in float32.

    features  start of each document, columns, weights
    centring  S, SΦμ, ‖μ‖²
    """

    first: int
    features: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float32]]
    centring: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], np.float32]

    @classmethod
    def of(cls, kernel: DocumentKernel, first: int = 0) -> DocumentFeatures:
        """Return the features of a kernel of the documents from `first` on."""
        return cls(
            first,
            (
                kernel.features.indptr,
                kernel.features.indices,
                kernel.features.data.astype(np.float32, copy=False),
            ),
            (
                kernel.scales.astype(np.float32),
                kernel.towards_mean.astype(np.float32),
                np.float32(kernel.mean_square),
            ),
        )

    @property
    def longest(self) -> int:
        """Return the maximum number of features of a document."""
        return int(np.diff(self.features[0]).max(initial=0))


class KnnPart(NamedTuple):
    """Documents among which neighbours are found: all of a collection, or some.

    features  of the documents
    postings  truncated, with documents numbered from 0 in the part
    """

    features: DocumentFeatures
    postings: TruncatedPostings

    @classmethod
    def of(
        cls, kernel: DocumentKernel, params: KnnParams, first: int = 0, parts: int = 1
    ) -> KnnPart:
        """Return a part with the documents of a kernel, doc ids from `first` on.

        parts  number of parts, which share the limit of documents of a feature
        """
        postings = truncate_postings(
            kernel.features,
            posting_scales(kernel),
            -(-params.documents_per_feature // parts),
            keep_single=parts > 1,
        )
        return cls(DocumentFeatures.of(kernel, first), postings)


class KnnSearcher:
    """Finds the neighbours of a chunk of documents at a time.

    rows       maximum number of documents in a chunk
    documents  maximum number of documents in a part
    longest    maximum number of features of a document
    Memory: 4 (documents + F) bytes, and per row 16 bytes per candidate and 8 per query feature.
    """

    def __init__(self, params: KnnParams, rows: int, documents: int, F: int, longest: int) -> None:
        width = min(params.features, longest)
        self._limits = (params.features, params.postings)
        self._limit = params.candidates
        self._order = np.zeros(longest, np.int64)
        self._query = np.zeros((rows, width), np.int32)
        self._query_weights = np.zeros((rows, width), np.float32)
        self._used = np.zeros(rows, np.int64)
        self._keys = np.zeros((rows, params.candidates + 1), np.int64)
        self._counts = np.zeros(rows, np.int64)
        self._entries = np.zeros((rows, params.candidates + 1), np.int64)
        self._sizes = np.zeros(rows, np.int64)
        sums = np.zeros(documents, np.float32)
        touched = np.zeros(max(params.postings, params.documents_per_feature) + 1, np.int32)
        self._add_scratch = (
            sums,
            sums.view(np.int32),
            touched,
            np.zeros(4 * params.candidates, np.int64),
        )
        one = np.zeros(1, np.float32)
        self._one = (one, one.view(np.int32))
        others = np.zeros(params.candidates + 1, np.int64)
        self._score_scratch = (
            others,
            np.zeros(F, np.float32),
            np.zeros(FILTER, np.bool_),
            *self._one,
        )

    def start(
        self, documents: DocIds, own: DocumentFeatures, starts: npt.NDArray[np.integer[Any]]
    ) -> None:
        """Start with documents of the part `own`.

        starts  (F + 1,) start of the postings of each feature, over all parts
        """
        self._documents, self._own, self._has_own = documents, own, False
        self._counts[:] = 0
        self._sizes[:] = 0
        _select_query(
            documents - own.first, own.features, starts, self._limits, self._order,
            self._query, self._query_weights, self._used,
        )  # fmt: skip

    def add_postings(self, first: int, postings: TruncatedPostings) -> None:
        """Add the postings of a part, with doc ids from `first` on."""
        _add_postings(
            self._documents, self._query, self._query_weights, self._used, postings, first,
            self._limit, self._add_scratch, self._keys, self._counts,
        )  # fmt: skip

    def score(self, part: DocumentFeatures) -> None:
        """Compute K for the candidates in this part, after the postings of all parts are added."""
        if not self._has_own:  # the document itself
            count = len(self._documents)
            self._keys[np.arange(count), self._counts[:count]] = LOW - self._documents
            self._counts[:count] += 1
            self._has_own = True
        _score(
            self._documents - self._own.first, self._own.features, self._own.centring,
            part.first, part.features, part.centring,
            self._keys, self._counts, self._entries, self._sizes, self._score_scratch,
        )  # fmt: skip

    def write_rows(self, rows: NearestRows, at: int) -> None:
        """Write the largest entries to the rows from `at` on."""
        _write_rows(len(self._documents), self._entries, self._sizes, at, rows, *self._one)


@compiled
def _select_query(
    rows: Any, features: Any, of_feature: Any, limits: Any, order: Any, query: Any,
    query_weights: Any, used: Any,
) -> None:  # fmt: skip
    starts, columns, weights = features
    for i in range(len(rows)):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        used[i] = select_query_features(
            columns[begin:end], weights[begin:end], of_feature, limits, order, query[i],
            query_weights[i],
        )  # fmt: skip


@compiled
def _add_postings(
    documents: Any, query: Any, query_weights: Any, used: Any, postings: Any, first: int,
    limit: int, scratch: Any, keys: Any, counts: Any,
) -> None:  # fmt: skip
    sums, sums_bits, touched, merged = scratch
    for i in range(len(documents)):
        size = counts[i]
        for j in range(size):
            merged[j] = keys[i, j]
        size = find_candidates(
            documents[i], query[i], query_weights[i], used[i], postings, first, limit,
            sums, sums_bits, touched, merged, size,
        )  # fmt: skip
        for j in range(size):
            keys[i, j] = merged[j]
        counts[i] = size


@compiled
def _score(
    rows: Any, own: Any, own_centring: Any, first: int, features: Any, centring: Any,
    keys: Any, counts: Any, entries: Any, sizes: Any, scratch: Any,
) -> None:  # fmt: skip
    starts, columns, weights = own
    scales, towards_mean, _ = own_centring
    others, dense, filter_, one, bits = scratch
    for i in range(len(rows)):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        row = (columns[begin:end], weights[begin:end], scales[rows[i]], towards_mean[rows[i]])
        sizes[i] = score_candidates(
            row, first, features, centring, keys[i], counts[i], entries[i], sizes[i],
            others, dense, filter_, one, bits,
        )  # fmt: skip


@compiled
def _write_rows(
    count: int, found: Any, sizes: Any, at: int, rows: Any, one: Any, bits: Any
) -> None:
    for i in range(count):
        write_row(found[i], sizes[i], at + i, rows, one, bits)


_CHUNK = 256  # documents per task


def nearest_rows(
    kernel: DocumentKernel,
    entries: int,
    *,
    threads: int | None = None,
    params: KnnParams | None = None,
    documents: npt.NDArray[np.integer[Any]] | None = None,
    progress: Progress | None = None,
) -> sparse.csr_array:
    """Return the `entries` largest of each row of K: (N, N) sparse float32, none below 0.

    documents  doc ids of the rows to compute, ascending; others stay empty. All by default
    threads    by default the number of processors
    progress   called as "neighbours" with the number of documents done and the total
    Memory: 16 bytes per feature of a document, half of them temporarily, 8 per entry, and
    4 (N + F) per thread.
    """
    part = KnnPart.of(kernel, params or KnnParams())
    return nearest_rows_in_parts(
        [part], 0, entries,
        threads=threads, params=params, documents=documents, progress=progress,
    )  # fmt: skip


def nearest_rows_in_parts(
    parts: Sequence[KnnPart],
    own: int,
    entries: int,
    *,
    threads: int | None = None,
    params: KnnParams | None = None,
    documents: npt.NDArray[np.integer[Any]] | None = None,
    progress: Progress | None = None,
) -> sparse.csr_array:
    """Return the `entries` largest of each row of K of one part: (n, N) sparse float32.

    parts      of N documents together
    own        number of the part, which has n documents
    documents  of the rows to compute, numbered from 0 in the part; others stay empty
    See `nearest_rows` for the other parameters.
    """
    params = params or KnnParams()
    starts = _starts_of([part.postings[0] for part in parts])
    F = len(starts) - 1
    features = parts[own].features
    n, sizes = len(features.centring[0]), [len(part.features.centring[0]) for part in parts]
    chosen = np.arange(n) if documents is None else np.asarray(documents)
    rows = empty_rows(len(chosen), entries)
    local = threading.local()

    def work(first: int) -> int:
        if not hasattr(local, "searcher"):
            local.searcher = KnnSearcher(params, _CHUNK, max(sizes), F, features.longest)
        searcher: KnnSearcher = local.searcher
        last = min(first + _CHUNK, len(chosen))
        searcher.start(features.first + chosen[first:last], features, starts)
        for part in parts:
            searcher.add_postings(part.features.first, part.postings)
        for part in parts:
            searcher.score(part.features)
        searcher.write_rows(rows, first)
        return last

    with ThreadPoolExecutor(threads or processors()) as workers:
        for done in workers.map(work, range(0, len(chosen), _CHUNK)):
            if progress is not None:
                progress(NEIGHBOURS, done, len(chosen))
    return rows_to_csr(rows, chosen, (n, sum(sizes)))


def _starts_of(parts: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """Return the start of the postings of each feature over all parts: (F + 1,).

    parts  starts in each part
    A feature of a single document has no postings.
    """
    sizes = sum((np.diff(starts) for starts in parts), np.int64(0))
    sizes = np.where(sizes > 1, sizes, 0)
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def posting_scales(kernel: DocumentKernel) -> npt.NDArray[np.float32]:
    """Return K(d,d)^-¼: (N,), 0 for the mean document."""
    lengths = np.sqrt(kernel.diagonal)
    inverse = np.divide(1.0, lengths, out=np.zeros(len(kernel)), where=lengths > 0)
    return np.sqrt(inverse).astype(np.float32)


def empty_rows(size: int, width: int) -> NearestRows:
    """Return empty rows of up to `width` entries."""
    return (
        np.zeros((size, width), np.int32),
        np.zeros((size, width), np.float32),
        np.zeros(size, np.int32),
    )


def rows_to_csr(
    kept: NearestRows, chosen: npt.NDArray[np.integer[Any]], shape: tuple[int, int]
) -> sparse.csr_array:
    """Return a sparse matrix with the rows `chosen`, in the memory of `kept`."""
    columns, values, sizes = kept
    total = compact(columns, values, sizes)
    of_document = np.zeros(shape[0], np.int64)
    of_document[chosen] = sizes
    starts = narrow_indptr(np.concatenate(([0], np.cumsum(of_document))))
    matrix = sparse.csr_array(
        (values.ravel()[:total], columns.ravel()[:total], starts), shape=shape
    )
    matrix.has_sorted_indices = True
    return matrix
