"""Counts → the log-tf·idf weights of latent semantic indexing: log(1 + f) · log(N / n_t) [LSK]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.features.counts import TermCounts


def inverse_document_frequencies(counts: TermCounts) -> npt.NDArray[np.float64]:
    """log(N / n_t): (V,); 0 for a term that stands in every document."""
    return np.asarray(np.log(counts.matrix.shape[0] / counts.document_frequencies))


def document_features(counts: TermCounts) -> sparse.csr_array:
    """(N, V) sparse float64: log(1 + f(t,d)) · log(N / n_t). Cost O(nnz)."""
    matrix = counts.matrix.astype(np.float64)
    matrix.data = np.log1p(matrix.data) * inverse_document_frequencies(counts)[matrix.indices]
    return matrix


def query_impacts(counts: TermCounts) -> sparse.csr_array:
    """(N, V) sparse float64: the features once more weighted by the query's log(N / n_t).

    With query weights log(1 + f(t,q)) their sum is the inner product of the two vectors.
    """
    matrix = document_features(counts)
    matrix.data *= inverse_document_frequencies(counts)[matrix.indices]
    return matrix
