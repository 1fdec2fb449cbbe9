"""The query kernel with the weights of its terms: a query → its raw kernel row k_q.

    k_q(d) = Σ_t f(t,q) · h(t) · w(t) · sat(t,d)                              [KLSA eq. 3]

    w(t) = idf(t) · b(t), the idf of `features.bm25.idf_of`
    b(t) = √(N (1 - exp(-c_t / N)) / n_t), within 1 and a limit
    h(t)   a half, or whatever is set, for common terms; 1 for all others

of N documents, n_t that hold the term and c_t occurrences of it in all. N (1 - exp(-c_t / N)) is
how many would hold it if its occurrences fell by chance: a term that comes in bursts is about
something, and its few documents say too little of that. The logarithm of the ratio is the residual
idf of [Church, Gale 1995].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Positions, Scores
from klsa_search.core.config import IdfName
from klsa_search.kernels.bm25 import idf_of
from klsa_search.kernels.postings import UNIT, Postings
from klsa_search.kernels.segments import Segments

_Numbers = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TermWeighting:
    """What decides the weight of a term, besides its occurrences in documents.

    burstiness     the largest b(t); 1 for plain idf
    common         numbers of the common terms
    common_weight  h(t) of these
    idf            which
    """

    burstiness: float = 1.0
    common: _Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    common_weight: float = 1.0
    idf: IdfName = "lucene"


PLAIN: Final = TermWeighting()
"""w(t) = idf(t), whatever the term: BM25 as published."""


@dataclass(frozen=True)
class DeletedCounts:
    """What is in postings of documents that count no more.

    documents    how many
    frequencies  (V,) how many of them hold each term
    occurrences  (V,) how often each stands in them
    """

    documents: int
    frequencies: _Numbers
    occurrences: _Numbers


@dataclass(frozen=True)
class QueryKernel:
    """BM25 between queries and documents.

    postings   what documents hold
    documents  N, those that count
    term_weights      (V,) float32, h(t) · w(t): what a term counts for that is asked for once
    weights    (V,) int64, the same in 65,536ths, at least one
    burstiness     (V,) float32, b(t)
    unseen     w of a term that no document holds
    deleted       what is in the postings of documents that count no more, where there are any
    """

    postings: Segments
    documents: int
    term_weights: _Floats
    weights: _Numbers
    burstiness: _Floats
    unseen: float
    deleted: DeletedCounts | None = None

    @classmethod
    def of(
        cls,
        postings: Postings | Segments,
        deleted: DeletedCounts | None = None,
        weighting: TermWeighting = PLAIN,
    ) -> QueryKernel:
        """Weigh the terms of postings by the documents that hold them. Cost O(V).

        Of whole numbers of all documents together, so any way of cutting them gives the same bits.
        """
        held = Segments.single(postings) if isinstance(postings, Postings) else postings
        documents, frequencies, occurrences = held.documents, held.frequencies, held.occurrences
        if deleted is not None:
            documents -= deleted.documents
            frequencies = frequencies - deleted.frequencies
            occurrences = occurrences - deleted.occurrences
        burstiness = burst_factors(frequencies, occurrences, documents, weighting.burstiness)
        term_weights = idf_of(frequencies, documents, weighting.idf) * burstiness
        term_weights[weighting.common] *= weighting.common_weight
        weights = np.maximum(np.rint(term_weights * UNIT), 1).astype(np.int64)
        whole, factors = term_weights.astype(np.float32), burstiness.astype(np.float32)
        (unseen,) = idf_of(np.zeros(1), documents, weighting.idf).tolist()
        return cls(held, documents, whole, weights, factors, unseen, deleted)

    @property
    def frequencies(self) -> _Numbers:
        """n_t: (V,) documents that count and hold each term."""
        held = self.postings.frequencies
        return held if self.deleted is None else held - self.deleted.frequencies

    @property
    def occurrences(self) -> _Numbers:
        """c_t: (V,) how often each term stands in documents that count."""
        held = self.postings.occurrences
        return held if self.deleted is None else held - self.deleted.occurrences

    @property
    def size(self) -> int:
        """Positions: (size,) is a score for each."""
        return self.postings.size

    def impacts_of(self, term: int, times: float = 1.0) -> tuple[Positions, _Floats]:
        """Documents of one term, and what it adds to k_q of each. Cost: its postings.

        times  f(t,q)
        """
        documents, saturations = self.postings.of_term(term)
        (weight,) = self.quantised_weights(np.array([term]), np.array([times])).tolist()
        steps = 1 + ((weight * saturations.astype(np.int64)) >> 16)
        return documents, (steps * self.postings.step).astype(np.float32)

    def quantised_weights(self, terms: _Numbers, counts: npt.NDArray[np.floating]) -> _Numbers:
        """f(t,q) · h(t) · w(t) in 65,536ths; `counts` are f(t,q), whole or not."""
        return np.rint(counts.astype(np.float64) * self.weights[terms]).astype(np.int64)

    def steps(self, terms: _Numbers, counts: npt.NDArray[np.floating]) -> _Numbers:
        """k_q in steps: (size,); `counts` as in `quantised_weights`. Cost: their postings."""
        asked = counts > 0
        return self.postings.steps(
            terms[asked], self.quantised_weights(terms[asked], counts[asked])
        )

    def query_row(self, terms: _Numbers, counts: npt.NDArray[np.floating]) -> Scores:
        """k_q: (size,) float32. See `steps`."""
        return (self.steps(terms, counts) * self.postings.step).astype(np.float32)

    def matched_share(
        self, terms: _Numbers, counts: npt.NDArray[np.floating], document: int
    ) -> float:
        """Share of a query, by the weights of its terms, that a document holds: 0 to 1.

        At least one of the terms is asked for. Cost: their postings.
        """
        weights = self.quantised_weights(terms, counts)
        held = [document in self.postings.of_term(term)[0] for term in terms.tolist()]
        return float(weights[held].sum() / weights.sum())


def burst_factors(
    frequencies: _Numbers, occurrences: _Numbers, documents: int, limit: float
) -> npt.NDArray[np.float64]:
    """b(t): (V,), from 1 to `limit`; 1 for a term that no document holds."""
    N = max(documents, 1)
    by_chance = N * -np.expm1(-occurrences / N)
    return np.asarray(np.clip(np.sqrt(by_chance / np.maximum(frequencies, 1)), 1, limit))
