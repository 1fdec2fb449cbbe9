"""A search with wishes: filtered, sorted, counted by facets, a page of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, Scores
from klsa_search.errors import QueryError
from klsa_search.search.engine import Mask
from klsa_search.search.facets import Facet, facet_of, groups_of
from klsa_search.search.orders import AsTheyStand, ByFields, ByScore, Found, Order, Rank
from klsa_search.search.sorting import SortKey, sort_keys
from klsa_search.search.wishes import Wishes
from klsa_search.store.fields.columns import Field, Fields


class Answer(NamedTuple):
    """Hits, and what was found besides.

    total  documents found, or different values of what is distinct
    """

    positions: Positions
    scores: Scores
    total: int
    facets: Mapping[str, Facet]


class Asked(NamedTuple):
    """One query in one state of an index.

    rank      the k best of the documents in a mask, and how many are found
    matching  which documents hold a term of it, or all where it is blank, in the mask: (N,) bool
    mask      documents that may be answered, all where there is none
    blank     whether nothing is asked
    """

    rank: Rank
    matching: Callable[[], npt.NDArray[np.bool_]]
    mask: Mask | None
    blank: bool


def answer(asked: Asked, k: int, wishes: Wishes, fields: Fields) -> Answer:
    """Find what is wished for.

    Cost: that of a ranking of `offset` and k; facets, `distinct` and sorting O(N) besides;
    `min_score` ranks all that is found.
    """
    counted = {name: fields.asked_for(name, "facets") for name in wishes.facets}
    keys = sort_keys(wishes.sort, fields)
    alone = _alone(wishes.distinct, fields)
    end = wishes.offset + k
    if not (counted or keys or alone or asked.blank or wishes.min_score is not None):
        order = ByScore(asked.rank, asked.mask, k)
        positions, scores = order.first(end)
        return Answer(positions[wishes.offset :], scores[wishes.offset :], order.total, {})
    found = asked.matching()
    if wishes.min_score is not None:
        found = _scoring(asked, found, wishes.min_score)
    order_of_all = _order(asked, found, k, keys, narrowed=wishes.min_score is not None)
    if alone is None:
        positions, scores = order_of_all.first(end)
        total = int(np.count_nonzero(found))
    else:
        positions, scores = _first_of_each(order_of_all, end, alone)
        groups = groups_of(alone, np.flatnonzero(found).astype(np.int64))
        total = int(np.count_nonzero(groups < 0)) + len(np.unique(groups[groups >= 0]))
    return Answer(
        positions[wishes.offset :],
        scores[wishes.offset :],
        max(total, len(positions)),  # a ranking may answer what holds no term of the query
        {name: facet_of(field, found, wishes.max_facet_values) for name, field in counted.items()},
    )


def _order(
    asked: Asked,
    found: npt.NDArray[np.bool_],
    k: int,
    keys: Sequence[SortKey],
    *,
    narrowed: bool,
) -> Order:
    if keys:
        return ByFields(asked.rank, found, keys)
    if asked.blank:
        return AsTheyStand(found)
    return ByScore(asked.rank, Mask(found) if narrowed else asked.mask, k)


def _scoring(asked: Asked, found: npt.NDArray[np.bool_], least: float) -> npt.NDArray[np.bool_]:
    """Tell which of the documents found score at least so much."""
    if asked.blank:
        return found & (least <= 0)
    top = asked.rank(len(found), asked.mask)
    enough = np.zeros(len(found), np.bool_)
    enough[top.positions[top.scores >= least]] = True
    return enough


def _alone(name: str | None, fields: Fields) -> Field | None:
    """Return the field of which each value is answered once."""
    if name is None:
        return None
    field = fields.asked_for(name, "distinct")
    if field.starts is not None:
        raise QueryError(
            f"distinct: documents have several values of {name!r}; name a field of one value each",
            field="distinct",
        )
    return field


def _first_of_each(order: Order, count: int, field: Field) -> Found:
    """Return the first documents of different values; one without a value stands for itself."""
    size = 4 * count
    while True:
        positions, scores = order.first(size)
        groups = groups_of(field, positions)
        first = np.zeros(len(positions), np.bool_)
        first[np.unique(groups, return_index=True)[1]] = True
        kept = first | (groups < 0)
        if np.count_nonzero(kept) >= count or len(positions) < size:
            return positions[kept][:count], scores[kept][:count]
        size *= 4
