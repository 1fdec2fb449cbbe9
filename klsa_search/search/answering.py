"""Searching: filters, sorting, facets, distinct values and pages around a ranking."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Scores
from klsa_search.errors import QueryError
from klsa_search.search.engine import DEEP, Mask, TopDocs
from klsa_search.search.facets import Facet, facet_of, groups_of
from klsa_search.search.orders import AsTheyStand, ByFields, ByScore, Order, Rank
from klsa_search.search.ranking import both, top_of
from klsa_search.search.sorting import sort_keys
from klsa_search.search.state import State
from klsa_search.search.wishes import QueryPlan
from klsa_search.store.fields.columns import Field, Fields


def find(state: State, plan: QueryPlan) -> tuple[TopDocs, Mapping[str, Facet]]:
    """Find the documents of a search in one state of an index, and count its facets.

    The total is of documents, on whatever page, or of the values of what is distinct.
    Cost: that of a ranking of `offset` and k; facets, `distinct`, sorting and `min_score` rank all
    that is found, and O(N) besides.
    """
    rank, mask = partial(_ranked, state, plan), plan.mask
    if plan.filter is not None:
        filtered = state.masks.of(plan.filter)
        mask = filtered if mask is None else mask & filtered
    # Without a query, every document of the mask is found.
    blank = not plan.query.strip() and (plan.filter is not None or bool(plan.sort))
    if plan.positive or plan.negative:
        rank, blank = partial(_by_scores, _moved(state, plan)), False
    elif blank:
        mask = both(mask, state.snapshot.counting())
    fields = state.fields
    counted = {name: fields.asked_for(name, "facets") for name in plan.facets}
    keys = sort_keys(plan.sort, fields)
    alone = _alone(plan.distinct, fields)
    if not (counted or keys or alone or blank or plan.min_score is not None):
        return _page(ByScore(rank, mask, plan.k).first(plan.offset + plan.k), plan), {}
    if blank:
        found = _every(len(state.snapshot), mask, plan.min_score)
    else:
        found = _found(len(state.snapshot), rank, mask, plan.min_score)
    order: Order
    if keys:
        order = ByFields(rank, found, keys)
    elif blank:
        order = AsTheyStand(found)
    else:
        order = ByScore(rank, mask if plan.min_score is None else Mask(found), plan.k)
    if alone is None:
        top = order.first(plan.offset + plan.k)._replace(total=int(np.count_nonzero(found)))
    else:
        top = _first_of_each(order, plan.offset + plan.k, alone, found)
    facets = {
        name: facet_of(field, found, plan.max_facet_values) for name, field in counted.items()
    }
    return _page(top, plan), facets


def _page(top: TopDocs, plan: QueryPlan) -> TopDocs:
    return TopDocs(top.positions[plan.offset :], top.scores[plan.offset :], top.total)


def _ranked(state: State, plan: QueryPlan, k: int, mask: Mask | None) -> TopDocs:
    (top,) = state.ranking.top(
        [plan.parsed], k, plan.parameters, plan.dimensions, mask, totals=True
    )
    return top


def _moved(state: State, plan: QueryPlan) -> Scores:
    """Return the scores of all documents, moved by the examples of relevance feedback."""
    positive, negative = (
        np.array(state.documents.positions(ids), np.int64) for ids in (plan.positive, plan.negative)
    )
    return state.ranking.moved(plan.parsed, plan.parameters, plan.dimensions, positive, negative)


def _by_scores(scores: Scores, k: int, mask: Mask | None) -> TopDocs:
    """Return the k best by scores of all documents."""
    return top_of(scores if mask is None else scores * mask.allowed, k)


def _every(size: int, mask: Mask | None, least: float | None) -> npt.NDArray[np.bool_]:
    """Return which documents a blank query finds, all with score 0: (N,)."""
    every = np.ones(size, np.bool_) if mask is None else mask.allowed
    return every & (least is None or least <= 0)


def _found(size: int, rank: Rank, mask: Mask | None, least: float | None) -> npt.NDArray[np.bool_]:
    """Return which documents are found and score at least so much: (N,)."""
    # Room for all documents would cost more than to count those found first.
    total = rank(1, mask).total
    # Scores that are compared are those of a deep ranking, however few are found.
    top = rank(max(total, 1 if least is None else DEEP), mask)
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


def _first_of_each(order: Order, count: int, field: Field, found: npt.NDArray[np.bool_]) -> TopDocs:
    """Return the first documents of different values; one without a value stands for itself."""
    groups = groups_of(field, np.flatnonzero(found).astype(np.int64))
    total = int(np.count_nonzero(groups < 0)) + len(np.unique(groups[groups >= 0]))
    size = 4 * count
    while True:
        positions, scores, _ = order.first(size)
        groups = groups_of(field, positions)
        first = np.zeros(len(positions), np.bool_)
        first[np.unique(groups, return_index=True)[1]] = True
        kept = first | (groups < 0)
        if np.count_nonzero(kept) >= count or len(positions) < size:
            return TopDocs(positions[kept][:count], scores[kept][:count], total)
        size *= 4
