"""A search with wishes: filtered, sorted, counted by facets, a page of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, Scores
from klsa_search.config import SearchSettings
from klsa_search.errors import QueryError
from klsa_search.search.engine import DEEP, Mask, Top
from klsa_search.search.facets import Facet, facet_of, groups_of
from klsa_search.search.language import Asked
from klsa_search.search.orders import AsTheyStand, ByFields, ByScore, Found, Order, Rank
from klsa_search.search.ranking import both, top_of
from klsa_search.search.sorting import SortKey, sort_keys
from klsa_search.search.state import State
from klsa_search.search.wishes import Wishes
from klsa_search.store.fields.columns import Field, Fields


class Answer(NamedTuple):
    """Hits, and what was found besides.

    total  documents found, on whatever page, or different values of what is distinct
    """

    positions: Positions
    scores: Scores
    total: int
    facets: Mapping[str, Facet]


class Question(NamedTuple):
    """One query in one state of an index.

    rank   the k best of the documents in a mask, and how many are found
    mask   documents that may be answered, all where there is none
    blank  whether there is no query, so that every document of the mask is found
    """

    rank: Rank
    mask: Mask | None
    blank: bool


def find(
    state: State,
    query: str,
    asked: Asked,
    k: int,
    parameters: SearchSettings,
    dimensions: int,
    mask: Mask | None,
    wishes: Wishes | None,
) -> Answer:
    """Find the documents of a search in one state of an index. See `answer`.

    asked  what was understood of the query, apart from what it allows, which is in the mask
    """
    rank: Rank = partial(_ranked, state, asked, parameters, dimensions)
    if wishes is None:
        top = rank(k, mask)
        return Answer(top.positions, top.scores, top.total, {})
    if wishes.filter is not None:
        filtered = state.masks.of(wishes.filter)
        mask = filtered if mask is None else mask & filtered
    nothing = not query.strip()
    blank = nothing and (wishes.filter is not None or bool(wishes.sort))
    if wishes.positive or wishes.negative:
        positive, negative = (
            np.array(state.documents.positions(ids), np.int64)
            for ids in (wishes.positive, wishes.negative)
        )
        moved = state.ranking.moved(asked, parameters, dimensions, positive, negative)
        rank, blank = partial(_by_scores, moved), False
    elif blank:
        mask = both(mask, state.snapshot.counting())
    return answer(Question(rank, mask, blank), len(state.snapshot), k, wishes, state.fields)


def _ranked(
    state: State,
    asked: Asked,
    parameters: SearchSettings,
    dimensions: int,
    k: int,
    mask: Mask | None,
) -> Top:
    (top,) = state.ranking.top([asked], k, parameters, dimensions, mask, totals=True)
    return top


def _by_scores(scores: Scores, k: int, mask: Mask | None) -> Top:
    """Return the k best by scores of all documents."""
    return top_of(scores if mask is None else scores * mask.allowed, k)


def answer(question: Question, size: int, k: int, wishes: Wishes, fields: Fields) -> Answer:
    """Find what is wished for.

    size  documents of the index, N
    Cost: that of a ranking of `offset` and k; facets, `distinct`, sorting and `min_score` rank all
    that is found, and O(N) besides.
    """
    counted = {name: fields.asked_for(name, "facets") for name in wishes.facets}
    keys = sort_keys(wishes.sort, fields)
    alone = _alone(wishes.distinct, fields)
    end = wishes.offset + k
    if not (counted or keys or alone or question.blank or wishes.min_score is not None):
        order = ByScore(question.rank, question.mask, k)
        positions, scores = order.first(end)
        return Answer(positions[wishes.offset :], scores[wishes.offset :], order.total, {})
    found = _found(question, size, wishes.min_score)
    order_of_all = _order(question, found, k, keys, narrowed=wishes.min_score is not None)
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
        total,
        {name: facet_of(field, found, wishes.max_facet_values) for name, field in counted.items()},
    )


def _order(
    question: Question,
    found: npt.NDArray[np.bool_],
    k: int,
    keys: Sequence[SortKey],
    *,
    narrowed: bool,
) -> Order:
    if keys:
        return ByFields(question.rank, found, keys)
    if question.blank:
        return AsTheyStand(found)
    return ByScore(question.rank, Mask(found) if narrowed else question.mask, k)


def _found(question: Question, size: int, least: float | None) -> npt.NDArray[np.bool_]:
    """Return which documents are found and score at least so much: (N,)."""
    if question.blank:
        every = np.ones(size, np.bool_) if question.mask is None else question.mask.allowed
        return every & (least is None or least <= 0)
    # Room for all documents would cost more than to count those found first.
    total = question.rank(1, question.mask).total
    # Scores that are compared are those of a deep ranking, however few are found.
    top = question.rank(max(total, 1 if least is None else DEEP), question.mask)
    positions = top.positions
    if least is not None:
        with np.errstate(over="ignore"):  # beyond all scores is infinite
            positions = positions[top.scores >= np.float32(least)]
    found = np.zeros(size, np.bool_)
    found[positions] = True
    return found


def _alone(name: str | None, fields: Fields) -> Field | None:
    """Return the field of which each value is answered once."""
    if name is None:
        return None
    field = fields.asked_for(name, "distinct")
    if field.starts is not None:
        raise QueryError(
            f"distinct: field {name!r} has several values in some documents; name "
            "a single-valued field",
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
