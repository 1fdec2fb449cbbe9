"""Coverage of the terms of a query by single documents and their neighbours.

`lowrank.coverage` has the formula, and computes it for all documents at once; this module splits it
into terms, and computes it as a share of the query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, values_at
from klsa_search.core.config import SearchSettings
from klsa_search.kernels.postings import UNIT
from klsa_search.lowrank.coverage import HALF, NEIGHBOURHOOD
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.search.query.terms import QueryTerms
from klsa_search.search.rankers.bm25 import boosted_postings
from klsa_search.search.snapshot import Snapshot

Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class QueryWeights(NamedTuple):
    """The terms of a query, their weights and postings.

    numbers   (n,) term numbers
    counts    (n,) in the query
    weights   (n,) h(t) · w(t) · counts
    steps     (n,) int64, the same in 65,536ths of a step, as scores use it
    step      value of a step of a score
    postings  of each term, the documents that contain it and their saturations in 65,536ths
    """

    numbers: Numbers
    counts: Values
    weights: Values
    steps: Numbers
    step: float
    postings: tuple[tuple[DocIds, npt.NDArray[np.uint16]], ...]

    @classmethod
    def of(
        cls, snapshot: Snapshot, numbers: Numbers, counts: npt.NDArray[np.floating]
    ) -> QueryWeights:
        """Return the weights that the query kernel uses. Cost: the postings of the terms."""
        times, kernel = counts.astype(np.float64), snapshot.query_kernel
        postings = tuple(kernel.postings.of_term(term) for term in numbers.tolist())
        steps = kernel.quantised_weights(numbers, times)
        step = float(kernel.postings.step)
        return cls(numbers, times, times * kernel.term_weights[numbers], steps, step, postings)

    @classmethod
    def boosted(
        cls, snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings
    ) -> QueryWeights:
        """Return the same with the boosts of a search: see `rankers.bm25`."""
        unboosted = cls.of(snapshot, query.numbers, query.counts)
        if not parameters.boosts:
            return unboosted
        postings = (boosted_postings(snapshot, term, parameters) for term in query.numbers.tolist())
        return unboosted._replace(postings=tuple(postings))

    def addends(self, documents: DocIds) -> Values:
        """Return the addends of k_q: (d, n), equal to those of the scores to the bit."""
        result = np.zeros((len(documents), len(self.numbers)))
        for at, (postings, saturations) in enumerate(self.postings):
            if self.counts[at] > 0:
                boosted_postings = values_at(documents, postings, saturations).astype(np.int64)
                addends = self.step * (1 + ((self.steps[at] * boosted_postings) >> 16))
                result[:, at] = np.where(boosted_postings > 0, addends, 0.0)
        return result


class Covered(NamedTuple):
    """T of one document, by term.

    terms  (n,) term numbers
    value  (n,) v(t,q) · g(own + near)
    own    (n,) what it adds to k_q
    near   (n,) sum over the neighbours
    neighbour_addends  (d, n) of each of `lenders`, (d,), then of `ids_elsewhere`
    ids_elsewhere  IDs of lenders in other partitions
    """

    terms: Numbers
    value: Values
    own: Values
    near: Values
    neighbour_addends: Values
    lenders: DocIds
    ids_elsewhere: tuple[str, ...] = ()


class LendersElsewhere(NamedTuple):
    """Neighbours of a document in other partitions.

    shares   (d,) as of `neighbours_of`
    impacts  (d, n) of the terms of the query, in steps
    ids      (d,)
    """

    shares: Values
    impacts: Values
    ids: tuple[str, ...]


def covered_by(
    query: QueryWeights,
    best: DocIds,
    near: tuple[DocIds, Values],
    document: int,
    elsewhere: LendersElsewhere | None = None,
) -> Covered:
    """Return T of a document: see `lowrank.coverage`; only impacts of `best` documents count."""
    own = query.addends(np.array([document]))[0] * np.isin([document], best)
    lenders, shares = near
    counted = np.isin(lenders, best) & (shares > 0)
    lenders, shares = lenders[counted], shares[counted]
    neighbour_addends = NEIGHBOURHOOD * shares[:, None] * query.addends(lenders)
    ids: tuple[str, ...] = ()
    if elsewhere is not None:
        lent = NEIGHBOURHOOD * elsewhere.shares[:, None] * (query.step * elsewhere.impacts)
        neighbour_addends = np.concatenate((neighbour_addends, lent))
        ids = elsewhere.ids
    total = neighbour_addends.sum(axis=0)
    return Covered(
        query.numbers, _saturate(query, own + total), own, total, neighbour_addends, lenders, ids
    )


def own_coverage(query: QueryWeights, covered: Covered) -> Covered:
    """Return T of a document without its neighbours."""
    return covered._replace(
        value=_saturate(query, covered.own),
        near=np.zeros_like(covered.near),
        neighbour_addends=covered.neighbour_addends[:0],
        lenders=covered.lenders[:0],
        ids_elsewhere=(),
    )


def _saturate(query: QueryWeights, together: Values) -> Values:
    half = HALF * query.steps / UNIT
    return np.asarray(query.weights * (together / np.where(half > 0, together + half, 1)))


def shares_of(snapshot: Snapshot, query: QueryTerms, unknown: int, documents: DocIds) -> Values:
    """Return T of documents as a share of the query: (d,).

    unknown  distinct terms of the query that no document contains
    Cost: the postings of the query's terms, and a search in them for each neighbour.
    """
    weights = snapshot.query_kernel.term_weights[query.numbers].astype(np.float64)
    total = weights.sum() + unknown * snapshot.query_kernel.unseen
    if not len(documents) or not total:
        return np.zeros(len(documents))
    covered = np.zeros(len(documents))
    shares = _term_coverage(snapshot, query.numbers.tolist(), documents)
    for weight, share in zip(weights, shares, strict=True):
        covered += weight * share
    return np.asarray(covered / total)


def shares_with(
    snapshot: Snapshot,
    analyzed: Collection[str],
    synonyms: Mapping[str, Collection[tuple[str, ...]]],
    documents: DocIds,
) -> Values:
    """Return T of documents, with synonyms if they are covered better: (d,).

    synonyms  by term, the known terms of each synonym, whose mean counts
    """
    numbers, weights = snapshot.vocabulary.numbers, snapshot.query_kernel.term_weights
    others = (term for some in synonyms.values() for terms in some for term in terms)
    known = sorted({numbers[term] for term in (*analyzed, *others) if term in numbers})
    coverage = dict(zip(known, _term_coverage(snapshot, known, documents), strict=True))
    covered, total, nothing = np.zeros(len(documents)), 0.0, np.zeros(len(documents))
    for term in sorted(analyzed):
        number = numbers.get(term)
        best = nothing if number is None else coverage[number]
        for terms in synonyms.get(term, ()):
            best = np.maximum(best, np.mean([coverage[numbers[each]] for each in terms], axis=0))
        weight = snapshot.query_kernel.unseen if number is None else float(weights[number])
        covered, total = covered + weight * best, total + weight
    return np.asarray(covered / total)


def contain_all(
    snapshot: Snapshot,
    analyzed: Collection[str],
    synonyms: Mapping[str, Collection[tuple[str, ...]]],
    documents: DocIds,
) -> npt.NDArray[np.bool_]:
    """Return whether each document contains every term or a synonym of it: (d,)."""
    numbers, postings = snapshot.vocabulary.numbers, snapshot.query_kernel.postings

    def contain(terms: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        contained = np.ones(len(documents), np.bool_)
        for term in terms:
            contained &= term in numbers and np.isin(documents, postings.of_term(numbers[term])[0])
        return contained

    every = np.ones(len(documents), np.bool_)
    for term in analyzed:
        if not every.any():  # soon, for long queries
            break
        every &= np.any([contain(each) for each in ((term,), *synonyms.get(term, ()))], axis=0)
    return every


def _term_coverage(snapshot: Snapshot, terms: Sequence[int], documents: DocIds) -> Iterator[Values]:
    """Yield g of each term in the documents: (d,), from 0 to 1."""
    near, shares = neighbours_of(snapshot, documents)
    candidates, places = np.unique(
        np.concatenate((documents[:, None], near), 1), return_inverse=True
    )
    places = places.reshape(len(documents), -1)
    steps = snapshot.query_kernel.postings.step * snapshot.live_docs()[candidates].astype(
        np.float64
    )
    for term in terms:
        own = values_at(candidates, *snapshot.query_kernel.postings.of_term(term)) * steps
        neighbour_addends = np.einsum("dn,dn->d", shares, own[places[:, 1:]])
        covered = own[places[:, 0]] + NEIGHBOURHOOD * neighbour_addends
        yield covered / (covered + HALF)


def neighbours_of(snapshot: Snapshot, documents: DocIds) -> tuple[DocIds, Values]:
    """Return the neighbours of some documents and their shares, of sum 1 or 0: (d, neighbours)."""
    rows = snapshot.sparse_expansion.rows[documents, : snapshot.neighbour_count]
    levels = (rows & np.uint32(LEVELS)).astype(np.float64)
    shares = levels / np.maximum(levels.sum(axis=1, keepdims=True), 1.0)
    return (rows >> np.uint32(8)).astype(np.int64), shares
