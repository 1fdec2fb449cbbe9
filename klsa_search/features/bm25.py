"""Counts → BM25: the features Φ of the document kernel and the impacts of the query kernel.

    K_d      = k1 · ((1 - b) + b · dl(d) / dl_avg)
    sat(t,d) = (k1 + 1) · f(t,d) / (K_d + f(t,d))
    w(t)     = log(1 + (N - n_t + 0.5) / (n_t + 0.5))

[KLSA eq. 3-4], with the 1 + inside the logarithm: the classic w is negative for n_t > N/2, and the
document kernel would no longer be positive semi-definite.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.features.counts import TermCounts


def inverse_document_frequencies(counts: TermCounts) -> npt.NDArray[np.float64]:
    """w(t): (V,), always positive."""
    frequencies = counts.document_frequencies
    N = counts.matrix.shape[0]
    return np.asarray(np.log1p((N - frequencies + 0.5) / (frequencies + 0.5)))


def saturations(counts: TermCounts, *, k1: float, b: float) -> sparse.csr_array:
    """sat(t, d): (N, V) sparse float64, between 0 and k1 + 1. Cost O(nnz)."""
    lengths = counts.lengths
    average = lengths.mean() if lengths.any() else 1.0
    norms = k1 * ((1 - b) + b * lengths / average)
    matrix = counts.matrix.astype(np.float64)
    norm_of_entry = np.repeat(norms, np.diff(matrix.indptr))
    matrix.data = (k1 + 1) * matrix.data / (norm_of_entry + matrix.data)
    return matrix


def document_features(counts: TermCounts, *, k1: float, b: float) -> sparse.csr_array:
    """Φ: (N, V) sparse float64 with φ(d)_t = √w(t) · sat(t,d), so that K = ΦΦᵀ [KLSA eq. 4]."""
    return _weighted(saturations(counts, k1=k1, b=b), np.sqrt(inverse_document_frequencies(counts)))


def query_impacts(counts: TermCounts, *, k1: float, b: float) -> sparse.csr_array:
    """(N, V) sparse float64: w(t) · sat(t,d), what one query term gives a document [KLSA eq. 3]."""
    return _weighted(saturations(counts, k1=k1, b=b), inverse_document_frequencies(counts))


def _weighted(matrix: sparse.csr_array, weights: npt.NDArray[np.float64]) -> sparse.csr_array:
    matrix.data *= weights[matrix.indices]
    return matrix
