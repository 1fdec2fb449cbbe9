"""Latent semantic indexing, by inner product and by cosine.

The truncated space of log-tf·idf features is stored, or computed at the first use.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Basis, Eigenvalues, Numbers, Scores
from klsa_search.core.lazy import lazy_property
from klsa_search.core.parameters import RankingSettings
from klsa_search.kernels.document_kernel import DocumentKernel
from klsa_search.kernels.postings import Segments
from klsa_search.kernels.weighting import tfidf_features, tfidf_posting_weights
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.storage.arrays import has_array, open_array
from klsa_search.storage.forward_index import Forward

_ROUNDING: Final = 1e-6
"""Scores of so small a share of the length of the raw scores are errors of rounding."""

MIN_EIGENVECTORS: Final = 100
"""Eigenvectors that are computed, at least."""


class LsiArrays(NamedTuple):
    """The truncated space of log-tf·idf features.

    posting_weights  of each posting in the inner product
    basis            U: (N, k) float32
    eigenvalues      (k,) float64
    """

    posting_weights: npt.NDArray[np.float32]
    basis: Basis
    eigenvalues: Eigenvalues


@dataclass(frozen=True)
class LsiSpace:
    """The LSI space of the documents of a generation.

    generation  whose build may have stored the arrays
    forward     forward index
    postings    of all documents
    dimensions  eigenvectors to compute if none are stored
    seed        of the solver
    """

    generation: Path
    forward: Forward
    postings: Segments
    dimensions: int
    seed: int

    def scores(self, query: QueryTerms, parameters: RankingSettings) -> Scores:
        """Return inner products of log-tf·idf vectors in the truncated space, or cosines.

        With U the left singular vectors of the features X, q · V Σ Uᵀ = (q Xᵀ) · U Uᵀ: the
        expansion of the raw scores, as for every kernel. `lsi-cosine` divides them by the lengths
        of the documents in that space. Both are sums over the terms. Cost O(N · k).
        """
        row = self._row(query.numbers, np.log1p(query.counts))
        basis = self.arrays.basis[:, : parameters.dimensions]
        matches = np.flatnonzero(row)
        coordinates = np.einsum("z,zk->k", row[matches], basis[matches])
        scores = np.einsum("nk,k->n", basis, coordinates)
        scores[np.abs(scores) <= _ROUNDING * np.sqrt(np.square(row).sum())] = 0  # are no matches
        if parameters.ranker == "lsi":
            return np.asarray(scores)
        lengths = self._lengths_of(parameters.dimensions)
        return np.asarray(np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0))

    def _row(self, terms: Numbers, query_weights: npt.NDArray[np.float32]) -> Scores:
        """Return inner products of log-tf·idf vectors: (N,) float32. Cost: the postings."""
        row, postings = np.zeros(self.postings.size, np.float32), self.postings
        ends = np.cumsum(postings.frequencies)
        for term, weight in zip(terms.tolist(), query_weights, strict=True):
            begin, end = ends[term] - postings.frequencies[term], ends[term]
            row[postings.of_term(term)[0]] += weight * self.arrays.posting_weights[begin:end]
        return row

    @lazy_property
    def arrays(self) -> LsiArrays:
        """The arrays; computed if none are stored: seconds for a small collection."""
        if has_array(self.generation, "lsi_eigenvectors"):
            names = "postings_tfidf", "lsi_eigenvectors", "lsi_eigenvalues"
            return LsiArrays(*(open_array(self.generation, name) for name in names))
        from klsa_search.lowrank.eigensolver import decompose

        counts = self.forward.counts(np.arange(self.postings.size))
        features = DocumentKernel.of(tfidf_features(counts))
        spectrum = decompose(features, self.dimensions, seed=self.seed)
        basis = spectrum.eigenvectors.astype(np.float32)
        return LsiArrays(tfidf_posting_weights(counts), basis, spectrum.eigenvalues)

    def _lengths_of(self, dimensions: int) -> Scores:
        """Return the lengths of documents on the first dimensions: (N,); for all, computed once."""
        _, basis, eigenvalues = self.arrays
        if dimensions >= basis.shape[1]:
            return self._lengths
        return _lengths(basis[:, :dimensions], eigenvalues[:dimensions])

    @lazy_property
    def _lengths(self) -> Scores:
        return _lengths(self.arrays.basis, self.arrays.eigenvalues)


def _lengths(basis: Basis, eigenvalues: Eigenvalues) -> Scores:
    squares = np.einsum("nk,nk,k->n", basis, basis, eigenvalues.astype(np.float32))
    return np.asarray(np.sqrt(squares))
