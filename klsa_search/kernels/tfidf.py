"""Log-tf-idf weights of latent semantic indexing: log(1 + f) · log(N / n_t) [LSK]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.kernels.counts import TermCounts

if TYPE_CHECKING:
    from scipy import sparse


def document_features(counts: TermCounts) -> sparse.csr_array:
    """Return (N, V) sparse float64: log(1 + f(t,d)) · log(N / n_t). Cost O(nnz)."""
    return weighted(counts.matrix, idf(counts.matrix))


def idf(matrix: sparse.csr_array) -> npt.NDArray[np.float64]:
    """Return log(N / n_t) of counts (N, V) without stored zeros: (V,); 0 for a term without any."""
    N, columns = matrix.shape
    frequencies = np.bincount(matrix.indices, minlength=columns)
    return np.asarray(np.log(max(N, 1) / np.where(frequencies > 0, frequencies, max(N, 1))))


def weighted(matrix: sparse.csr_array, weights: npt.NDArray[np.float64]) -> sparse.csr_array:
    """Return log(1 + f(t,d)) times the weight of t: (n, V). Cost O(nnz)."""
    features = matrix.astype(np.float64)
    features.data = np.log1p(features.data) * weights[features.indices]
    return features


def posting_weights(matrix: sparse.csr_array) -> npt.NDArray[np.float32]:
    """Return features times the query's idf, in the order of postings: (N, V) → (nnz,) float32.

    With query weights log(1 + f(t,q)) their sum is the inner product of the two vectors.
    """
    weights = idf(matrix)
    features = weighted(matrix, weights)
    features.data *= weights[features.indices]
    by_term = features.tocsc()
    by_term.sort_indices()
    return np.asarray(by_term.data, np.float32)
