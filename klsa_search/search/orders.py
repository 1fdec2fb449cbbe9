"""Orders that documents can be answered in: by score, by metadata, and as they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, Scores
from klsa_search.search.engine import Mask, TopDocs
from klsa_search.search.sorting import SortKey, ranks_by

Rank = Callable[[int, Mask | None], TopDocs]
"""The k best of the documents in a mask, and how many are found."""


class Order(Protocol):
    """Documents in an order, each with its score."""

    def first(self, count: int) -> TopDocs:
        """Return the first documents, at most so many, and how many there are."""


class ByScore:
    """The best first. `page` is how many are shown at a time.

    Where a ranking looks closer the more it is asked for, its first ten of a hundred need not be
    its ten best: each page would repeat some hits of the page before, and lose others. So what
    twice as many bring is put behind what is there already.
    """

    def __init__(self, rank: Rank, mask: Mask | None, page: int) -> None:
        self._rank, self._mask, self._page = rank, mask, page

    def first(self, count: int) -> TopDocs:
        """Cost: a ranking each time the page, doubled, is still too few."""
        size = self._page
        top = self._rank(size, self._mask)
        positions, scores = top.positions, top.scores
        while size < count and len(top.positions) == size:
            size *= 2
            top = self._rank(size, self._mask)
            new = ~np.isin(top.positions, positions)
            positions = np.concatenate((positions, top.positions[new]))[:size]
            scores = np.concatenate((scores, top.scores[new]))[:size]
        return TopDocs(positions[:count], scores[:count], top.total)


class ByFields:
    """By metadata; what is equal there by score, then in document order."""

    def __init__(self, rank: Rank, found: npt.NDArray[np.bool_], keys: Sequence[SortKey]) -> None:
        self._rank, self._size = rank, len(found)
        positions = np.flatnonzero(found)
        ranks = ranks_by(keys, positions)
        order = np.argsort(ranks, kind="stable")
        self._positions, self._ranks = positions[order], ranks[order]

    def first(self, count: int) -> TopDocs:
        """Cost: a ranking of the first, and of those that equal the last of them."""
        if count < len(self._positions):
            count_all = int(np.searchsorted(self._ranks, self._ranks[count - 1], "right"))
        else:
            count_all = len(self._positions)
        positions, ranks = self._positions[:count_all], self._ranks[:count_all]
        scores = scores_of(self._rank, positions, self._size)
        order = np.lexsort((positions, -scores, ranks))[:count]
        return TopDocs(positions[order], scores[order], len(self._positions))


class AsTheyStand:
    """In document order, without a score: where no query is asked."""

    def __init__(self, found: npt.NDArray[np.bool_]) -> None:
        self._positions = np.flatnonzero(found)

    def first(self, count: int) -> TopDocs:
        """Cost: none."""
        positions = self._positions[:count]
        return TopDocs(positions, np.zeros(len(positions), np.float32), len(self._positions))


def scores_of(rank: Rank, positions: Positions, size: int) -> Scores:
    """Scores of some documents: (n,) float32, 0 where the ranking answers one not."""
    scores = np.zeros(size, np.float32)
    if len(positions):
        among = np.zeros(size, np.bool_)
        among[positions] = True
        top = rank(len(positions), Mask(among))
        scores[top.positions] = top.scores
    return scores[positions]
