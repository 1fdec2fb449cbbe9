"""The strongest entries of each row of K, without looking at all pairs of documents.

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
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.arrays import narrowed
from klsa_search.compiled import compiled
from klsa_search.kernel.document import DocumentKernel
from klsa_search.kernel.entries import FILTER, compact, entries_of_row, keep_largest
from klsa_search.kernel.pool import cut_postings, find_pool
from klsa_search.processors import processors
from klsa_search.progress import NEIGHBOURS, Progress
from klsa_search.selection import LOW

_CHUNK = 256  # documents a task

_Kept = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int32]]


@dataclass(frozen=True)
class Effort:
    """How hard to look.

    cut       documents kept of a feature, its strongest
    features  of a document that are asked, its heaviest
    postings  that are added for a document
    pool      documents whose K is computed
    """

    cut: int = 2000
    features: int = 80
    postings: int = 80_000
    pool: int = 200


def nearest_rows(
    kernel: DocumentKernel,
    entries: int,
    *,
    threads: int | None = None,
    effort: Effort | None = None,
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
    effort = effort or Effort()
    N, F = kernel.features.shape
    chosen = np.arange(N) if documents is None else np.asarray(documents)
    starts = kernel.features.indptr
    features = (
        starts,
        kernel.features.indices,
        kernel.features.data.astype(np.float32, copy=False),
    )
    lengths = np.sqrt(kernel.diagonal)
    inverse = np.divide(1.0, lengths, out=np.zeros(N), where=lengths > 0)
    postings = cut_postings(kernel.features, np.sqrt(inverse).astype(np.float32), effort.cut)
    centring = (
        kernel.scales.astype(np.float32),
        kernel.towards_mean.astype(np.float32),
        np.float32(kernel.mean_square),
    )
    limits = (effort.features, effort.postings, effort.pool)
    longest = int(np.diff(starts).max(initial=0))
    rows = _empty(len(chosen), entries)
    local = threading.local()

    def work(first: int) -> int:
        if not hasattr(local, "scratch"):
            local.scratch = _scratch(N, F, effort, longest)
        last = min(first + _CHUNK, len(chosen))
        _search(
            chosen[first:last], first, features, postings, centring, limits, local.scratch, rows
        )  # fmt: skip
        return last

    with ThreadPoolExecutor(threads or processors()) as workers:
        for done in workers.map(work, range(0, len(chosen), _CHUNK)):
            if progress is not None:
                progress(NEIGHBOURS, done, len(chosen))
    return _matrix(rows, chosen, N)


def _empty(size: int, width: int) -> _Kept:
    return (
        np.zeros((size, width), np.int32),
        np.zeros((size, width), np.float32),
        np.zeros(size, np.int32),
    )


def _matrix(kept: _Kept, chosen: npt.NDArray[np.integer[Any]], N: int) -> sparse.csr_array:
    """Make the sparse matrix of what is kept, in the memory it is in."""
    columns, values, sizes = kept
    total = compact(columns, values, sizes)
    of_document = np.zeros(N, np.int64)
    of_document[chosen] = sizes
    starts = narrowed(np.concatenate(([0], np.cumsum(of_document))))
    matrix = sparse.csr_array(
        (values.ravel()[:total], columns.ravel()[:total], starts), shape=(N, N)
    )
    matrix.has_sorted_indices = True
    return matrix


def _scratch(N: int, F: int, effort: Effort, longest: int) -> tuple[npt.NDArray[Any], ...]:
    """Memory of one thread: for the pool, for the entries, and one float with its bits."""
    sums = np.zeros(N, np.float32)
    one = np.zeros(1, np.float32)
    return (
        sums,
        sums.view(np.int32),
        np.zeros(max(effort.postings, effort.cut) + 1, np.int32),
        np.zeros(max(longest, 4 * effort.pool + 1), np.int64),
        np.zeros(F, np.float32),
        np.zeros(FILTER, np.bool_),
        one,
        one.view(np.int32),
    )


@compiled
def _search(
    chosen: Any, offset: int, features: Any, postings: Any, centring: Any, limits: Any,
    scratch: Any, rows: Any,
) -> None:  # fmt: skip
    starts, columns, weights = features
    sums, sums_bits, touched, keys, wide, asked, one, bits = scratch
    for number in range(len(chosen)):
        d = chosen[number]
        begin, end = starts[d], starts[d + 1]
        held = find_pool(
            d, columns[begin:end], weights[begin:end], postings, limits,
            sums, sums_bits, touched, keys,
        )  # fmt: skip
        keys[held] = LOW - d  # the document itself
        size = entries_of_row(d, features, centring, keys, held + 1, wide, asked, one, bits)
        keep_largest(keys, size, offset + number, rows, one, bits)
