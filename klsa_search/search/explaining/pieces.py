"""The pieces of a score, by numbers of documents and terms, before they have names."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.config import SearchSettings
from klsa_search.expansion.coverage import HALF, NEIGHBOURHOOD
from klsa_search.kernel.postings import UNIT
from klsa_search.search.boosting import held
from klsa_search.search.query import QueryTerms
from klsa_search.search.snapshot import Snapshot

Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]

Near = Callable[[int], tuple[Positions, Values]]
"""The documents near one, and their shares, of sum 1."""


class QueryWeights(NamedTuple):
    """The terms of a query, what they count for, and who holds them.

    numbers  (n,) term numbers
    counts   (n,) how often each is asked for
    weights  (n,) h(t) · w(t) · counts
    steps    (n,) int64, the same as scores are added up of them, in 65,536ths
    step     what a step of a score is worth
    holders  of each the documents that hold it, and their saturations in 65,536ths
    """

    numbers: Numbers
    counts: Values
    weights: Values
    steps: Numbers
    step: float
    holders: tuple[tuple[Positions, npt.NDArray[np.uint16]], ...]

    @classmethod
    def of(
        cls, snapshot: Snapshot, numbers: Numbers, counts: npt.NDArray[np.floating]
    ) -> QueryWeights:
        """Weigh terms as the query kernel does. Cost: their postings."""
        times, kernel = counts.astype(np.float64), snapshot.bm25
        holders = tuple(kernel.postings.of_term(term) for term in numbers.tolist())
        steps = kernel.weighed(numbers, times)
        step = float(kernel.postings.step)
        return cls(numbers, times, times * kernel.worth[numbers], steps, step, holders)

    @classmethod
    def boosted(
        cls, snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings
    ) -> QueryWeights:
        """The same with the boosts of a search: see `boosting`."""
        plain = cls.of(snapshot, query.numbers, query.counts)
        if not parameters.boosts:
            return plain
        holders = (held(snapshot, term, parameters) for term in query.numbers.tolist())
        return plain._replace(holders=tuple(holders))

    def added(self, documents: Positions) -> Values:
        """Addends of k_q: (d, n). To the last bit those that scores are added up of."""
        found = np.zeros((len(documents), len(self.numbers)))
        for at, (holders, saturations) in enumerate(self.holders):
            if len(holders) and self.counts[at] > 0:
                places = np.minimum(np.searchsorted(holders, documents), len(holders) - 1)
                there = holders[places] == documents
                held = saturations[places[there]].astype(np.int64)
                found[there, at] = self.step * (1 + ((self.steps[at] * held) >> 16))
        return found


class Covered(NamedTuple):
    """T of one document, term by term.

    terms  (n,) their numbers
    value  (n,) v(t,q) · g(own + near)
    own    (n,) what it adds to k_q
    near   (n,) what is near lends
    lent   (d, n) by each of `lenders`, (d,)
    """

    terms: Numbers
    value: Values
    own: Values
    near: Values
    lent: Values
    lenders: Positions


class Pieces(NamedTuple):
    """A score of the default ranking, in its pieces, all in units of the score.

    lexical    α's rest of it
    covered    T, whose `value` are shares of the score here; None where it has no share
    seeds      (z,) with their weights, in the order of the query kernel
    by_seed    (z,) what each adds to `expansion`
    estimated  names of parts
    """

    alpha: float
    lexical: float
    covered: Covered | None
    latent: float | None
    expansion: float
    seeds: Positions
    weights: Values
    by_seed: Values
    estimated: tuple[str, ...]


class Splitting(Protocol):
    """Takes scores of one query apart."""

    def pieces(self, document: int, score: float | None) -> Pieces:
        """Take that of a document apart; the score it was answered with, if it was."""


def covered_by(asked: QueryWeights, best: Positions, near: Near, document: int) -> Covered:
    """T of a document: see `expansion.coverage`; `best` are the documents whose terms count."""
    own = asked.added(np.array([document]))[0] * np.isin([document], best)
    lenders, shares = near(document)
    counting = np.isin(lenders, best) & (shares > 0)
    lenders, shares = lenders[counting], shares[counting]
    lent = NEIGHBOURHOOD * shares[:, None] * asked.added(lenders)
    total = lent.sum(axis=0)
    return Covered(asked.numbers, _saturated(asked, own + total), own, total, lent, lenders)


def alone(asked: QueryWeights, covered: Covered) -> Covered:
    """T of a document by what it holds itself."""
    return covered._replace(
        value=_saturated(asked, covered.own),
        near=np.zeros_like(covered.near),
        lent=covered.lent[:0],
        lenders=covered.lenders[:0],
    )


def _saturated(asked: QueryWeights, together: Values) -> Values:
    half = HALF * asked.steps / UNIT
    return np.asarray(asked.weights * (together / np.where(half > 0, together + half, 1)))
