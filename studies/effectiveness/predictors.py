"""What is known to foretell how well a query is answered: one number each, more is easier.

`EARLY` look at the terms of a query alone, `LATE` at what was found, by BM25 or by the default:

    idf    ln(N / n_t); [Cronen-Townsend et al. 2002] and others
    SCQ    (1 + ln c_t) · ln(1 + N / n_t) [Zhao, Scholer, Tsegay 2008]
    NQC    σ of the first hundred scores / |s(C)| [Shtok et al. 2012]
    SMV    mean of s · |ln(s / mean s)| of these / |s(C)| [Tao, Wu 2014]
    WIG    (mean of the first five scores - s(C)) / √terms [Zhou, Croft 2007]
    clarity  divergence of the first hundred, by their scores, from all [Cronen-Townsend et al.]
    autocorrelation  r of the scores of the first hundred and of those near each [Diaz 2007]
    agreement  how many of the first ten of two rankings are the same [Aslam, Pavlu 2007]

with s(C) the score that BM25 gives the collection as one document, 1 for scores of the default,
which are scaled query by query. Sizes are those of the papers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klsa_search import Index
from klsa_search.collection import Query
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.cached import lazy_property
from klsa_search.evaluation.forecast import forecast, score_of_collection
from klsa_search.evaluation.runs import AS_WORDS
from klsa_search.search.coverage import shares_of
from klsa_search.search.query.terms import QueryTerms
from klsa_search.search.snapshot import Snapshot

DEPTH = 1000
MANY, TEN, FEW = 100, 10, 5

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """A query, what each ranker says to it, and the index it was asked of."""

    index: Index
    text: str

    @lazy_property
    def snapshot(self) -> Snapshot:
        return self.index.arrays

    @lazy_property
    def analyzed(self) -> set[str]:
        return set(self.index.analyzer.terms(self.text))

    @lazy_property
    def query(self) -> QueryTerms:
        numbers = self.snapshot.vocabulary.numbers
        terms = self.index.analyzer.terms(self.text)
        return QueryTerms.of(numbers[term] for term in terms if term in numbers)

    @lazy_property
    def default(self) -> tuple[DocIds, Scores]:
        return self.index.rank(self.text, DEPTH, **AS_WORDS)

    @lazy_property
    def bm25(self) -> tuple[DocIds, Scores]:
        return self.index.rank(self.text, DEPTH, ranker="bm25", **AS_WORDS)

    @lazy_property
    def latent(self) -> DocIds:
        """The first ten by the cosine with the query in the latent space."""
        counts = self.query.counts * self.snapshot.query_kernel.burstiness[self.query.numbers]
        space = self.snapshot.latent
        if space is None or not len(self.query.numbers):
            return np.zeros(0, np.int64)
        return np.argsort(-space.cosines(self.query.numbers, counts), kind="stable")[:TEN]

    @lazy_property
    def rm3(self) -> DocIds:
        return self.index.rank(self.text, TEN, ranker="rm3", **AS_WORDS)[0]

    @lazy_property
    def idf(self) -> Values:
        return np.log(len(self.index) / self.snapshot.query_kernel.frequencies[self.query.numbers])

    @lazy_property
    def scq(self) -> Values:
        occurrences = self.snapshot.query_kernel.occurrences[self.query.numbers]
        frequencies = self.snapshot.query_kernel.frequencies[self.query.numbers]
        return np.asarray((1 + np.log(occurrences)) * np.log1p(len(self.index) / frequencies))

    @lazy_property
    def of_collection(self) -> float:
        terms = self.index.analyzer.terms(self.text)
        return score_of_collection(self.index, terms) or 1.0


def _nqc(scores: Scores, whole: float) -> float:
    return float(np.std(scores[:MANY], dtype=np.float64)) / whole if len(scores) else 0.0


def _smv(scores: Scores, whole: float) -> float:
    first = scores[:MANY].astype(np.float64)
    return float((first * np.abs(np.log(first / first.mean()))).mean()) / whole if len(first) else 0


def _wig(evidence: Evidence) -> float:
    (told,) = forecast(evidence.index, [Query(id="", text=evidence.text)])
    return told.wig or 0.0


def _mean_of_five(evidence: Evidence) -> float:
    terms = len(evidence.index.analyzer.terms(evidence.text))
    return _mean(evidence.bm25[1][:FEW].astype(np.float64)) / float(np.sqrt(max(terms, 1)))


def _gap(scores: Scores) -> float:
    """How far the tenth lies below the first."""
    return float(1 - scores[min(TEN, len(scores)) - 1] / scores[0]) if len(scores) else 0.0


def _agreement(one: DocIds, other: DocIds) -> float:
    return len(np.intersect1d(one[:TEN], other[:TEN])) / TEN


def _held(evidence: Evidence, first: DocIds) -> float:
    query = evidence.query
    if not len(first) or not len(query.numbers):
        return 0.0
    return evidence.snapshot.query_kernel.matched_share(query.numbers, query.counts, int(first[0]))


def _clarity(evidence: Evidence) -> float:
    first, scores = evidence.default[0][:MANY], evidence.default[1][:MANY]
    if not len(first):
        return 0.0
    counts = evidence.snapshot.content_counts_of(first)
    lengths = np.maximum(counts.sum(axis=1), 1)
    model = counts.T @ (scores.astype(np.float64) / scores.sum(dtype=np.float64) / lengths)
    occurrences = evidence.snapshot.query_kernel.occurrences
    held = model > 0
    return float(
        (model[held] * np.log2(model[held] / (occurrences[held] / occurrences.sum()))).sum()
    )


def _autocorrelation(evidence: Evidence) -> float:
    snapshot, first = evidence.snapshot, evidence.bm25[0][:MANY]
    if len(first) < 3 or snapshot.neighbours is None:
        return 0.0
    row = snapshot.lexical(evidence.query).astype(np.float64)
    own, near = row[first], snapshot.neighbours[first] @ row
    if not own.std() or not near.std():
        return 0.0
    return float(np.corrcoef(own, near)[0, 1])


def _coherence(evidence: Evidence) -> float:
    """Mean cosine of the first ten with each other, in the latent space."""
    space, first = evidence.snapshot.latent, evidence.default[0][:TEN]
    if space is None or len(first) < 2:
        return 0.0
    places = space.documents[first].astype(np.float64)
    cosines = places @ places.T
    return float((cosines.sum() - np.trace(cosines)) / (len(first) * (len(first) - 1)))


def _quality(evidence: Evidence) -> float:
    """T of the best of the first ten: what `quality` rests on."""
    unknown = len(evidence.analyzed) - len(evidence.query.numbers)
    shares = shares_of(evidence.snapshot, evidence.query, unknown, evidence.default[0][:TEN])
    return float(shares.max(initial=0.0))


def _mean(values: Values) -> float:
    return float(values.mean()) if len(values) else 0.0


def _max(values: Values) -> float:
    return float(values.max(initial=0.0))


EARLY: dict[str, Callable[[Evidence], float]] = {
    "fewer terms": lambda e: -float(len(e.analyzed)),
    "mean idf": lambda e: _mean(e.idf),
    "max idf": lambda e: _max(e.idf),
    "mean SCQ": lambda e: _mean(e.scq),
    "max SCQ": lambda e: _max(e.scq),
}
LATE: dict[str, Callable[[Evidence], float]] = {
    "NQC, BM25": lambda e: _nqc(e.bm25[1], e.of_collection),
    "SMV, BM25": lambda e: _smv(e.bm25[1], e.of_collection),
    "WIG, BM25": _wig,
    "WIG without s(C), BM25": _mean_of_five,
    "NQC, default": lambda e: _nqc(e.default[1], 1.0),
    "SMV, default": lambda e: _smv(e.default[1], 1.0),
    "mean of five, default": lambda e: _mean(e.default[1][:FEW].astype(np.float64)),
    "first to tenth, BM25": lambda e: _gap(e.bm25[1]),
    "first to tenth, default": lambda e: _gap(e.default[1]),
    "clarity": _clarity,
    "autocorrelation": _autocorrelation,
    "coherence": _coherence,
    "share held by BM25's first": lambda e: _held(e, e.bm25[0]),
    "share held by the default's first": lambda e: _held(e, e.default[0]),
    "quality": _quality,
    "agreement, BM25 and default": lambda e: _agreement(e.bm25[0], e.default[0]),
    "agreement, BM25 and latent": lambda e: _agreement(e.bm25[0], e.latent),
    "agreement, default and latent": lambda e: _agreement(e.default[0], e.latent),
    "agreement, BM25 and RM3": lambda e: _agreement(e.bm25[0], e.rm3),
}
PREDICTORS = EARLY | LATE
