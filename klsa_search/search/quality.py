"""How good a match is: what a document and those near it hold of a query, set against chance.

    x = logit T,   T = Σ_t w(t) · g(own + lent) / Σ_t w(t)

with g, own and lent as in `expansion.coverage`, over all terms of the query, those that no document
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

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.expansion.coverage import HALF, NEIGHBOURHOOD
from klsa_search.expansion.packing import LEVELS
from klsa_search.lazily import lazily
from klsa_search.search.query import QueryTerms
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

Values = npt.NDArray[np.float64]


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
        self._built, self._seed = built, seed

    @lazily
    def calibration(self) -> Calibration:
        """Ask the index queries of its own, and learn from what they find."""
        snapshot, rng = self._built, np.random.default_rng(self._seed)
        if len(snapshot) < _FEW:  # where one is left out too little is left to find
            return Calibration(*_PRIOR)
        sizes = np.exp(rng.uniform(np.log(_FEWEST), np.log(_TERMS + 1), _QUERIES)).astype(np.int64)
        belonging = [_of_one(snapshot, rng, int(size)) for size in sizes]
        random = [_of_many(snapshot, rng, int(size)) for size in sizes]
        asked = [terms for _, terms in belonging] + random
        left_out = [document for document, _ in belonging] + [-1] * len(random)
        rows = []
        found = snapshot.engine.top(asked, min(_HITS + 1, len(snapshot)), None)
        for at, (terms, top, document) in enumerate(zip(asked, found, left_out, strict=True)):
            hits = top.positions[top.positions != document][:_HITS]
            if len(set(terms)) >= _FEWEST:
                best = shares_of(snapshot, QueryTerms.of(terms), 0, hits).max(initial=0.0)
                rows.append((_logit(np.array([best]))[0], len(set(terms)), at < len(belonging)))
        if not rows:
            return Calibration(*_PRIOR)
        x, terms_, one = np.array(rows).T
        features = np.stack((x, np.log(terms_), np.ones(len(x))), axis=1)
        # Of few documents many queries say little more than few.
        worth = min(1.0, len(snapshot) / _QUERIES)
        return Calibration(*_learned(features, one, worth))

    def of(
        self,
        snapshot: Snapshot,
        analyzed: Collection[str],
        documents: Positions,
        stand_ins: Mapping[str, Collection[tuple[str, ...]]] | None = None,
    ) -> list[float]:
        """Qualities of some documents of a snapshot, for the different terms of a query.

        stand_ins  by term, what stands for it: see `shares_with`
        """
        if stand_ins:
            shares = shares_with(snapshot, analyzed, stand_ins, documents)
        else:
            numbers = snapshot.vocabulary.numbers
            query = QueryTerms.of(numbers[term] for term in analyzed if term in numbers)
            shares = shares_of(snapshot, query, len(analyzed) - len(query.numbers), documents)
        exact = contain_all(snapshot, analyzed, stand_ins or {}, documents)
        qualities: list[float] = self.calibration.qualities(shares, len(analyzed), exact).tolist()
        return qualities


def shares_of(snapshot: Snapshot, query: QueryTerms, unknown: int, documents: Positions) -> Values:
    """T of some documents: (d,).

    unknown  distinct terms of the query that no document holds
    Cost: the postings of the query's terms, and a search in them for each near document.
    """
    worth = snapshot.bm25.worth[query.numbers].astype(np.float64)
    whole = worth.sum() + unknown * snapshot.bm25.unseen
    if not len(documents) or not whole:
        return np.zeros(len(documents))
    covered = np.zeros(len(documents))
    for weight, held in zip(worth, _held(snapshot, query.numbers.tolist(), documents), strict=True):
        covered += weight * held
    return np.asarray(covered / whole)


def shares_with(
    snapshot: Snapshot,
    analyzed: Collection[str],
    stand_ins: Mapping[str, Collection[tuple[str, ...]]],
    documents: Positions,
) -> Values:
    """T of some documents where a term is held as far as what stands for it, if that is more: (d,).

    stand_ins  by term, the known terms of each that stands for it, of which the mean counts
    """
    numbers, worth = snapshot.vocabulary.numbers, snapshot.bm25.worth
    others = (term for some in stand_ins.values() for terms in some for term in terms)
    known = sorted({numbers[term] for term in (*analyzed, *others) if term in numbers})
    held = dict(zip(known, _held(snapshot, known, documents), strict=True))
    covered, whole, nothing = np.zeros(len(documents)), 0.0, np.zeros(len(documents))
    for term in sorted(analyzed):
        number = numbers.get(term)
        best = nothing if number is None else held[number]
        for terms in stand_ins.get(term, ()):
            best = np.maximum(best, np.mean([held[numbers[each]] for each in terms], axis=0))
        weight = snapshot.bm25.unseen if number is None else float(worth[number])
        covered, whole = covered + weight * best, whole + weight
    return np.asarray(covered / whole)


def contain_all(
    snapshot: Snapshot,
    analyzed: Collection[str],
    stand_ins: Mapping[str, Collection[tuple[str, ...]]],
    documents: Positions,
) -> npt.NDArray[np.bool_]:
    """Return whether each of some documents contains every term, or what stands for it: (d,)."""
    numbers, postings = snapshot.vocabulary.numbers, snapshot.bm25.postings

    def contain(terms: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        held = np.ones(len(documents), np.bool_)
        for term in terms:
            held &= term in numbers and np.isin(documents, postings.of_term(numbers[term])[0])
        return held

    every = np.ones(len(documents), np.bool_)
    for term in analyzed:
        if not every.any():  # as after some words of any long query
            break
        every &= np.any([contain(each) for each in ((term,), *stand_ins.get(term, ()))], axis=0)
    return every


def _held(snapshot: Snapshot, terms: Sequence[int], documents: Positions) -> Iterator[Values]:
    """G of each term in some documents: (d,), from 0 to 1."""
    near, shares = _near(snapshot, documents)
    looked_at, places = np.unique(
        np.concatenate((documents[:, None], near), 1), return_inverse=True
    )
    places = places.reshape(len(documents), -1)
    steps = snapshot.bm25.postings.step * snapshot.counting()[looked_at].astype(np.float64)
    for term in terms:
        holders, saturations = snapshot.bm25.postings.of_term(term)
        if not len(holders):
            yield np.zeros(len(documents))
            continue
        at = np.minimum(np.searchsorted(holders, looked_at), len(holders) - 1)
        held = np.where(holders[at] == looked_at, saturations[at], 0) * steps
        lent = np.einsum("dn,dn->d", shares, held[places[:, 1:]])
        together = held[places[:, 0]] + NEIGHBOURHOOD * lent
        yield together / (together + HALF)


def _near(snapshot: Snapshot, documents: Positions) -> tuple[Positions, Values]:
    """The documents near each of some, and their shares: (d, neighbours)."""
    if snapshot.cut is not None:
        rows = snapshot.cut.rows[documents, : snapshot.neighbour_count]
        levels = (rows & np.uint32(LEVELS)).astype(np.float64)
        shares = levels / np.maximum(levels.sum(axis=1, keepdims=True), 1.0)
        return (rows >> np.uint32(8)).astype(np.int64), shares
    kept = snapshot.neighbours
    if kept is None:
        return np.zeros((len(documents), 0), np.int64), np.zeros((len(documents), 0))
    sizes = np.diff(kept.indptr)[documents]
    near = np.zeros((len(documents), int(sizes.max(initial=0))), np.int64)
    shares = np.zeros(near.shape)
    for at, (document, size) in enumerate(zip(documents.tolist(), sizes.tolist(), strict=True)):
        first = kept.indptr[document]
        near[at, :size] = kept.indices[first : first + size]
        shares[at, :size] = kept.data[first : first + size]
    return near, shares


def _of_one(snapshot: Snapshot, rng: np.random.Generator, size: int) -> tuple[int, list[int]]:
    """Different content terms of a document, so many or all it has, and that document."""
    document = int(rng.integers(len(snapshot)))
    held = snapshot.content_counts_of(np.array([document])).indices
    return document, rng.choice(held, min(size, len(held)), replace=False).tolist()


def _of_many(snapshot: Snapshot, rng: np.random.Generator, size: int) -> list[int]:
    """A content term each of as many documents."""
    return [term for _ in range(size) for term in _of_one(snapshot, rng, 1)[1]]


def _logit(shares: Values) -> Values:
    inner = np.clip(shares, _LEAST, 1 - _LEAST)
    return np.asarray(np.log(inner / (1 - inner)))


def _learned(features: Values, labels: Values, worth: float) -> Values:
    """Logistic regression by Newton's method, from `_PRIOR` on: the weights of the features.

    worth  of one example, relative to the prior
    """
    weights = _PRIOR.copy()
    for _ in range(_STEPS):
        chances = 1 / (1 + np.exp(-features @ weights))
        gradient = worth * features.T @ (labels - chances) - (weights - _PRIOR)
        spread = worth * features.T @ (features * (chances * (1 - chances))[:, None])
        step = np.linalg.solve(spread + np.eye(len(weights)), gradient)
        weights += step
        if np.abs(step).max() < _NEAR:
            break
    return weights
