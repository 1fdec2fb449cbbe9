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
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.arrays import narrowed
from klsa_search.kernel.document import DocumentKernel
from klsa_search.kernel.entries import compact
from klsa_search.kernel.looking import Effort, Kept, Looking, Rows
from klsa_search.kernel.pool import cut_postings
from klsa_search.processors import processors
from klsa_search.progress import NEIGHBOURS, Progress

_CHUNK = 256  # documents a task


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
    features = Rows.of(kernel)
    postings = cut_postings(kernel.features, posting_scales(kernel), effort.cut)
    rows = empty_rows(len(chosen), entries)
    local = threading.local()

    def work(first: int) -> int:
        if not hasattr(local, "looking"):
            local.looking = Looking(effort, _CHUNK, N, F, features.longest)
        looking: Looking = local.looking
        last = min(first + _CHUNK, len(chosen))
        looking.ask(chosen[first:last], features, postings[0])
        looking.add(0, postings)
        looking.compare(features)
        looking.keep(rows, first)
        return last

    with ThreadPoolExecutor(threads or processors()) as workers:
        for done in workers.map(work, range(0, len(chosen), _CHUNK)):
            if progress is not None:
                progress(NEIGHBOURS, done, len(chosen))
    return matrix_of(rows, chosen, (N, N))


def posting_scales(kernel: DocumentKernel) -> npt.NDArray[np.float32]:
    """K(d,d)^-¼: (N,), 0 for the mean document."""
    lengths = np.sqrt(kernel.diagonal)
    inverse = np.divide(1.0, lengths, out=np.zeros(len(kernel)), where=lengths > 0)
    return np.sqrt(inverse).astype(np.float32)


def empty_rows(size: int, width: int) -> Kept:
    """Room for rows of so many entries: columns, values, sizes."""
    return (
        np.zeros((size, width), np.int32),
        np.zeros((size, width), np.float32),
        np.zeros(size, np.int32),
    )


def matrix_of(
    kept: Kept, chosen: npt.NDArray[np.integer[Any]], shape: tuple[int, int]
) -> sparse.csr_array:
    """Make the sparse matrix of what is kept, in the memory it is in; rows are those chosen."""
    columns, values, sizes = kept
    total = compact(columns, values, sizes)
    of_document = np.zeros(shape[0], np.int64)
    of_document[chosen] = sizes
    starts = narrowed(np.concatenate(([0], np.cumsum(of_document))))
    matrix = sparse.csr_array(
        (values.ravel()[:total], columns.ravel()[:total], starts), shape=shape
    )
    matrix.has_sorted_indices = True
    return matrix
