"""The query kernel with the weights of its terms: a query → its raw kernel row k_q [KLSA eq. 3]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, Scores
from klsa_search.features.bm25 import idf_of
from klsa_search.kernel.postings import UNIT, Postings
from klsa_search.kernel.segments import Segments


@dataclass(frozen=True)
class QueryKernel:
    """BM25 between queries and documents.

    postings   what documents hold
    documents  N, those that count
    idf        (V,) float32, w(t)
    weights    (V,) int64, w(t) in 65,536ths, at least one
    gone       (V,) documents that hold each term and count no more; None where all count
    """

    postings: Segments
    documents: int
    idf: npt.NDArray[np.float32]
    weights: npt.NDArray[np.int64]
    gone: npt.NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        postings: Postings | Segments,
        left_out: int = 0,
        gone: npt.NDArray[np.int64] | None = None,
    ) -> QueryKernel:
        """Weigh the terms of postings by how many documents hold them. Cost O(V).

        left_out  documents that count no more, though they still have postings
        gone      (V,) how many of them hold each term
        """
        held = Segments.alone(postings) if isinstance(postings, Postings) else postings
        documents = held.documents - left_out
        idf = idf_of(held.frequencies if gone is None else held.frequencies - gone, documents)
        weights = np.maximum(np.rint(idf * UNIT), 1).astype(np.int64)
        return cls(held, documents, idf.astype(np.float32), weights, gone)

    @property
    def frequencies(self) -> npt.NDArray[np.int64]:
        """n_t: (V,) documents that count and hold each term."""
        held = self.postings.frequencies
        return held if self.gone is None else held - self.gone

    @property
    def size(self) -> int:
        """Positions: (size,) is a score for each."""
        return self.postings.size

    def impacts_of(self, term: int) -> tuple[Positions, npt.NDArray[np.float32]]:
        """Documents of one term, and w(t) · sat(t,d) of each, float32. Cost: its postings."""
        documents, saturations = self.postings.of_term(term)
        unit = np.float32(self.postings.step) * self.idf[term]
        return documents, unit * saturations.astype(np.float32)

    def steps(
        self, terms: npt.NDArray[np.int64], counts: npt.NDArray[np.floating]
    ) -> npt.NDArray[np.int64]:
        """k_q in steps: (size,); `counts` are f(t,q), whole or not. Cost: their postings."""
        asked = counts > 0
        weights = np.rint(counts[asked].astype(np.float64) * self.weights[terms[asked]])
        return self.postings.steps(terms[asked], weights.astype(np.int64))

    def query_row(self, terms: npt.NDArray[np.int64], counts: npt.NDArray[np.floating]) -> Scores:
        """k_q: (size,) float32, Σ_t f(t,q) · w(t) · sat(t,d) [KLSA eq. 3]. See `steps`."""
        return (self.steps(terms, counts) * self.postings.step).astype(np.float32)
