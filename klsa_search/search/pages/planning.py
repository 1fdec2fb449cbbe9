"""Planning: a request, checked against one state of an index, with its query parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np

from klsa_search.core.array_types import DocIds, DocumentMask
from klsa_search.core.parameters import LanguageSettings, SearchParameters, SearchSettings
from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.engine.mask import Mask, intersection
from klsa_search.search.models import (
    NOT_EMBEDDED,
    EmbeddedQuery,
    EmbeddedSpaces,
    Models,
    embedded_query,
)
from klsa_search.search.pages.applied_rules import NO_RULES, AppliedRules, apply_rules
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.query.query import Query, SearchOptions, VectorLike, as_query
from klsa_search.search.query.rules import readings_of
from klsa_search.search.ranking.parameters import checked_mask
from klsa_search.search.ranking.vector_ranking import QueryVector, checked_vector
from klsa_search.search.state.state import State
from klsa_search.storage.names import index_of

if TYPE_CHECKING:
    from klsa_search.embedding.model import CheckedEmbedder

_ID: Final = re.compile(r"(?=\S*[^\W\d_])(?=\S*(?:\d|_|[^\w\s]))[^\s\ud800-\udfff]+")
"""Queries that may be the ID of a document: others are words or numbers, even if they are IDs."""
_NUMBER: Final = re.compile(r"#?(\d{3,})")
_LETTERS_AND_DIGITS: Final = re.compile(r"([^\W\d_]+)[\s\W_]?(\d+)")


class QueryPlan(NamedTuple):
    """A search in one state of an index: see `plan_search`.

    parsed      query, without its mask
    named       document whose ID the query is; it comes first
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
    """

    request: Query
    parsed: ParsedQuery
    interpretation: QueryInterpretation
    named: int | None
    parameters: SearchSettings
    reported: Mapping[str, Any]
    mask: Mask | None
    pinnable: Mask | None
    rules: AppliedRules
    k: int
    offset: int
    page: int
    vector: QueryVector | None
    warnings: tuple[str, ...]


class Ranking(NamedTuple):
    """The options of `Index.rank`, for any number of queries."""

    k: int
    mask: DocumentMask | DocIds | None
    vector: VectorLike | None
    parameters: SearchParameters

    def query(self, text: str) -> Query:
        """Return the search for a text with these options."""
        documents = {"mask": self.mask, "vector": self.vector}
        options = {name: value for name, value in documents.items() if value is not None}
        return as_query(text, self.k, cast(SearchOptions, {**options, **self.parameters}))


def plan_search(
    opened: State,
    request: Query,
    models: Models,
    evidence: Evidence | None = None,
    *,
    ranks_only: bool = False,
    embedded: EmbeddedQuery = NOT_EMBEDDED,
    query_is_id: bool = False,
) -> tuple[State, QueryPlan]:
    """Return the state that a search is executed on, and its plan.

    opened    state of an index
    evidence  of the documents of all partitions, by default of its own
    ranks_only  whether it is a call of `Index.rank`, which does not look for the document whose ID
                is the query, and does not correct short words
    embedded  vector of the query by an embedder, if there are several parts
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
        evidence = None if evidence is None else evidence.of_passages()
    reading, chosen = state.parameters.read(request.parameters)
    finds_id = request.group == "document" and not ranks_only
    named = named_document(state, request, mask, evidence or LOCAL) if finds_id else None
    if query_is_id:  # all partitions ask the same questions, but one of them names the document
        named = None
    query_is_id = query_is_id or named is not None
    typed = not ranks_only or request.explain
    parsed, interpretation = _parse(
        state, request, reading, evidence, typed=typed, query_is_id=query_is_id
    )
    if named is not None:
        parsed, interpretation = _found_by_id(state, parsed, interpretation, named)
    allowed, rules = intersection(mask, parsed.mask), NO_RULES
    if request.rules and opened.rules.rules:
        rules = _rules(opened, state, request, interpretation, named)
    requested, vector, warnings = request.vector, None, embedded.warnings
    if requested is None and not query_is_id:
        requested = embedded.vector
    embedders = {} if query_is_id else models.embedders
    if embedders or requested is not None:
        vector, warnings = query_vector(opened, state, request.query, requested, embedders)
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
        named=named,
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
    )


def _found_by_id(
    state: State, parsed: ParsedQuery, interpretation: QueryInterpretation, named: int
) -> tuple[ParsedQuery, QueryInterpretation]:
    """Return a query that is the ID of a document, which is a hit with or without its words."""
    (id_,) = state.documents.ids([named])
    if parsed.mask is not None:
        parsed = parsed._replace(mask=parsed.mask.with_document(named))
    return parsed, replace(interpretation, id=id_, unknown=())


def query_vector(
    opened: State,
    state: State,
    query: str,
    vector: VectorLike | None,
    embedders: Mapping[str, CheckedEmbedder],
) -> tuple[QueryVector | None, tuple[str, ...]]:
    """Return the vector of a query, by an embedder if none is given, and what failed."""
    warnings: tuple[str, ...] = ()
    if vector is None and embedders:
        info = opened.info
        index = EmbeddedSpaces.of(index_of(info.path).name, info.manifest, info.settings)
        dimensions = {name: space.dimension for name, space in state.snapshot.vectors.items()}
        vector, warnings = embedded_query(embedders, index, dimensions, query)
    return checked_vector(vector or None, state.snapshot.vectors), warnings


def named_document(
    state: State, request: Query, mask: Mask | None, evidence: Evidence
) -> int | None:
    """Return the doc id of the document whose ID is the query, or None.

    A number of three digits or more that no document contains is the only ID that ends with it, or
    else has it before a sign, if that has a letter and its document may be a hit.
    """
    text = request.query.strip()
    if number := _NUMBER.fullmatch(text):
        return _numbered_document(state, number[1], request, mask, evidence)
    doc_ids = map(state.documents.find, _ids_of(text))
    return next((doc_id for doc_id in doc_ids if doc_id is not None), None)


def id_rank(query: str, id_: str | None) -> int:
    """Return how many IDs are likelier for a query than that of a document that it names."""
    ids = _ids_of(query.strip())
    return ids.index(id_) if id_ in ids else 0  # a number names no more than one


def _ids_of(text: str) -> list[str]:
    """Return the IDs that a query may be, the likeliest first.

    As it is written, else with a sign between letters and digits; each in this case of letters,
    else in upper or lower case, else with a capital first letter.
    """
    ids = [text] if " " not in text and _ID.fullmatch(text) else []
    if text[-1:].isdecimal() and (parts := _LETTERS_AND_DIGITS.fullmatch(text)):
        ids += [f"{parts[1]}{sign}{parts[2]}" for sign in ("-", "_", "")]
    cases = ((id_, id_.upper(), id_.lower(), id_.capitalize()) for id_ in ids)
    return list(dict.fromkeys(chain.from_iterable(cases)))


def _numbered_document(
    state: State, number: str, request: Query, mask: Mask | None, evidence: Evidence
) -> int | None:
    def containing() -> int:
        words, frequencies = state.query_parser.pieces.words(number), state.snapshot.query_kernel
        return sum(int(frequencies.frequencies[word.number]) for word in words if word.number >= 0)

    if evidence.of(("number", number), containing):
        return None
    live = state.snapshot.live_docs()  # without those that a view hides
    ids, doc_ids, total = state.texts.ids, list[int](), 0
    for is_last in (True, False):  # with the same total in all partitions
        if not total:
            doc_ids = ids.with_number(number, state.documents, live, is_last=is_last)
            question = ("IDs of a number", number, is_last)
            total = evidence.of(question, partial(len, doc_ids))
    if total != 1 or not doc_ids:
        return None
    (doc_id,), (id_,) = doc_ids, state.documents.ids(doc_ids)
    # The answer names the ID, which filters and masks may hide; it has no score.
    allowed = (
        (mask is None or doc_id in mask)
        and (request.filter is None or doc_id in state.filters.of(request.filter))
        and (request.min_score or 0.0) <= 0.0
    )
    is_decimal = re.search(rf"\d[.,]{number}(?!\d)|(?<!\d){number}[.,]\d", id_)
    return doc_id if allowed and _ID.fullmatch(id_) and not is_decimal else None


def _parse(
    state: State,
    request: Query,
    reading: LanguageSettings,
    evidence: Evidence | None,
    *,
    typed: bool,
    query_is_id: bool,
) -> tuple[ParsedQuery, QueryInterpretation]:
    """Return the parsed query, and its interpretation.

    query_is_id  whether the query is the ID of a document; the others are ranked by its words
    """
    query = request.query
    if query_is_id:
        reading = reading.model_copy(update={"operators": False, "spelling": "off"})
    parsed = state.query_parser.parse(
        query,
        reading,
        evidence=evidence,
        typed=typed,
        complete_last=request.prefix == "last" and not query_is_id,
    )
    interpretation = QueryInterpretation.when_read(
        partial(state.query_parser.interpretation, query, parsed, reading, evidence)
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
    named: int | None,
) -> AppliedRules:
    """Return what the rules of the index change in a search."""
    query, filter_ = request.query, request.filter
    if not (query.strip() or filter_ is not None or request.sort or request.positive):
        return NO_RULES
    fields, analyzer = state.query_parser.fields, opened.info.analyzer
    readings = readings_of(query, interpretation, fields, analyzer)
    matching = opened.rules.matching(readings, filter_)
    may_pin = not request.sort and request.group == "document"
    applied = apply_rules(opened, matching, named=named, may_pin=may_pin)
    if state is not opened and opened.passages is not None:
        return applied.of_passages(opened.passages)
    return applied


def _has_operators(said: QueryInterpretation) -> bool:
    """Return whether operators of the query restrict the documents."""
    restricting = said.phrases or said.required or said.excluded or said.fields
    return bool(restricting or said.boolean)
