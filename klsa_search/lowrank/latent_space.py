"""The latent space of the first eigenvectors of K: documents and queries [LSK; KLSA §3.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search._native import Features
from klsa_search.core.array_types import Matrix, Numbers, Scores, csr_arrays

if TYPE_CHECKING:
    from klsa_search.kernels.document_kernel import DocumentKernel
    from klsa_search.lowrank.eigensolver import Decomposition


@dataclass(frozen=True)
class LatentSpace:
    """Coordinates of documents and terms in the first m dimensions of a spectrum.

    documents  (N, m) float32, U Λ^½ with rows of length 1 (or 0)
    terms      (V, m) float32, w(t)^p · Aᵀ U Λ^-½: what an occurrence of a term adds to a query
    """

    documents: Matrix
    terms: Matrix

    @classmethod
    def of(
        cls,
        kernel: DocumentKernel,
        spectrum: Decomposition,
        dimensions: int,
        term_weights: npt.NDArray[np.float64],
    ) -> LatentSpace:
        """Return the first `dimensions`; `term_weights` (V,) are w(t)^p. Cost O(nnz · m)."""
        from klsa_search.lowrank.block_lanczos import slices  # which imports SciPy

        U = np.ascontiguousarray(spectrum.eigenvectors[:, :dimensions])
        values = spectrum.eigenvalues[:dimensions]
        terms = len(term_weights)
        # Queries use only the features of single terms, which come first.
        features = kernel.features[:, :terms]
        T = np.zeros((terms, U.shape[1]), U.dtype)
        starts, columns, weights = csr_arrays(features)
        Features(columns, weights, terms).add_to_features(starts[:-1], starts[1:], U, T)
        scaled = np.zeros(U.shape[1])
        for rows in slices(len(U)):
            scaled += np.einsum("n,nm->m", kernel.scales[rows], U[rows])
        T -= np.multiply.outer(kernel.mean[:terms], scaled)
        T /= np.sqrt(values)
        raw = U * np.sqrt(values)
        lengths = np.linalg.norm(raw, axis=1, keepdims=True)
        documents = np.divide(raw, lengths, out=np.zeros_like(raw), where=lengths > 0)
        return cls(
            np.asarray(documents, np.float32), (term_weights[:, None] * T).astype(np.float32)
        )

    def cosines(self, terms: Numbers, query_weights: npt.NDArray[np.float32]) -> Scores:
        """Return the cosine of each document with the query times the query's length: (N,) float32.

        Cost O(N · m).
        """
        vector = np.einsum("t,tm->m", query_weights, self.terms[terms])
        return np.asarray(np.einsum("nm,m->n", self.documents, vector))
