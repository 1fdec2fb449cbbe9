"""The neighbour graph: exact nearest neighbours of all documents, by whole rows of K."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klsa_search.kernels.document_kernel import DocumentKernel

_ENTRIES = 2**22  # entries of K in memory at a time


def neighbour_graph(kernel: DocumentKernel, count: int) -> sparse.csr_array:
    """Return W: (N, N) sparse, the `count` largest positive entries of each row of K, with sum 1.

    The diagonal is left out; ties go to the first document. A document without similar ones has an
    empty row. Cost: N rows of K, a block at a time; memory about 40 bytes per entry of a block of
    `_ENTRIES`, or of one row if that is more.
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
    """Return the `count` largest positive entries of each row, the first ones among equals."""
    width = rows.shape[1]
    kept = np.maximum(rows, 0.0)
    if count < width:
        limits = np.partition(kept, width - count, axis=1)[:, width - count, None]
        is_tied = kept == limits
        ties = count - (kept > limits).sum(axis=1, keepdims=True)
        kept[(kept < limits) | (is_tied & (is_tied.cumsum(axis=1) > ties))] = 0
    return sparse.csr_array(kept)
