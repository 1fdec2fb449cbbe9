"""Quality of a match: how much of a query a document and its neighbours cover, versus chance.

    x = logit T,   T = Σ_t w(t) · g(sat(t,d) + β Σ_n W(d,n) · sat(t,n)) / Σ_t w(t)

in the notation of `search.rankers.coverage`, over all terms of the query; terms that no document
contains have the largest weight of a term. So T is the share of a query that a document covers,
from 0 to 1, for any ranker.

How much documents cover by chance depends on the collection, and on n, the number of terms of the
query. So the index is searched with generated queries: half of them terms of one document, which is
excluded from the results, half terms of as many documents. From the best T of each,

    P(one document | x, n) = logistic(a · x + b · log n + c)

is fitted, with a prior that matters if there are few documents. This probability is the quality:
0.5 if T is no evidence that the words belong together. For queries of one word, where both kinds of
queries are the same, only the prior is used.

A document that contains every term of the query is an exact match, which generated queries exclude:
its log-odds are raised by `EXACT`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Numbers
from klsa_search.core.lazy import lazy_property
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.coverage import HALF, NEIGHBOURHOOD

Values = npt.NDArray[np.float64]
Synonyms = Mapping[str, Collection[tuple[str, ...]]]


def coverage_of(
    snapshot: Snapshot,
    query_terms: Collection[str],
    documents: DocIds,
    synonyms: Synonyms = MappingProxyType({}),
) -> tuple[Values, npt.NDArray[np.bool_]]:
    """Return T of documents as a share of the query, and whether each contains all of it: (d,).

    query_terms  distinct, also those that no document contains
    synonyms     by term, the known terms of each synonym, which may stand for it; the form with
                 the largest mean counts
    Cost: see `_term_coverage`.
    """
    covered, total, contain_all = np.zeros(len(documents)), 0.0, np.ones(len(documents), np.bool_)
    if not len(documents):
        return covered, contain_all
    numbers, kernel = snapshot.vocabulary.numbers, snapshot.query_kernel
    forms = {
        term: [*([(term,)] if term in numbers else []), *synonyms.get(term, ())]
        for term in sorted(query_terms)
    }
    words = sorted({word for some in forms.values() for form in some for word in form})
    row_of = {word: row for row, word in enumerate(words)}
    term_numbers = np.array([numbers[word] for word in words], np.int64)
    coverage, contained = _term_coverage(snapshot, term_numbers, documents)
    here = [term for term in forms if term in numbers]
    term_weights = kernel.term_weights([numbers[term] for term in here])
    weights, unseen = dict(zip(here, term_weights.tolist(), strict=True)), kernel.unseen
    for term, some in forms.items():
        weight = weights.get(term, unseen)
        best, contain = np.zeros(len(documents)), np.zeros(len(documents), np.bool_)
        for form in some:
            rows = [row_of[word] for word in form]
            if len(rows) == 1:  # of most forms; a mean of one row costs more
                mean, all_of_it = coverage[rows[0]], contained[rows[0]]
            else:
                mean, all_of_it = coverage[rows].mean(axis=0), contained[rows].all(axis=0)
            best, contain = np.maximum(best, mean), contain | all_of_it
        covered, total = covered + weight * best, total + weight
        contain_all &= contain
    return np.asarray(covered / (total or 1.0)), contain_all


def _term_coverage(
    snapshot: Snapshot, terms: Numbers, documents: DocIds
) -> tuple[Values, npt.NDArray[np.bool_]]:
    """Return g of each term in the documents, and whether they contain it: (n, d) each.

    Cost: a look-up for each term in each document and its neighbours.
    """
    rows = snapshot.sparse_expansion.rows(documents)[:, : snapshot.settings.neighbours]
    levels = (rows & np.uint32(LEVELS)).astype(np.float64)
    shares = levels / np.maximum(levels.sum(axis=1, keepdims=True), 1.0)  # of sum 1 or 0
    near = (rows >> np.uint32(8)).astype(np.int64)
    candidates, positions = np.unique(
        np.concatenate((documents[:, None], near), 1), return_inverse=True
    )
    positions = positions.reshape(len(documents), -1)
    steps = snapshot.query_kernel.postings.step * snapshot.live_docs()[candidates].astype(
        np.float64
    )
    saturations = snapshot.bm25_engine.saturations(terms, candidates).T * steps
    of_neighbours = np.einsum("dn,tdn->td", shares, saturations[:, positions[:, 1:]])
    of_documents = saturations[:, positions[:, 0]]
    covered = of_documents + NEIGHBOURHOOD * of_neighbours
    return np.asarray(covered / (covered + HALF)), of_documents > 0


FITS: Final = 0.5
"""Quality of a good match: the words of the query are likelier to belong together than not."""

EXACT: Final = 1.9
"""Gain in log-odds of a document that contains every term of the query.

Fitted on twelve collections: judged queries, one rare word of a title and two words of one, versus
queries of other collections, random words and invented ones; leaving out any one collection gives
1.7 to 2.1. On one collection, of long pages, it does harm.
"""

QUERIES: Final = 300  # generated queries of each kind
_FEW: Final = 30  # documents needed to fit anything
_FEWEST: Final = 2  # terms of a generated query, at least
_TERMS: Final = 20  # and at most
_HITS: Final = 10  # of which the best T counts
_LEAST: Final = 1e-3  # smallest T and 1 - T in logarithms
_MAX_NEWTON_STEPS: Final = 50
_CONVERGED: Final = 1e-9  # largest change of a weight in the last step
_PRIOR: Final = np.array([1.0, 0.0, 0.5])
"""a, b and c without evidence.

T of one half, as of a document that contains every word once, is slightly better than chance.
"""


class Calibration(NamedTuple):
    """Maps T to a quality, by the weights of the logistic function above.

    share   a, of the logit of T
    terms   b, of the logarithm of the number of terms
    offset  c
    """

    share: float
    terms: float
    offset: float

    def qualities(self, shares: Values, terms: int, exact: npt.NDArray[np.bool_]) -> Values:
        """Return the qualities of documents from their T: (d,), for a query of `terms` terms.

        exact  (d,) whether each contains all terms
        """
        if terms == 0:
            return np.zeros(len(shares))
        weights = self if terms >= _FEWEST else Calibration(*_PRIOR)
        by_terms = weights.terms * np.log(terms) + weights.offset
        evidence = weights.share * _logit(shares) + by_terms + EXACT * exact
        return np.asarray(np.where(shares > 0, _logistic(evidence), 0.0))


class Quality:
    """The calibration of a build, fitted at the first use; writes do not change it.

    Cost: 600 BM25 queries and the coverage of their hits, 0.2 s, once.
    """

    def __init__(self, built: Snapshot, seed: int) -> None:
        self._base, self._seed = built, seed

    @lazy_property
    def calibration(self) -> Calibration:
        """The calibration, fitted to generated queries."""
        snapshot, rng = self._base, np.random.default_rng(self._seed)
        if len(snapshot) < _FEW:  # too few documents remain without the excluded one
            return Calibration(*_PRIOR)
        sizes = np.exp(rng.uniform(np.log(_FEWEST), np.log(_TERMS + 1), QUERIES)).astype(np.int64)
        belonging = [_terms_of_one(snapshot, rng, int(size)) for size in sizes]
        random = [
            [term for _ in range(size) for term in _terms_of_one(snapshot, rng, 1)[1]]
            for size in sizes
        ]
        queries = [terms for _, terms in belonging] + random
        excluded = [document for document, _ in belonging] + [-1] * len(random)
        rows, names = [], snapshot.vocabulary.terms
        tops = snapshot.bm25_engine.top(queries, min(_HITS + 1, len(snapshot)), None)
        for at, (terms, top, document) in enumerate(zip(queries, tops, excluded, strict=True)):
            hits = top.doc_ids[top.doc_ids != document][:_HITS]
            distinct = {names[term] for term in terms}
            if len(distinct) >= _FEWEST:
                best = coverage_of(snapshot, distinct, hits)[0].max(initial=0.0)
                rows.append((_logit(np.array([best]))[0], len(distinct), at < len(belonging)))
        if not rows:
            return Calibration(*_PRIOR)
        x, terms_, one = np.array(rows).T
        features = np.stack((x, np.log(terms_), np.ones(len(x))), axis=1)
        # With few documents, many queries are hardly more evidence than few.
        weight = min(1.0, len(snapshot) / QUERIES)
        return Calibration(*_fit(features, one, weight))

    def of(
        self,
        snapshot: Snapshot,
        query_terms: Collection[str],
        documents: DocIds,
        synonyms: Synonyms = MappingProxyType({}),
    ) -> list[float]:
        """Return qualities of documents for the distinct terms of a query: see `coverage_of`."""
        shares, exact = coverage_of(snapshot, query_terms, documents, synonyms)
        qualities: list[float] = self.calibration.qualities(
            shares, len(query_terms), exact
        ).tolist()
        return qualities


def _terms_of_one(snapshot: Snapshot, rng: np.random.Generator, size: int) -> tuple[int, list[int]]:
    """Return a document and up to `size` distinct content terms of it."""
    document = int(rng.integers(len(snapshot)))
    terms = snapshot.content_counts_of(np.array([document])).indices
    return document, rng.choice(terms, min(size, len(terms)), replace=False).tolist()


def _logit(shares: Values) -> Values:
    inner = np.clip(shares, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(inner / (1 - inner)))


def _logistic(log_odds: Values) -> Values:
    with np.errstate(over="ignore"):  # an infinite divisor is a chance of 0
        return np.asarray(1 / (1 + np.exp(-log_odds)))


def _fit(features: Values, labels: Values, weight: float) -> Values:
    """Return weights of a logistic regression, from `_PRIOR` on, by Newton's method."""
    weights = _PRIOR.copy()
    for _ in range(_MAX_NEWTON_STEPS):
        chances = _logistic(features @ weights)
        gradient = weight * features.T @ (labels - chances) - (weights - _PRIOR)
        spread = weight * features.T @ (features * (chances * (1 - chances))[:, None])
        step = np.linalg.solve(spread + np.eye(len(weights)), gradient)
        weights += step
        if np.abs(step).max() < _CONVERGED:
            break
    return weights
