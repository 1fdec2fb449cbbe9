"""The query kernel with the weights of its terms: a query → its raw kernel row k_q [KLSA eq. 3]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, Scores
from klsa_search.features.bm25 import idf_of
from klsa_search.kernel.postings import UNIT, Postings


@dataclass(frozen=True)
class QueryKernel:
    """BM25 between queries and documents.

    postings  what documents hold
    idf       (V,) float32, w(t)
    weights   (V,) int64, w(t) in 65,536ths, at least one
    """

    postings: Postings
    idf: npt.NDArray[np.float32]
    weights: npt.NDArray[np.int64]

    @classmethod
    def of(cls, postings: Postings) -> QueryKernel:
        """Weigh the terms of postings by how many documents hold them. Cost O(V)."""
        idf = idf_of(postings.frequencies, postings.size)
        weights = np.maximum(np.rint(idf * UNIT), 1).astype(np.int64)
        return cls(postings, idf.astype(np.float32), weights)

    @property
    def size(self) -> int:
        """N, the number of documents."""
        return self.postings.size

    def impacts_of(self, term: int) -> tuple[Positions, npt.NDArray[np.float32]]:
        """Documents of one term, and w(t) · sat(t,d) of each, float32. Cost: its postings."""
        documents, saturations = self.postings.of_term(term)
        unit = np.float32(self.postings.step) * self.idf[term]
        return documents, unit * saturations.astype(np.float32)

    def steps(
        self, terms: npt.NDArray[np.int64], counts: npt.NDArray[np.floating]
    ) -> npt.NDArray[np.int64]:
        """k_q in steps: (N,); `counts` are f(t,q), whole or not. Cost: their postings."""
        asked = counts > 0
        weights = np.rint(counts[asked].astype(np.float64) * self.weights[terms[asked]])
        return self.postings.steps(terms[asked], weights.astype(np.int64))

    def query_row(self, terms: npt.NDArray[np.int64], counts: npt.NDArray[np.floating]) -> Scores:
        """k_q: (N,) float32, Σ_t f(t,q) · w(t) · sat(t,d) [KLSA eq. 3]. See `steps`."""
        return (self.steps(terms, counts) * self.postings.step).astype(np.float32)
