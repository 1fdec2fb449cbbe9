"""The nearest documents of each document, as a sparse graph."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klsa_search.kernel.document import DocumentKernel

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
        blocks.append(strongest_of_rows(rows, count))
    W = sparse.csr_array(sparse.vstack(blocks, format="csr"))
    sums = np.asarray(W.sum(axis=1)).ravel()
    W.data /= np.repeat(sums, np.diff(W.indptr))
    return W


def strongest_of_rows(rows: np.ndarray, count: int) -> sparse.csr_array:
    """Keep the `count` largest positive entries of each row, the first ones among equals."""
    width = rows.shape[1]
    kept = np.maximum(rows, 0.0)
    if count < width:
        limits = np.partition(kept, width - count, axis=1)[:, width - count, None]
        level = kept == limits
        room = count - (kept > limits).sum(axis=1, keepdims=True)
        kept[(kept < limits) | (level & (level.cumsum(axis=1) > room))] = 0
    return sparse.csr_array(kept)
