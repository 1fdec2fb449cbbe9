"""Nearest neighbours: the strongest entries of each row of K, without comparing all pairs.

First the heaviest features of each row's document are chosen, then each part adds its postings to
the pool, then each computes K for what of the pool is its own. What comes out does not depend on
how the documents are divided among parts; at a time only one part is looked at.

A document's heaviest features are a query against postings that hold, for each feature, its
strongest documents only. The documents with the largest partial sums are its pool; for those K is
computed exactly, and the strongest are kept. What may be missed is a document that shares only
features in which it is not among the strongest; what is kept has its true value.

Cost a document: at most `Effort.postings` additions and `Effort.pool` sparse inner products,
whatever N is, so the whole is linear in N. Each row depends on nothing but the collection: the
number of threads does not change a bit.
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
    from klsa_search.core.array_types import Positions


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


NearestRows = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int32]]
"""Columns and values of rows, and how many there are in each."""


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
    """The features of documents, numbered from `first` on, in float32.

    features  where each document begins, columns, weights
    centring  S, SΦμ, ‖μ‖²
    """

    first: int
    features: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float32]]
    centring: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], np.float32]

    @classmethod
    def of(cls, kernel: DocumentKernel, first: int = 0) -> DocumentFeatures:
        """Of a kernel of the documents from `first` on."""
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
        """Most features of a document."""
        return int(np.diff(self.features[0]).max(initial=0))


class KnnSearcher:
    """Looks for a chunk of rows at a time.

    rows       of a chunk, at most
    documents  of a part, at most
    longest    most features of a document that is asked for
    Memory: 4 (documents + F), and for each row 16 bytes for each document of the pool and 8 for
    each feature that is asked.
    """

    def __init__(self, params: KnnParams, rows: int, documents: int, F: int, longest: int) -> None:
        width = min(params.features, longest)
        self._limits = (params.features, params.postings)
        self._pool = params.candidates
        self._order = np.zeros(longest, np.int64)
        self._asked = np.zeros((rows, width), np.int32)
        self._asked_weights = np.zeros((rows, width), np.float32)
        self._used = np.zeros(rows, np.int64)
        self._keys = np.zeros((rows, params.candidates + 1), np.int64)
        self._held = np.zeros(rows, np.int64)
        self._found = np.zeros((rows, params.candidates + 1), np.int64)
        self._sizes = np.zeros(rows, np.int64)
        sums = np.zeros(documents, np.float32)
        touched = np.zeros(max(params.postings, params.documents_per_feature) + 1, np.int32)
        self._adding = (
            sums,
            sums.view(np.int32),
            touched,
            np.zeros(4 * params.candidates, np.int64),
        )
        one = np.zeros(1, np.float32)
        self._one = (one, one.view(np.int32))
        others = np.zeros(params.candidates + 1, np.int64)
        self._comparing = (others, np.zeros(F, np.float32), np.zeros(FILTER, np.bool_), *self._one)

    def start(
        self, documents: Positions, own: DocumentFeatures, starts: npt.NDArray[np.integer[Any]]
    ) -> None:
        """Begin with these documents, which are among `own`.

        starts  (F + 1,) where the postings of all parts begin, for each feature
        """
        self._documents, self._own, self._compared = documents, own, False
        self._held[:] = 0
        self._sizes[:] = 0
        _ask(
            documents - own.first, own.features, starts, self._limits, self._order,
            self._asked, self._asked_weights, self._used,
        )  # fmt: skip

    def add_postings(self, first: int, postings: TruncatedPostings) -> None:
        """Add the postings of a part, whose documents are numbered from `first` on."""
        _add(
            self._documents, self._asked, self._asked_weights, self._used, postings, first,
            self._pool, self._adding, self._keys, self._held,
        )  # fmt: skip

    def score(self, part: DocumentFeatures) -> None:
        """Compute K for what of the pool is in this part; all postings are added by now."""
        if not self._compared:  # the document itself
            count = len(self._documents)
            self._keys[np.arange(count), self._held[:count]] = LOW - self._documents
            self._held[:count] += 1
            self._compared = True
        _compare(
            self._documents - self._own.first, self._own.features, self._own.centring,
            part.first, part.features, part.centring,
            self._keys, self._held, self._found, self._sizes, self._comparing,
        )  # fmt: skip

    def write_rows(self, rows: NearestRows, at: int) -> None:
        """Write the strongest entries to the rows from `at` on."""
        _keep(len(self._documents), self._found, self._sizes, at, rows, *self._one)


@compiled
def _ask(
    rows: Any, features: Any, of_feature: Any, limits: Any, order: Any, asked: Any,
    asked_weights: Any, used: Any,
) -> None:  # fmt: skip
    starts, columns, weights = features
    for i in range(len(rows)):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        used[i] = select_query_features(
            columns[begin:end], weights[begin:end], of_feature, limits, order, asked[i],
            asked_weights[i],
        )  # fmt: skip


@compiled
def _add(
    documents: Any, asked: Any, asked_weights: Any, used: Any, postings: Any, first: int,
    pool: int, scratch: Any, keys: Any, held: Any,
) -> None:  # fmt: skip
    sums, sums_bits, touched, merged = scratch
    for i in range(len(documents)):
        size = held[i]
        for j in range(size):
            merged[j] = keys[i, j]
        size = find_candidates(
            documents[i], asked[i], asked_weights[i], used[i], postings, first, pool,
            sums, sums_bits, touched, merged, size,
        )  # fmt: skip
        for j in range(size):
            keys[i, j] = merged[j]
        held[i] = size


@compiled
def _compare(
    rows: Any, own: Any, own_centring: Any, first: int, features: Any, centring: Any,
    keys: Any, held: Any, found: Any, sizes: Any, scratch: Any,
) -> None:  # fmt: skip
    starts, columns, weights = own
    scales, towards_mean, _ = own_centring
    others, wide, asked, one, bits = scratch
    for i in range(len(rows)):
        begin, end = starts[rows[i]], starts[rows[i] + 1]
        row = (columns[begin:end], weights[begin:end], scales[rows[i]], towards_mean[rows[i]])
        sizes[i] = entries_of_row(
            row, first, features, centring, keys[i], held[i], found[i], sizes[i],
            others, wide, asked, one, bits,
        )  # fmt: skip


@compiled
def _keep(count: int, found: Any, sizes: Any, at: int, rows: Any, one: Any, bits: Any) -> None:
    for i in range(count):
        keep_largest(found[i], sizes[i], at + i, rows, one, bits)


_CHUNK = 256  # documents a task


def nearest_rows(
    kernel: DocumentKernel,
    entries: int,
    *,
    threads: int | None = None,
    params: KnnParams | None = None,
    documents: npt.NDArray[np.integer[Any]] | None = None,
    progress: Progress | None = None,
) -> sparse.csr_array:
    """Find the `entries` strongest of each row of K: (N, N) sparse float32, none below 0.

    documents  positions to do, ascending; the rows of all others stay empty. All by default
    threads    as many as the machine has processors by default
    progress   called as "neighbours" with the documents done, and all
    Memory: 16 bytes for each feature of a document, half of them only at first, 8 for each entry
    that is kept, and 4 (N + F) for each thread.
    """
    params = params or KnnParams()
    N, F = kernel.features.shape
    chosen = np.arange(N) if documents is None else np.asarray(documents)
    features = DocumentFeatures.of(kernel)
    postings = truncate_postings(
        kernel.features, posting_scales(kernel), params.documents_per_feature
    )
    rows = empty_rows(len(chosen), entries)
    local = threading.local()

    def work(first: int) -> int:
        if not hasattr(local, "searcher"):
            local.searcher = KnnSearcher(params, _CHUNK, N, F, features.longest)
        searcher: KnnSearcher = local.searcher
        last = min(first + _CHUNK, len(chosen))
        searcher.start(chosen[first:last], features, postings[0])
        searcher.add_postings(0, postings)
        searcher.score(features)
        searcher.write_rows(rows, first)
        return last

    with ThreadPoolExecutor(threads or processors()) as workers:
        for done in workers.map(work, range(0, len(chosen), _CHUNK)):
            if progress is not None:
                progress(NEIGHBOURS, done, len(chosen))
    return rows_to_csr(rows, chosen, (N, N))


def posting_scales(kernel: DocumentKernel) -> npt.NDArray[np.float32]:
    """K(d,d)^-¼: (N,), 0 for the mean document."""
    lengths = np.sqrt(kernel.diagonal)
    inverse = np.divide(1.0, lengths, out=np.zeros(len(kernel)), where=lengths > 0)
    return np.sqrt(inverse).astype(np.float32)


def empty_rows(size: int, width: int) -> NearestRows:
    """Room for rows of so many entries: columns, values, sizes."""
    return (
        np.zeros((size, width), np.int32),
        np.zeros((size, width), np.float32),
        np.zeros(size, np.int32),
    )


def rows_to_csr(
    kept: NearestRows, chosen: npt.NDArray[np.integer[Any]], shape: tuple[int, int]
) -> sparse.csr_array:
    """Make the sparse matrix of what is kept, in the memory it is in; rows are those chosen."""
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


_ENTRIES = 2**22  # of K at a time


def neighbour_graph(kernel: DocumentKernel, count: int) -> sparse.csr_array:
    """W: (N, N) sparse, of each row of K its `count` largest positive entries, scaled to sum 1.

    No document is its own neighbour; ties go by document order. A document that is like no other
    has an empty row. Cost: N rows of K, a block at a time; memory some 40 bytes for each entry of
    a block of `_ENTRIES`, or of one row where that is more.
    """
    N = len(kernel)
    blocks = [sparse.csr_array((0, N))]
    rows_at_once = max(1, _ENTRIES // max(N, 1))
    for begin in range(0, N, rows_at_once):
        documents = np.arange(begin, min(begin + rows_at_once, N))
        rows = kernel.rows(documents)
        rows[np.arange(len(documents)), documents] = 0
        blocks.append(largest_of_rows(rows, count))
    W = sparse.csr_array(sparse.vstack(blocks, format="csr"))
    sums = np.asarray(W.sum(axis=1)).ravel()
    W.data /= np.repeat(sums, np.diff(W.indptr))
    return W


def largest_of_rows(rows: np.ndarray, count: int) -> sparse.csr_array:
    """Keep the `count` largest positive entries of each row, the first ones among equals."""
    width = rows.shape[1]
    kept = np.maximum(rows, 0.0)
    if count < width:
        limits = np.partition(kept, width - count, axis=1)[:, width - count, None]
        level = kept == limits
        room = count - (kept > limits).sum(axis=1, keepdims=True)
        kept[(kept < limits) | (level & (level.cumsum(axis=1) > room))] = 0
    return sparse.csr_array(kept)
