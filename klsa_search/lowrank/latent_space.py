"""The latent space: where documents and queries lie on the first eigenvectors [LSK; KLSA §3.1]."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Basis, Eigenvalues, Matrix, Scores
from klsa_search.lowrank.products import slices, to_features

if TYPE_CHECKING:
    from klsa_search.kernels.document_kernel import DocumentKernel
    from klsa_search.lowrank.eigensolver import Spectrum


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
        U = np.ascontiguousarray(spectrum.eigenvectors[:, :dimensions])
        values = spectrum.eigenvalues[:dimensions]
        terms = len(term_weights)
        # Of the features only those of single terms, which come first, concern a query.
        features = kernel.features[:, :terms]
        T = np.zeros((terms, U.shape[1]), U.dtype)
        starts = features.indptr
        to_features(features.indices, features.data, starts[:-1], starts[1:], U, T)
        scaled = added(scaled_sums(kernel.scales, U), U.shape[1])
        return cls(
            document_coordinates(U, values),
            term_coordinates(T, kernel.mean[:terms], scaled, values, term_weights),
        )

    def cosines(
        self, terms: npt.NDArray[np.int64], query_weights: npt.NDArray[np.float32]
    ) -> Scores:
        """(N,) float32, proportional to the cosine of each document with the query.

        Proportional, because the query's own length is the same for all. Cost O(N · m).
        """
        place = np.einsum("t,tm->m", query_weights, self.terms[terms])
        return np.asarray(np.einsum("nm,m->n", self.documents, place))


def document_coordinates(U: Basis, values: Eigenvalues) -> npt.NDArray[np.float32]:
    """U Λ^½ with rows of length 1, or 0: (N, m), (m,) → (N, m)."""
    coordinates = U * np.sqrt(values)
    lengths = np.linalg.norm(coordinates, axis=1, keepdims=True)
    places = np.divide(coordinates, lengths, out=np.zeros_like(coordinates), where=lengths > 0)
    return np.asarray(places, np.float32)


def term_coordinates(
    T: Matrix,
    mean: npt.NDArray[np.floating],
    scaled: npt.NDArray[np.float64],
    values: Eigenvalues,
    term_weights: npt.NDArray[np.float64],
) -> npt.NDArray[np.float32]:
    """w(t)^p Aᵀ U Λ^-½ of some terms: (t, m).

    T       (t, m) those columns of ΦᵀSU; it is used up
    mean    (t,) those of μ
    scaled  (m,) the sums of S U
    """
    T -= np.multiply.outer(mean, scaled)
    T /= np.sqrt(values)
    return np.asarray((term_weights[:, None] * T).astype(np.float32))


def scaled_sums(scales: npt.NDArray[np.floating], U: Basis) -> list[npt.NDArray[np.float64]]:
    """Σ_d s(d) U(d) of each slice of documents, (m,) each."""
    return [np.einsum("n,nm->m", scales[rows], U[rows]) for rows in slices(len(U))]


def added(parts: Iterable[npt.NDArray[np.float64]], width: int) -> npt.NDArray[np.float64]:
    """Add them one after the other: (width,)."""
    total = np.zeros(width)
    for part in parts:
        total += part
    return total
