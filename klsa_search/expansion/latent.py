"""The latent space: where documents and queries lie on the first eigenvectors [LSK; KLSA §3.1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Matrix, Scores

if TYPE_CHECKING:
    from klsa_search.kernel import DocumentKernel
    from klsa_search.spectrum import Spectrum


@dataclass(frozen=True)
class LatentSpace:
    """The first m dimensions of a spectrum, from both sides.

    documents  (N, m) float32, coordinates U Λ^½ of the documents, each of length 1 (or 0)
    terms      (V, m) float32, w(t)^p · V: what one occurrence of a term adds to a query's place,
               with V = Aᵀ U Λ^-½ the term side of the spectrum
    """

    documents: Matrix
    terms: Matrix

    @classmethod
    def of(
        cls,
        kernel: DocumentKernel,
        spectrum: Spectrum,
        dimensions: int,
        term_weights: npt.NDArray[np.float64],
    ) -> LatentSpace:
        """Take the first `dimensions`. Cost O(nnz · m); `term_weights` (V,) are the w(t)^p."""
        U = spectrum.eigenvectors[:, :dimensions]
        roots = np.sqrt(spectrum.eigenvalues[:dimensions])
        coordinates = U * roots
        lengths = np.linalg.norm(coordinates, axis=1, keepdims=True)
        documents = np.divide(
            coordinates, lengths, out=np.zeros_like(coordinates), where=lengths > 0
        )
        terms = len(term_weights)
        # Of the features only those of single terms, which come first, concern a query.
        V = kernel.features[:, :terms].T @ U
        V -= np.multiply.outer(kernel.mean[:terms], kernel.scales @ U)
        V /= roots
        return cls(documents.astype(np.float32), (term_weights[:, None] * V).astype(np.float32))

    def cosines(
        self, terms: npt.NDArray[np.int64], query_weights: npt.NDArray[np.float32]
    ) -> Scores:
        """(N,) float32, proportional to the cosine of each document with the query.

        Proportional, because the query's own length is the same for all. Cost O(N · m).
        """
        place = np.einsum("t,tm->m", query_weights, self.terms[terms])
        return np.asarray(np.einsum("nm,m->n", self.documents, place))
