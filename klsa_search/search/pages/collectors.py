"""The documents of a page: filtered, ordered, and counted by facets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, DocumentMask, Numbers, Scores
from klsa_search.errors import QueryError
from klsa_search.search.engine.mask import Mask, intersection
from klsa_search.search.engine.top_docs import (
    ALL_CANDIDATES,
    Rank,
    TopDocs,
    best_of,
    boosted,
    id_match_first,
    ranked,
    typed_matches_first,
)
from klsa_search.search.filters.masks import filter_of
from klsa_search.search.filters.parser import without_field
from klsa_search.search.pages.applied_rules import free_positions, placed, without
from klsa_search.search.pages.facets import Facet, facet_of
from klsa_search.search.pages.planning import QueryPlan
from klsa_search.search.rankers.feedback import add_feedback
from klsa_search.search.ranking.vector_ranking import vector_parts, with_vectors
from klsa_search.search.state.state import State
from klsa_search.storage.columns.columns import Field, Fields

_BETWEEN_NAMES: Final = re.compile(r"[\s:,]+")
"""What stands between fields and directions in the notation of other engines."""


class SortKey(NamedTuple):
    """A field to sort by."""

    field: Field
    descending: bool


def sort_keys(sort: Iterable[str], fields: Fields) -> list[SortKey]:
    """Parse `field:asc` and `field:desc`, or `field` for ascending; QueryError."""
    keys = []
    for spec in sort:
        name, colon, direction = spec.rpartition(":")
        if direction not in ("asc", "desc") or not colon:
            name, direction = spec, "asc"
        named = [part for part in _BETWEEN_NAMES.split(spec.lstrip("+-")) if part in fields]
        if named and name not in fields:
            raise QueryError(
                f"sort: {spec!r} is not one field with a direction; write {named[0]}:asc or "
                f"{named[0]}:desc",
                field="sort",
            )
        keys.append(SortKey(fields.filterable(name, "sort"), direction == "desc"))
    return keys


def ranks_by(keys: Sequence[SortKey], doc_ids: DocIds) -> Numbers:
    """Return ranks of documents by the keys: (n,), equal for equal documents.

    Of several values the smallest counts, or the largest in descending order; documents without a
    value come last in either. Cost: O(n log n).
    """
    ranks = np.zeros(len(doc_ids), np.int64)
    for field, descending in keys:
        values, present = values_of(field, doc_ids, descending)
        order = np.unique(values[present], return_inverse=True)[1].astype(np.int64)
        ranks_of = np.full(len(doc_ids), len(order), np.int64)
        ranks_of[present] = -order if descending else order
        ranks = np.unique(ranks * (2 * len(order) + 2) + ranks_of, return_inverse=True)[1]
    return np.asarray(ranks, np.int64)


def values_of(
    field: Field, doc_ids: DocIds, descending: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the values that documents are sorted by, and whether each has one: (n,), (n,)."""
    present = field.present()[doc_ids]
    if field.starts is None:
        return field.values[doc_ids], present
    # Values are ascending in each document.
    positions = field.starts[doc_ids + 1] - 1 if descending else field.starts[doc_ids]
    positions[~present] = 0
    values = field.values[positions] if len(field.values) else np.zeros(len(doc_ids))
    return values, present


Order = Callable[[int], TopDocs]
"""Returns the first documents of an order, at most so many, and how many it has."""


def by_score(rank: Rank, mask: Mask | None, page: int, best: TopDocs | None = None) -> Order:
    """Return the documents of a mask, best first; `page` is the number of hits of a page.

    best  those of the first page, if they are ranked already
    Rankings rescore more candidates for larger k, so the first ten of a hundred may differ from the
    ten best, and pages would overlap. So results of a larger k are appended to those of a smaller.
    Cost: a ranking for each doubling of the page.
    """

    def first(count: int) -> TopDocs:
        size = page
        last = top = rank(size, mask) if best is None else best
        while size < count and len(last.doc_ids) == size:
            size *= 2
            last = rank(size, mask)
            top = top.joined(last.at(~np.isin(last.doc_ids, top.doc_ids))).at(slice(size))
        if len(top.doc_ids) > count:
            top = top.at(slice(count))
        return top if top is last else top._replace(total=last.total)

    return first


def by_fields(rank: Rank, matches: DocumentMask, keys: Sequence[SortKey]) -> Order:
    """Return the matches by metadata, then by score, then by doc id.

    Cost: a ranking of the first, and of those equal to the last of them.
    """
    all_doc_ids = np.flatnonzero(matches)
    all_ranks = ranks_by(keys, all_doc_ids)
    order = np.argsort(all_ranks, kind="stable")
    all_doc_ids, all_ranks = all_doc_ids[order], all_ranks[order]

    def first(count: int) -> TopDocs:
        size = len(all_doc_ids)
        if count < size:
            size = int(np.searchsorted(all_ranks, all_ranks[count - 1], "right"))
        doc_ids = all_doc_ids[:size]
        top = ranked(rank, doc_ids, len(matches))
        best = np.lexsort((doc_ids, -top.scores, all_ranks[:size]))[:count]
        return top.at(best)._replace(total=len(all_doc_ids))

    return first


def by_doc_id(matches: DocumentMask) -> Order:
    """Return the matches by doc id, with score 0: for queries without words."""
    doc_ids = np.flatnonzero(matches)

    def first(count: int) -> TopDocs:
        scores = np.zeros(len(doc_ids[:count]), np.float32)
        return TopDocs(doc_ids[:count], scores, len(doc_ids))

    return first


def distinct(order: Order, field: Field, matches: DocumentMask) -> Order:
    """Return the first document with each value of a field, and all without a value.

    matches  (N,) documents of the order
    Cost: the order of four times as many documents, and more until they suffice.
    """
    all_groups = _groups_of(field, np.flatnonzero(matches).astype(np.int64))
    total = int(np.count_nonzero(all_groups < 0)) + len(np.unique(all_groups[all_groups >= 0]))

    def first(count: int) -> TopDocs:
        size = 4 * count
        while True:
            top = order(size)
            groups = _groups_of(field, top.doc_ids)
            kept = groups < 0
            kept[np.unique(groups, return_index=True)[1]] = True
            if np.count_nonzero(kept) >= count or len(groups) < size:
                return top.at(np.flatnonzero(kept)[:count])._replace(total=total)
            size *= 4

    return first


def pinned_first(order: Order, pinned: TopDocs) -> Order:
    """Return pinned documents, then those of an order, which does not contain them."""

    def first(count: int) -> TopDocs:
        size = len(pinned.doc_ids)
        top = order(max(count - size, 1))
        return pinned.joined(top).at(slice(count))._replace(total=top.total + size)

    return first


def pinned_in_place(order: Order, positions: Mapping[int, int]) -> Order:
    """Return an order with the pinned documents, which come first in it, at their positions.

    positions  from 1, by doc id; one beyond the last document is the end
    """

    def first(count: int) -> TopDocs:
        top = order(count + len(positions))
        of_top = [positions.get(doc_id) for doc_id in top.doc_ids.tolist()]
        return top.at(np.array(placed(range(len(of_top)), of_top)[:count], np.int64))

    return first


def collect(
    state: State, plan: QueryPlan, *, pins_first: bool = False
) -> tuple[TopDocs, Mapping[str, Facet]]:
    """Return the documents of a search in one state of an index, and its facets.

    pins_first  leave the pinned documents before all others, as merging with other parts needs

    The total is of documents on all pages, or of distinct values.
    Cost: a ranking of `offset` and k; facets, `distinct`, sorting, `min_score` and boosts of rules
    rank all matches, and cost O(N).
    """
    request = plan.request
    mask, positions = _mask_and_pins(state, plan)
    rank = _ranking(state, plan, mask, positions)
    distinct_by, faceted = distinct_field(request.distinct, state), _faceted(state, plan)
    all_matches = distinct_by is not None or bool(faceted)
    order, matches = _ordered(state, plan, rank, mask, all_matches=all_matches)
    if positions:
        top = ranked(rank, np.array([*positions], np.int64), len(state.snapshot))
        order = pinned_first(order, top)
        if matches is not None:
            matches[top.doc_ids] = True
    if matches is not None and distinct_by is not None:
        order = distinct(order, distinct_by, matches)
    count = plan.offset + plan.k
    if pins_first:  # any pinned document, of other partitions too, may take a distinct value
        count += len(positions) if distinct_by is None else plan.rules.pinned
    elif positions:
        order = pinned_in_place(order, positions)
    top = order(count)
    if plan.offset:
        top = top.at(slice(plan.offset, None))
    if matches is None:
        return top, {}
    if distinct_by is None:
        top = top._replace(total=int(np.count_nonzero(matches)))
    counted = dict.fromkeys(faceted, matches)
    for name in request.disjunctive_facets:
        counted[name] = _matches_without(state, plan, name, matches)
    return top, {
        name: facet_of(field, counted[name], request.max_facet_values)
        for name, field in faceted.items()
    }


def count_matches(state: State, plan: QueryPlan) -> int:
    """Return the total of a search by words, without other options than a filter.

    Cost: none, if all documents of the mask contain a word that ranks; else a ranking.
    """
    mask, positions = _mask_and_pins(state, plan)
    terms, builder = {*plan.parsed.terms}, plan.parsed.builder
    if plan.request.match == "all" and mask and builder and plan.id_match is None and not positions:
        for alternatives in builder.alternatives.values():
            if not any(terms.isdisjoint(one) for one in alternatives):
                allowed = state.snapshot.allowed(mask)
                return 0 if allowed is None else allowed.size
    return collect(state, plan)[0].total


def _faceted(state: State, plan: QueryPlan) -> dict[str, Field]:
    fields = {name: state.fields.filterable(name, "facets") for name in plan.request.facets}
    for name in plan.request.disjunctive_facets:
        fields[name] = state.fields.filterable(name, "disjunctive_facets")
    return fields


def _ordered(
    state: State, plan: QueryPlan, rank: Rank, mask: Mask | None, *, all_matches: bool
) -> tuple[Order, DocumentMask | None]:
    """Return the order of documents, and which match if that is needed, for itself or a caller.

    mask         documents that may be found, without those pinned
    all_matches  whether the caller needs all that match: (N,)
    """
    keys, least = sort_keys(plan.request.sort, state.fields), plan.request.min_score
    if not (plan.is_blank or keys or least is not None):
        if not all_matches:
            return by_score(rank, mask, plan.page), None
        best = rank(plan.page, mask, matches=True)
        assert best.matches is not None, "they were requested"
        return by_score(rank, mask, plan.page, best._replace(matches=None)), best.matches.allowed
    matches = _matches(len(state.snapshot), plan, rank, mask)
    if keys:
        return by_fields(rank, matches, keys), matches
    if plan.is_blank:
        return by_doc_id(matches), matches
    return by_score(rank, Mask(matches), plan.page), matches


def _matches_without(
    state: State, plan: QueryPlan, name: str, matches: DocumentMask
) -> DocumentMask:
    """Return which documents are found if the filter has no conditions on a field: (N,).

    matches  those that are found
    Cost: a ranking of all matches, if the filter has such conditions.
    """
    request = plan.request
    if request.filter is None:
        return matches
    filter_ = filter_of(request.filter)
    wider = without_field(filter_, name)
    if wider == filter_:
        return matches
    plan = plan._replace(request=request.model_copy(update={"filter": wider}))
    mask, positions = _mask_and_pins(state, plan)
    matches = _matches(len(matches), plan, _ranking(state, plan, mask, positions), mask)
    matches[np.array([*positions], np.int64)] = True
    return matches


def _ranking(state: State, plan: QueryPlan, mask: Mask | None, pins: Iterable[int]) -> Rank:
    """Return the ranking of a query.

    mask  documents that may be found, without those pinned
    """
    request = plan.request
    rank = state.searcher.ranking(plan.parsed, plan.parameters)
    if request.positive or request.negative:
        rank = partial(best_of, _feedback_scores(state, plan))
    if plan.vector is not None:
        parts = vector_parts(state.snapshot, plan.vector, rank, mask, state.searcher.evidence)
        id_matches = [] if plan.id_match is None else [plan.id_match]
        rank = with_vectors(rank, parts, np.array([*pins, *id_matches], np.int64))
    if plan.rules.boosts and not plan.is_blank:
        rank = boosted(rank, plan.rules.factors(len(state.snapshot)))
    if plan.parsed.typed_matches is not None and not plan.is_blank:
        rank = typed_matches_first(rank, plan.parsed.typed_matches)
    if plan.id_match is not None:
        rank = id_match_first(rank, plan.id_match, len(state.snapshot))
    return rank


def _mask_and_pins(state: State, plan: QueryPlan) -> tuple[Mask | None, dict[int, int]]:
    """Return the documents that may be found, without those pinned, and the positions of these."""
    mask, pinnable = plan.mask, plan.pinnable
    if plan.request.filter is not None:
        filtered = state.filters.of(plan.request.filter)
        mask, pinnable = intersection(mask, filtered), intersection(pinnable, filtered)
    if plan.rules.hidden:
        mask = without(mask, sorted(plan.rules.hidden), len(state.snapshot))
    if plan.is_blank:
        mask = intersection(mask, state.snapshot.live)
    if not plan.rules.pins:
        return mask, {}
    first_is_taken = plan.id_match is not None and (mask is None or plan.id_match in mask)
    pins = {n: pin for n, pin in plan.rules.pins.items() if pinnable is None or n in pinnable}
    positions = free_positions(pins, first_is_taken=first_is_taken)
    return without(mask, [*positions], len(state.snapshot)), positions


def _feedback_scores(state: State, plan: QueryPlan) -> Scores:
    request, find = plan.request, state.documents.find
    present = [id_ for id_ in (*request.positive, *request.negative) if find(id_) is not None]
    counted = state.searcher.evidence.of(("examples",), lambda: Counter(present))
    positive, negative = (
        np.array(state.documents.doc_ids(id_ for id_ in ids if id_ in present), np.int64)
        if ids
        else None
        for ids in (request.positive, request.negative)
    )
    searcher, parameters = state.searcher, plan.parameters
    scores = searcher.scores(plan.parsed, parameters)
    examples = positive, negative
    scores = add_feedback(state.snapshot, scores, examples, parameters, searcher.evidence)
    missing = (id_ for id_ in (*request.positive, *request.negative) if id_ not in counted)
    state.documents.doc_ids(missing)  # raises
    return scores


def _matches(size: int, plan: QueryPlan, rank: Rank, mask: Mask | None) -> DocumentMask:
    """Return which documents match and score at least `min_score`: (N,). Blank queries give 0."""
    least = plan.request.min_score
    if plan.is_blank:
        every = np.ones(size, np.bool_) if mask is None else mask.allowed
        return every & (least is None or least <= 0)
    first = rank(1, mask, matches=least is None)
    if least is None:
        assert first.matches is not None, "they were requested"
        return first.matches.allowed
    # Compared scores are those of a deep ranking, even for few matches.
    top = rank(max(first.total, ALL_CANDIDATES), mask)
    with np.errstate(over="ignore"):  # larger than any score becomes infinite
        doc_ids = top.doc_ids[top.scores >= np.float32(least)]
    return Mask.of_documents(doc_ids, size).allowed


def distinct_field(name: str | None, state: State) -> Field | None:
    """Return the field whose values must be distinct.

    QueryError if a live document has several; those that a restricted state hides do not count.
    """
    if name is None:
        return None
    field = state.fields.filterable(name, "distinct")
    if field.starts is not None and (np.diff(field.starts)[state.snapshot.live_docs()] > 1).any():
        raise QueryError(
            f"distinct: field {name!r} has several values in some documents; name "
            "a single-valued field",
            field="distinct",
        )
    return field


def _groups_of(field: Field, doc_ids: DocIds) -> Numbers:
    """Number the values of documents with at most one each: (n,), -1 for none."""
    values, present = values_of(field, doc_ids, descending=False)
    groups = np.unique(values, return_inverse=True)[1].astype(np.int64)
    groups[~present] = -1
    return groups
