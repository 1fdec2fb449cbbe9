"""The nearest documents of each document, as a sparse symmetric graph."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from klsa_search.kernel.document import DocumentKernel

_BLOCK = 512


def neighbour_graph(kernel: DocumentKernel, count: int) -> sparse.csr_array:
    """W: (N, N) sparse float64, each document's `count` nearest by the cosine of K.

    An edge holds where either end is among the other's nearest, with the cosine as its weight, and
    W is divided by the square roots of both ends' sums, so that its largest eigenvalue is 1. No
    document is its own neighbour; only positive cosines count. Ties go by document order.
    Cost: N rows of K, a block at a time.
    """
    N = len(kernel)
    lengths = np.sqrt(kernel.diagonal)
    inverse = np.divide(1.0, lengths, out=np.zeros(N), where=lengths > 0)
    blocks = [sparse.csr_array((0, N))]
    for begin in range(0, N, _BLOCK):
        documents = np.arange(begin, min(begin + _BLOCK, N))
        cosines = kernel.rows(documents) * inverse[documents, None] * inverse
        cosines[np.arange(len(documents)), documents] = 0
        blocks.append(strongest_of_rows(cosines, count))
    return balanced_graph(sparse.csr_array(sparse.vstack(blocks, format="csr")))


def balanced_graph(nearest: sparse.csr_array) -> sparse.csr_array:
    """Make W of each document's nearest and their cosines: (N, N), symmetric, balanced."""
    either = sparse.csr_array(nearest.maximum(nearest.T))
    sums = np.asarray(either.sum(axis=1), dtype=np.float64).ravel()
    balance = np.divide(1.0, np.sqrt(sums), out=np.zeros(len(sums)), where=sums > 0)
    either.data *= np.repeat(balance, np.diff(either.indptr)) * balance[either.indices]
    either.sort_indices()
    return either


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
