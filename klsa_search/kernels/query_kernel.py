"""The query kernel with term weights: a query → its raw kernel row k_q.

    k_q(d) = Σ_t f(t,q) · h(t) · w(t) · sat(t,d)                              [KLSA eq. 3]

    w(t) = idf(t) · b(t), with the idf of `kernels.bm25.idf_of`
    b(t) = √(N (1 - exp(-c_t / N)) / n_t), from 1 to a limit
    h(t)   a setting, by default 0.5, for common terms; 1 for others

of N documents, with document frequency n_t and c_t occurrences. N (1 - exp(-c_t / N)) is the
expected document frequency if occurrences were random: a bursty term is specific, and its document
frequency understates that. The logarithm of the ratio is the residual idf of [Church, Gale 1995].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.core.array_types import DocIds, Integers, Numbers, Scores
from klsa_search.core.build_settings import IdfName
from klsa_search.core.lazy import lazy_property
from klsa_search.kernels.bm25 import idf_of
from klsa_search.kernels.postings import Postings, Segments

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
    common: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
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
    frequencies: Numbers
    occurrences: Numbers


@dataclass(frozen=True)
class QueryKernel:
    """BM25 between queries and documents. Weights are computed for the terms that are asked for.

    postings      including those of deleted documents
    weighting     of terms
    counts        statistics of the live documents, of all partitions
    local_counts  statistics of the live documents in these postings
    """

    postings: Segments
    weighting: TermWeighting
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
        It depends on integers summed over all segments and partitions, so their division does not
        change a bit.
        """
        segments = Segments.single(postings) if isinstance(postings, Postings) else postings
        if live is None:
            live = DocumentCounts(segments.size, segments.frequencies, segments.occurrences)
        return cls(segments, weighting, live if collection is None else collection, live)

    @lazy_property
    def native(self) -> _native.TermWeights:
        """What computes the weights of terms."""
        counts, weighting = self.counts, self.weighting
        return _native.TermWeights(
            np.ascontiguousarray(counts.frequencies, np.int64),
            np.ascontiguousarray(counts.occurrences, np.int64),
            np.sort(weighting.common).astype(np.int64),
            counts.documents,
            weighting.burstiness,
            weighting.common_weight,
            weighting.idf,
        )

    def term_weights(self, terms: Sequence[int] | Integers) -> _Floats:
        """Return h(t) · w(t) of terms: (n,). Cost: 2 µs, and 50 ns each."""
        return self.native.of(np.asarray(terms, np.int64))[0]

    def weights(self, terms: Sequence[int] | Integers) -> Numbers:
        """Return h(t) · w(t) of terms in 65,536ths, at least 1: (n,)."""
        return self.native.of(np.asarray(terms, np.int64))[1]

    def burstiness(self, terms: Sequence[int] | Integers) -> _Floats:
        """Return b(t) of terms: (n,)."""
        return self.native.of(np.asarray(terms, np.int64))[2]

    @property
    def unseen(self) -> float:
        """Return w of a term that no document contains."""
        return float(idf_of(np.zeros(1), self.counts.documents, self.weighting.idf)[0])

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

    def quantised_weights(self, terms: Numbers, counts: npt.NDArray[np.floating]) -> Numbers:
        """Return f(t,q) · h(t) · w(t) in 65,536ths; `counts` are f(t,q), possibly fractional."""
        return np.rint(counts.astype(np.float64) * self.weights(terms)).astype(np.int64)

    def steps(self, terms: Numbers, counts: npt.NDArray[np.floating]) -> Numbers:
        """Return k_q in steps: (size,). Cost: the postings of the terms."""
        is_used = counts > 0
        return self.postings.steps(
            terms[is_used], self.quantised_weights(terms[is_used], counts[is_used])
        )

    def query_row(self, terms: Numbers, counts: npt.NDArray[np.floating]) -> Scores:
        """Return k_q: (size,) float32. See `steps`."""
        return (self.steps(terms, counts) * self.postings.step).astype(np.float32)

    def matched_share(
        self, terms: Numbers, counts: npt.NDArray[np.floating], document: int
    ) -> float:
        """Return the share of a query, by term weights, that a document contains: 0 to 1.

        At least one count must be above 0. Cost: the postings of the terms.
        """
        weights = self.quantised_weights(terms, counts)
        is_matched = [document in self.postings.of_term(term)[0] for term in terms.tolist()]
        return float(weights[is_matched].sum() / weights.sum())
