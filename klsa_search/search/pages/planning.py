"""Planning: a request, checked against one state of an index, with its query parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from klsa_search.core.array_types import DocIds, DocumentMask
from klsa_search.core.lazy import when_read
from klsa_search.core.parameters import (
    ParsingSettings,
    RankingParameters,
    RankingSettings,
    SearchParameters,
)
from klsa_search.core.wording import suggestion
from klsa_search.errors import QueryError
from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.engine.mask import Mask, intersection
from klsa_search.search.models import NOT_EMBEDDED, EmbeddedQuery
from klsa_search.search.pages.applied_rules import NO_RULES, AppliedRules, apply_rules
from klsa_search.search.pages.named_documents import id_match_of
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.query.query import Query, SearchOptions, VectorLike, as_query
from klsa_search.search.query.rules import readings_of
from klsa_search.search.ranking.parameters import checked_mask
from klsa_search.search.ranking.vector_ranking import QueryVector, checked_vector
from klsa_search.search.state.state import State


class QueryPlan(NamedTuple):
    """A search in one state of an index: see `plan_search`.

    parsed      query, without its mask
    id_match    document whose ID the query is; it comes first
    parameters  of its ranking
    reported    parameters that its ranker uses, by name
    mask        documents that may be returned, by the caller and by the operators; None for all
    pinnable    documents that rules may pin: of the mask, without the requirement of `match`
    rules       rules of the index that apply
    k, offset   of the hits to collect, which are more than requested if they are reranked, or
                limited in tokens
    page        number of hits of a page, by which candidates are chosen
    vector      of the query, if it has one
    warnings    messages about what failed, and is therefore missing from the results
    is_blank    it ranks by nothing, so it matches all documents
    """

    request: Query
    parsed: ParsedQuery
    interpretation: QueryInterpretation
    id_match: int | None
    parameters: RankingSettings
    reported: Mapping[str, Any]
    mask: Mask | None
    pinnable: Mask | None
    rules: AppliedRules
    k: int
    offset: int
    page: int
    vector: QueryVector | None
    warnings: tuple[str, ...]
    is_blank: bool


class Ranking(NamedTuple):
    """The options of `Index.rank`, for any number of queries."""

    k: int
    mask: DocumentMask | DocIds | None
    vector: VectorLike | None
    parameters: SearchParameters

    def query(self, text: str) -> Query:
        """Return the search for a text with these options; QueryError for further ones."""
        names = sorted(RankingParameters.model_fields)
        if unknown := self.parameters.keys() - names:
            name = min(unknown)
            message = f"unknown parameter {name!r}; {suggestion(name, names)}the parameters are: "
            raise QueryError(message + ", ".join(names), field=name)
        documents = {"mask": self.mask, "vector": self.vector}
        options = {name: value for name, value in documents.items() if value is not None}
        return as_query(text, self.k, cast(SearchOptions, {**options, **self.parameters}))


def plan_search(
    opened: State,
    request: Query,
    evidence: Evidence = LOCAL,
    *,
    ranks_only: bool = False,
    embed: Callable[[], EmbeddedQuery] = lambda: NOT_EMBEDDED,
    query_is_id: bool = False,
) -> tuple[State, QueryPlan]:
    """Return the state that a search is executed on, and its plan.

    opened    state of an index
    evidence  of the documents of all partitions, by default of its own
    ranks_only  whether it is a call of `Index.rank`, which does not look for the document whose ID
                is the query, does not correct short words, and to which rules do not apply
    embed     returns the vector of a query that has none
    query_is_id  whether the query is the ID of a document of another partition: none of
              this one is named, and the words of an ID rank alike in all
    The search is executed on the same state, or on that of its passages. QueryError for what the
    index does not have. If the embedder fails, `warnings` of the plan say so.
    """
    state, mask = opened.searched_by(request.group), None
    if request.mask is not None:
        mask = checked_mask(request.mask, len(opened.snapshot))
    if state is not opened and opened.passages is not None:
        mask = opened.passages.mask(mask)
        evidence = evidence.of_passages()
    parsing, chosen = state.parameters.read(request.parameters)
    finds_id = request.group == "document" and not ranks_only
    id_match = id_match_of(state, request, mask, evidence) if finds_id else None
    if query_is_id:  # all partitions ask the same questions, but one of them names the document
        id_match = None
    query_is_id = query_is_id or id_match is not None
    typed = not ranks_only or request.explain
    parsed, interpretation = _parse(
        state, request, parsing, evidence, typed=typed, query_is_id=query_is_id
    )
    if id_match is not None:
        # It is a hit with or without the words of its ID.
        (id_,) = state.documents.ids([id_match])
        interpretation = replace(interpretation, id=id_, unknown=())
        if parsed.mask is not None:
            parsed = parsed._replace(mask=parsed.mask.with_document(id_match))
    allowed, rules = intersection(mask, parsed.mask), NO_RULES
    if request.rules and opened.rules.rules and not ranks_only:
        rules = _rules(opened, state, request, interpretation, id_match)
    spaces, requested = state.snapshot.vectors, request.vector
    warnings: tuple[str, ...] = ()
    if requested is None and not query_is_id:
        embedded, warnings = embed()
        requested = {s: row for s, row in embedded.items() if s in spaces} if embedded else None
    vector = checked_vector(requested or None, spaces)
    k, offset = request.candidates, request.offset
    if request.rerank is not None:
        k, offset = max(request.rerank, offset + k), 0
    reported = state.parameters.used(chosen)
    if state.passages is not None:
        reported["passage_weight"] = chosen.passage_weight
    return state, QueryPlan(
        request=request,
        parsed=parsed if parsed.mask is None else parsed._replace(mask=None),  # it is in `mask`
        interpretation=interpretation,
        id_match=id_match,
        parameters=chosen,
        reported=reported,
        mask=allowed,
        pinnable=mask if parsed.mask is None or not _has_operators(interpretation) else allowed,
        rules=rules,
        k=k,
        page=k,
        offset=offset,
        vector=vector,
        warnings=warnings,
        is_blank=(request.filter is not None or bool(request.sort))
        and not (request.query.strip() or request.positive or request.negative or vector),
    )


def _parse(
    state: State,
    request: Query,
    parsing: ParsingSettings,
    evidence: Evidence,
    *,
    typed: bool,
    query_is_id: bool,
) -> tuple[ParsedQuery, QueryInterpretation]:
    """Return the parsed query, and its interpretation.

    query_is_id  whether the query is the ID of a document; the others are ranked by its words
    """
    query = request.query
    if query_is_id:
        parsing = parsing.model_copy(update={"operators": False, "spelling": "off"})
    parsed = state.query_parser.parse(
        query,
        parsing,
        evidence=evidence,
        typed=typed,
        complete_last=request.prefix == "last" and not query_is_id,
    )
    interpretation = when_read(
        QueryInterpretation,
        partial(state.query_parser.interpretation, query, parsed, parsing, evidence),
    )
    if query_is_id and parsed.mask is not None and interpretation.unknown:
        # No document contains all words.
        parsed = parsed._replace(mask=Mask(np.zeros(len(state.snapshot), np.bool_)))
    return parsed, interpretation


def _rules(
    opened: State,
    state: State,
    request: Query,
    interpretation: QueryInterpretation,
    id_match: int | None,
) -> AppliedRules:
    query, filter_ = request.query, request.filter
    if not (query.strip() or filter_ is not None or request.sort or request.positive):
        return NO_RULES
    fields, analyzer = state.query_parser.fields, opened.info.analyzer
    readings = readings_of(query, interpretation, fields, analyzer)
    matching = opened.rules.matching(readings, filter_)
    may_pin = not request.sort and request.group == "document"
    applied = apply_rules(opened, matching, id_match=id_match, may_pin=may_pin)
    if state is not opened and opened.passages is not None:
        return applied.of_passages(opened.passages)
    return applied


def _has_operators(interpretation: QueryInterpretation) -> bool:
    restricting = (
        interpretation.phrases
        or interpretation.required
        or interpretation.excluded
        or interpretation.fields
    )
    return bool(restricting or interpretation.boolean)
