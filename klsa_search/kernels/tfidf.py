"""Counts → the log-tf·idf weights of latent semantic indexing: log(1 + f) · log(N / n_t) [LSK]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.kernels.counts import TermCounts

if TYPE_CHECKING:
    from scipy import sparse


def document_features(counts: TermCounts) -> sparse.csr_array:
    """(N, V) sparse float64: log(1 + f(t,d)) · log(N / n_t). Cost O(nnz)."""
    return weighted(counts.matrix, idf(counts.matrix))


def idf(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """log(N / n_t) of counts (N, V) without stored zeros: (V,); 0 where no document holds t."""
    N, columns = matrix.shape
    frequencies = np.bincount(matrix.indices, minlength=columns)
    return np.asarray(np.log(max(N, 1) / np.where(frequencies > 0, frequencies, max(N, 1))))


def weighted(matrix: sparse.csr_array, weights: npt.NDArray[np.float64]) -> sparse.csr_array:
    """Counts (n, V) → log(1 + f(t,d)) · weight of t. Cost O(nnz)."""
    features = matrix.astype(np.float64)
    features.data = np.log1p(features.data) * weights[features.indices]
    return features


def posting_weights(matrix: sparse.csr_array) -> npt.NDArray[np.float32]:
    """(nnz,) float32 of counts (N, V): the features once more weighted by the query's log(N / n_t).

    Term by term, each in document order, as postings lie. With query weights log(1 + f(t,q)) their
    sum is the inner product of the two vectors.
    """
    weights = idf(matrix)
    features = weighted(matrix, weights)
    features.data *= weights[features.indices]
    by_term = features.tocsc()
    by_term.sort_indices()
    return np.asarray(by_term.data, np.float32)
