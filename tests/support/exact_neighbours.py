"""Exact nearest neighbours by complete rows of K: the oracle of the search for neighbours."""

import numpy as np
from scipy import sparse

from klsa_search.kernels.document_kernel import DocumentKernel


def neighbour_graph(kernel: DocumentKernel, count: int) -> sparse.csr_array:
    """Return W: (N, N) sparse, the `count` largest positive entries of each row of K, with sum 1.

    The diagonal is left out; ties go to the first document.
    """
    rows = kernel.explicit()
    np.fill_diagonal(rows, 0)
    W = largest_of_rows(rows, count)
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
