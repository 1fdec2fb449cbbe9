"""A search with wishes: filtered, sorted, counted by facets, a page of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, Scores
from klsa_search.config import SearchSettings
from klsa_search.errors import QueryError
from klsa_search.expansion import top_z
from klsa_search.search.engine import Mask, Top
from klsa_search.search.facets import Facet, facet_of, groups_of
from klsa_search.search.language import Asked
from klsa_search.search.orders import AsTheyStand, ByFields, ByScore, Found, Order, Rank
from klsa_search.search.sorting import SortKey, sort_keys
from klsa_search.search.state import State
from klsa_search.search.wishes import Wishes
from klsa_search.store.fields.columns import Field, Fields

Matching = Callable[[], npt.NDArray[np.bool_]]


class Answer(NamedTuple):
    """Hits, and what was found besides.

    total  documents found, or different values of what is distinct
    """

    positions: Positions
    scores: Scores
    total: int
    facets: Mapping[str, Facet]


class Question(NamedTuple):
    """One query in one state of an index.

    rank      the k best of the documents in a mask, and how many are found
    matching  which documents are found, in the mask: (N,) bool
    mask      documents that may be answered, all where there is none
    blank     whether nothing is asked, so that every document is found
    """

    rank: Rank
    matching: Matching
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
    holding: Matching = partial(state.ranking.matching, asked)
    nothing = not query.strip()
    blank = nothing and (wishes.filter is not None or bool(wishes.sort))
    if wishes.liked or wishes.disliked:
        liked, disliked = (
            np.array(state.documents.positions(ids), np.int64)
            for ids in (wishes.liked, wishes.disliked)
        )
        moved = state.ranking.moved(asked, parameters, dimensions, liked, disliked)
        rank, blank = partial(_by_scores, moved), False
        if nothing:
            holding = partial(np.greater, moved, 0)
    elif blank:
        holding = state.snapshot.counting
    return answer(Question(rank, _within(holding, mask), mask, blank), k, wishes, state.fields)


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
    within = scores if mask is None else scores * mask.allowed
    positions, best = top_z(within, k)
    return Top(positions, best, int(np.count_nonzero(within)))


def _within(holding: Matching, mask: Mask | None) -> Matching:
    return holding if mask is None else lambda: holding() & mask.allowed


def answer(question: Question, k: int, wishes: Wishes, fields: Fields) -> Answer:
    """Find what is wished for.

    Cost: that of a ranking of `offset` and k; facets, `distinct` and sorting O(N) besides;
    `min_score` ranks all that is found.
    """
    counted = {name: fields.asked_for(name, "facets") for name in wishes.facets}
    keys = sort_keys(wishes.sort, fields)
    alone = _alone(wishes.distinct, fields)
    end = wishes.offset + k
    if not (counted or keys or alone or question.blank or wishes.min_score is not None):
        order = ByScore(question.rank, question.mask, k)
        positions, scores = order.first(end)
        return Answer(positions[wishes.offset :], scores[wishes.offset :], order.total, {})
    found = question.matching()
    if wishes.min_score is not None:
        found = _scoring(question, found, wishes.min_score)
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
        max(total, len(positions)),  # a ranking may answer what holds no term of the query
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


def _scoring(
    question: Question, found: npt.NDArray[np.bool_], least: float
) -> npt.NDArray[np.bool_]:
    """Tell which of the documents found score at least so much."""
    if question.blank:
        return found & (least <= 0)
    top = question.rank(len(found), question.mask)
    enough = np.zeros(len(found), np.bool_)
    with np.errstate(over="ignore"):  # beyond all scores is infinite
        enough[top.positions[top.scores >= np.float32(least)]] = True
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
