"""The query kernel with term weights: a query → its raw kernel row k_q.

    k_q(d) = Σ_t f(t,q) · h(t) · w(t) · sat(t,d)                              [KLSA eq. 3]

    w(t) = idf(t) · b(t), with the idf of `kernels.weighting.idf_of`
    b(t) = √(N (1 - exp(-c_t / N)) / n_t), from 1 to a limit
    h(t)   a setting, by default 0.5, for common terms; 1 for others

of N documents, with document frequency n_t and c_t occurrences. N (1 - exp(-c_t / N)) is the
expected document frequency if occurrences were random: a bursty term is specific, and its document
frequency understates that. The logarithm of the ratio is the residual idf of [Church, Gale 1995].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.build_settings import IdfName
from klsa_search.kernels.postings import UNIT, Postings, Segments
from klsa_search.kernels.weighting import idf_of

_Numbers = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TermWeighting:
    """Parameters of the term weights.

    burstiness     limit of b(t); 1 for plain idf
    common         numbers of the common terms
    common_weight  h(t) of common terms
    idf            variant
    """

    burstiness: float = 1.0
    common: _Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    common_weight: float = 1.0
    idf: IdfName = "lucene"


PLAIN: Final = TermWeighting()
"""w(t) = idf(t): BM25 as published."""


@dataclass(frozen=True)
class DocumentCounts:
    """Statistics of documents by which terms are weighted.

    documents    their number
    frequencies  (V,) how many of them contain each term
    occurrences  (V,) occurrences of each term in them
    """

    documents: int
    frequencies: _Numbers
    occurrences: _Numbers


@dataclass(frozen=True)
class QueryKernel:
    """BM25 between queries and documents.

    postings      including those of deleted documents
    documents     N, number of live documents, of all partitions
    term_weights  (V,) float32, h(t) · w(t)
    weights       (V,) int64, the same in 65,536ths, at least 1
    burstiness    (V,) float32, b(t)
    unseen        w of a term that no document contains
    counts        statistics of the live documents, of all partitions
    local_counts  statistics of the live documents in these postings
    """

    postings: Segments
    documents: int
    term_weights: _Floats
    weights: _Numbers
    burstiness: _Floats
    unseen: float
    counts: DocumentCounts
    local_counts: DocumentCounts

    @classmethod
    def of(
        cls,
        postings: Postings | Segments,
        live: DocumentCounts | None = None,
        weighting: TermWeighting = PLAIN,
        collection: DocumentCounts | None = None,
    ) -> QueryKernel:
        """Return the kernel of postings.

        live        statistics of the live documents in them; by default of all
        collection  of those of all partitions; by default the same
        Cost O(V). It depends on integers summed over all segments and partitions, so their division
        does not change a bit.
        """
        segments = Segments.single(postings) if isinstance(postings, Postings) else postings
        if live is None:
            live = DocumentCounts(segments.size, segments.frequencies, segments.occurrences)
        counts = live if collection is None else collection
        arrays = _weigh(counts, weighting)
        common = weighting.common
        n, c = counts.frequencies[common], counts.occurrences[common]
        common_counts = DocumentCounts(counts.documents, n, c)
        for array, values in zip(
            arrays, _weigh(common_counts, weighting, weighting.common_weight), strict=True
        ):
            array[common] = values
        term_weights, weights, burstiness = arrays
        (unseen,) = idf_of(np.zeros(1), counts.documents, weighting.idf).tolist()
        return cls(
            segments, counts.documents, term_weights, weights, burstiness, unseen, counts, live
        )

    @property
    def local_documents(self) -> int:
        """Return the number of live documents in these postings."""
        return self.local_counts.documents

    @property
    def frequencies(self) -> _Numbers:
        """Return n_t: (V,) document frequencies among live documents, of all partitions."""
        return self.counts.frequencies

    @property
    def occurrences(self) -> _Numbers:
        """Return c_t: (V,) occurrences of each term in live documents, of all partitions."""
        return self.counts.occurrences

    @property
    def size(self) -> int:
        """Return the number of doc ids, the length of a row."""
        return self.postings.size

    def impacts_of(self, term: int, times: float = 1.0) -> tuple[DocIds, _Floats]:
        """Return the documents of a term and its share of k_q in each. Cost: its postings.

        times  f(t,q)
        """
        documents, saturations = self.postings.of_term(term)
        (weight,) = self.quantised_weights(np.array([term]), np.array([times])).tolist()
        steps = 1 + ((weight * saturations.astype(np.int64)) >> 16)
        return documents, (steps * self.postings.step).astype(np.float32)

    def quantised_weights(self, terms: _Numbers, counts: npt.NDArray[np.floating]) -> _Numbers:
        """Return f(t,q) · h(t) · w(t) in 65,536ths; `counts` are f(t,q), possibly fractional."""
        return np.rint(counts.astype(np.float64) * self.weights[terms]).astype(np.int64)

    def steps(self, terms: _Numbers, counts: npt.NDArray[np.floating]) -> _Numbers:
        """Return k_q in steps: (size,). Cost: the postings of the terms."""
        is_used = counts > 0
        return self.postings.steps(
            terms[is_used], self.quantised_weights(terms[is_used], counts[is_used])
        )

    def query_row(self, terms: _Numbers, counts: npt.NDArray[np.floating]) -> Scores:
        """Return k_q: (size,) float32. See `steps`."""
        return (self.steps(terms, counts) * self.postings.step).astype(np.float32)

    def matched_share(
        self, terms: _Numbers, counts: npt.NDArray[np.floating], document: int
    ) -> float:
        """Return the share of a query, by term weights, that a document contains: 0 to 1.

        At least one count must be above 0. Cost: the postings of the terms.
        """
        weights = self.quantised_weights(terms, counts)
        is_matched = [document in self.postings.of_term(term)[0] for term in terms.tolist()]
        return float(weights[is_matched].sum() / weights.sum())


def _weigh(
    counts: DocumentCounts, weighting: TermWeighting, factor: float = 1.0
) -> list[npt.NDArray[Any]]:
    """Return h · w(t), the same in 65,536ths, and b(t), of terms with the same h(t)."""
    n, N = counts.frequencies, counts.documents
    burstiness = burst_factors(n, counts.occurrences, N, weighting.burstiness)
    term_weights = idf_of(n, N, weighting.idf) * burstiness * factor
    weights = np.maximum(np.rint(term_weights * UNIT), 1).astype(np.int64)
    return [term_weights.astype(np.float32), weights, burstiness.astype(np.float32)]


def burst_factors(
    frequencies: _Numbers, occurrences: _Numbers, documents: int, limit: float
) -> npt.NDArray[np.float64]:
    """Return b(t): (V,), from 1 to `limit`; 1 for a term that no document contains."""
    N = max(documents, 1)
    expected = N * -np.expm1(-occurrences / N)
    return np.asarray(np.clip(np.sqrt(expected / np.maximum(frequencies, 1)), 1, limit))
