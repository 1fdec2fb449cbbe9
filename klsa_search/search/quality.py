"""How good a match is: what a document and those near it hold of a query, set against chance.

    x = logit T,   T = Σ_t w(t) · g(own + lent) / Σ_t w(t)

with g, own and lent as in `lowrank.coverage`, over all terms of the query, those that no document
holds among them: they weigh as much as a term can. So T is the share of a query that a document
covers, from 0 to 1, whatever ranked it.

How much of a query documents cover by chance hangs on the collection, and on n, the number of its
terms. So the index is asked queries of its own, half of them of terms of one document, which is
then left out of what is found, half of terms of as many documents. Of the best T of each,

    P(one document | x, n) = logistic(a · x + b · log n + c)

is learned, with a prior that counts if documents are few, and that is the quality: how much
likelier so good a match is for words that belong together than for words at random; one half where
nothing speaks for either. Words of one document and random ones do not differ if there is one word
alone: of that the prior decides.

A document that itself contains every term of the query is an exact match, which the words of one
document that is left out do not show: its log-odds are raised by `EXACT`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Positions
from klsa_search.core.cached import lazy_property
from klsa_search.search.coverage import Values, contain_all, shares_of, shares_with
from klsa_search.search.query.terms import QueryTerms
from klsa_search.search.snapshot import Snapshot

FITS: Final = 0.5
"""Quality from which an answer fits: the words of its query are likelier to belong together."""

EXACT: Final = 1.9
"""What a document that contains every term of the query gains in log-odds.

Fitted on twelve collections: judged queries, one rare word of a title and two words of one against
queries of other collections, random words and invented ones. With any one of them left out it is
between 1.7 and 2.1. `python -m studies.effectiveness exact-matches` repeats this with other queries
on nine collections: it fits 1.1 (1.0 to 1.4), which raises the mean AUC from 0.919 to 0.931 and
lowers the Brier score from 0.121 to 0.108; on one, of long pages, it does harm.
"""

_QUERIES: Final = 300  # of each kind that an index is asked
_FEW: Final = 30  # documents from which on there is something to learn
_FEWEST: Final = 2  # terms of one
_TERMS: Final = 20  # of the longest of them
_HITS: Final = 10  # among which the best match of one is looked for
_LEAST: Final = 1e-3  # T, and 1 - T, where logarithms begin
_STEPS: Final = 50
_NEAR: Final = 1e-9
_PRIOR: Final = np.array([1.0, 0.0, 0.5])
"""a, b and c of a collection that says nothing.

T of one half, as of a document that holds every word once, is a little better than chance.
"""


class Calibration(NamedTuple):
    """What makes T a quality: a, b and c above."""

    share: float
    terms: float
    offset: float

    def qualities(self, shares: Values, terms: int, exact: npt.NDArray[np.bool_]) -> Values:
        """Turn T of some documents into their qualities: (d,), for a query of so many terms.

        exact  (d,) whether each contains all of them
        """
        if terms == 0:
            return np.zeros(len(shares))
        weights = self if terms >= _FEWEST else Calibration(*_PRIOR)
        by_terms = weights.terms * np.log(terms) + weights.offset
        evidence = weights.share * _logit(shares) + by_terms + EXACT * exact
        return np.asarray(np.where(shares > 0, 1 / (1 + np.exp(-evidence)), 0.0))


class Quality:
    """The calibration of a build, made when it is first asked for; what is written moves it not.

    Cost: 600 queries by BM25 and what their hits cover, a second, once.
    """

    def __init__(self, built: Snapshot, seed: int) -> None:
        self._base, self._seed = built, seed

    @lazy_property
    def calibration(self) -> Calibration:
        """Ask the index queries of its own, and learn from what they find."""
        snapshot, rng = self._base, np.random.default_rng(self._seed)
        if len(snapshot) < _FEW:  # where one is left out too little is left to find
            return Calibration(*_PRIOR)
        sizes = np.exp(rng.uniform(np.log(_FEWEST), np.log(_TERMS + 1), _QUERIES)).astype(np.int64)
        belonging = [_terms_of_one(snapshot, rng, int(size)) for size in sizes]
        random = [_terms_of_many(snapshot, rng, int(size)) for size in sizes]
        queries = [terms for _, terms in belonging] + random
        excluded = [document for document, _ in belonging] + [-1] * len(random)
        rows = []
        found = snapshot.engine.top(queries, min(_HITS + 1, len(snapshot)), None)
        for at, (terms, top, document) in enumerate(zip(queries, found, excluded, strict=True)):
            hits = top.doc_ids[top.doc_ids != document][:_HITS]
            if len(set(terms)) >= _FEWEST:
                best = shares_of(snapshot, QueryTerms.of(terms), 0, hits).max(initial=0.0)
                rows.append((_logit(np.array([best]))[0], len(set(terms)), at < len(belonging)))
        if not rows:
            return Calibration(*_PRIOR)
        x, terms_, one = np.array(rows).T
        features = np.stack((x, np.log(terms_), np.ones(len(x))), axis=1)
        # Of few documents many queries say little more than few.
        weight = min(1.0, len(snapshot) / _QUERIES)
        return Calibration(*_fit(features, one, weight))

    def of(
        self,
        snapshot: Snapshot,
        query_terms: Collection[str],
        documents: Positions,
        synonyms: Mapping[str, Collection[tuple[str, ...]]] | None = None,
    ) -> list[float]:
        """Qualities of some documents of a snapshot, for the different terms of a query.

        stand_ins  by term, what stands for it: see `shares_with`
        """
        if synonyms:
            shares = shares_with(snapshot, query_terms, synonyms, documents)
        else:
            numbers = snapshot.vocabulary.numbers
            query = QueryTerms.of(numbers[term] for term in query_terms if term in numbers)
            shares = shares_of(snapshot, query, len(query_terms) - len(query.numbers), documents)
        exact = contain_all(snapshot, query_terms, synonyms or {}, documents)
        qualities: list[float] = self.calibration.qualities(
            shares, len(query_terms), exact
        ).tolist()
        return qualities


def _terms_of_one(snapshot: Snapshot, rng: np.random.Generator, size: int) -> tuple[int, list[int]]:
    """Different content terms of a document, so many or all it has, and that document."""
    document = int(rng.integers(len(snapshot)))
    held = snapshot.content_counts_of(np.array([document])).indices
    return document, rng.choice(held, min(size, len(held)), replace=False).tolist()


def _terms_of_many(snapshot: Snapshot, rng: np.random.Generator, size: int) -> list[int]:
    """A content term each of as many documents."""
    return [term for _ in range(size) for term in _terms_of_one(snapshot, rng, 1)[1]]


def _logit(shares: Values) -> Values:
    inner = np.clip(shares, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(inner / (1 - inner)))


def _fit(features: Values, labels: Values, weight: float) -> Values:
    """Logistic regression by Newton's method, from `_PRIOR` on: the weights of the features.

    worth  of one example, relative to the prior
    """
    weights = _PRIOR.copy()
    for _ in range(_STEPS):
        chances = 1 / (1 + np.exp(-features @ weights))
        gradient = weight * features.T @ (labels - chances) - (weights - _PRIOR)
        spread = weight * features.T @ (features * (chances * (1 - chances))[:, None])
        step = np.linalg.solve(spread + np.eye(len(weights)), gradient)
        weights += step
        if np.abs(step).max() < _NEAR:
            break
    return weights
