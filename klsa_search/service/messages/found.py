"""What a search is answered with, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import Field
from pydantic_core import to_json

from klsa_search.cluster.tally import Tally
from klsa_search.deadlines import in_time
from klsa_search.search import Explanation, Facet, Highlight, Hit, Index, SearchResults
from klsa_search.search.language import Relaxed
from klsa_search.service.messages.answers import Answer
from klsa_search.service.messages.searching import Ranked
from klsa_search.service.messages.size import MAX_ANSWER, too_large

_AT_ONCE: Final = 10
"""Hits told as JSON in one call: no more are told beyond what an answer may hold."""


class FoundAnswer(Answer):
    """One document found by a search. `fields` of the request says what of it is told."""

    rank: int = Field(description="from 1, those of the pages before counted")
    id: str
    score: float
    title: str | None = None
    snippet: str | None = None
    text: str | None = None
    metadata: dict[str, Any] | None = None
    explanation: Explanation | None = Field(None, description="where it was asked for")
    quality: float | None = Field(
        None, description="how good a match it is, from 0 to 1, where it was asked for"
    )
    highlight: dict[str, Highlight] | None = Field(
        None, description="of title and snippet, where it was asked for"
    )


class FacetValueAnswer(Answer):
    """How often a value occurs."""

    value: str | float
    count: int = Field(description="documents found that have it")


class FacetAnswer(Answer):
    """The values of one metadata field in all documents found."""

    type: str = Field(description="keyword, number or date")
    values: list[FacetValueAnswer] = Field(description="the most frequent first")
    others: int = Field(description="different values that are not told")
    missing: int = Field(description="documents found without a value")
    low: float | str | None = Field(description="least value of a number or date field")
    high: float | str | None = Field(description="its largest value")


class InterpretationAnswer(Answer):
    """What the text of a query was read as."""

    words: list[str] = Field(description="that documents are ranked by")
    unknown: list[str] = Field(description="words that no document holds")
    phrases: list[str] = Field(description="whose words must stand together")
    required: list[str] = Field(description="what follows a +")
    excluded: list[str] = Field(description="what follows a -")
    fields: list[str] = Field(description="words and phrases asked for in one field")
    relaxed: dict[str, Relaxed] = Field(
        description="operators that were read as plain words, and why: plain_text, the query has "
        "more plain words than operators or several lines; nothing_to_exclude_from; no_match, no "
        "document matches the phrase"
    )
    prefixes: dict[str, list[str]] = Field(
        description="beginnings of words, and the terms they stand for"
    )
    joined: dict[str, str] = Field(
        description="words with hyphens, and how documents write them without"
    )
    synonyms: dict[str, list[str]] = Field(
        description="words, and what is asked for besides as it stands for them"
    )
    corrections: dict[str, str] = Field(
        description="words that no document holds, and what is asked for in their place or, where "
        "they are unknown still, only told"
    )
    did_you_mean: str | None = Field(description="the query with these in their places")


class ShardsAnswer(Answer):
    """Which shards an answer is of."""

    total: int
    ok: int = Field(description="that answered")
    failed: int = Field(description="that did not: what they hold is not among the hits")


class SearchAnswer(Answer):
    """The ranked hits and how they came about."""

    query: str
    interpretation: InterpretationAnswer
    index: str
    generation: str
    ranker: str
    parameters: dict[str, bool | int | float | str] = Field(description="those the ranker used")
    total: int = Field(description="documents found, on all pages; of distinct, its values")
    offset: int = Field(description="hits passed over")
    page: int | None = Field(None, description="where a page was asked for")
    hits_per_page: int | None = Field(None, description="where a page was asked for")
    total_pages: int | None = Field(None, description="where a page was asked for")
    time_ms: float = Field(description="of the search alone")
    facets: dict[str, FacetAnswer] = Field({}, description="of the fields asked for, by name")
    quality: float | None = Field(
        None, description="that of the best match among the hits, where it was asked for"
    )
    good_match: bool | None = Field(
        None, description="whether any hit fits the query, where quality was asked for"
    )
    shards: ShardsAnswer | None = Field(None, description="where a cluster searched")
    hits: list[FoundAnswer]


class BatchAnswer(Answer):
    """The answers to several searches, in their order."""

    answers: list[SearchAnswer]


def search_answer(
    results: SearchResults, index: Index, asked: Ranked, time_ms: float, tally: Tally
) -> bytes:
    """Tell the results of one search in one index: the JSON of a `SearchAnswer`.

    Written straight from what the search gave, which needs no check: to make the model first, and
    then its JSON, takes four times as long. QueryError where it would be too large.
    """
    answer = {
        "query": results.query,
        "interpretation": results.interpretation,
        "index": index.name,
        "generation": index.generation,
        "ranker": results.ranker,
        "parameters": results.parameters,
        "total": results.total,
        "offset": results.offset,
        **_paging(results, asked),
        "time_ms": round(time_ms, 3),
    }
    if results.facets:
        answer["facets"] = {name: _facet(facet) for name, facet in results.facets.items()}
    if results.quality is not None:
        answer |= {"quality": results.quality, "good_match": results.good_match}
    if tally.total:
        failed = len(tally.failed)
        answer["shards"] = {"total": tally.total, "ok": tally.total - failed, "failed": failed}
    told = _told if asked.fields is None else _chosen(frozenset(asked.fields), index)
    at_once = _AT_ONCE if asked.fields is None else 1  # with which come whole texts
    head = to_json(answer, inf_nan_mode="null")
    left, hits = MAX_ANSWER - len(head), []
    for first in range(0, len(results), at_once):
        in_time()
        some = [told(hit) for hit in results.hits[first : first + at_once]]
        hits.append(to_json(some, inf_nan_mode="null")[1:-1])
        left -= len(hits[-1]) + 1
        if left < 0:
            raise too_large()
    return head[:-1] + b',"hits":[' + b",".join(hits) + b"]}"


def _paging(results: SearchResults, asked: Ranked) -> dict[str, int]:
    if asked.page is None and asked.hits_per_page is None:
        return {}
    return {
        "page": asked.page or 1,
        "hits_per_page": asked.count,
        "total_pages": -(-results.total // asked.count),
    }


def _facet(facet: Facet) -> dict[str, Any]:
    return {
        "type": facet.type,
        "values": [{"value": value, "count": count} for value, count in facet.values],
        "others": facet.others,
        "missing": facet.missing,
        "low": facet.low,
        "high": facet.high,
    }


def _told(hit: Hit) -> dict[str, Any]:
    told = {
        "rank": hit.rank,
        "id": hit.id,
        "score": hit.score,
        "title": hit.title,
        "snippet": hit.snippet,
        "metadata": hit.metadata,
    }
    return _with_besides(told, hit)


def _with_besides(told: dict[str, Any], hit: Hit) -> dict[str, Any]:
    """With what is told only where it is asked for."""
    if hit.quality is not None:
        told["quality"] = hit.quality
    if hit.explanation is not None:
        told["explanation"] = hit.explanation
    if hit.highlight is not None:
        told["highlight"] = hit.highlight
    return told


def _chosen(fields: frozenset[str], index: Index) -> Callable[[Hit], dict[str, Any]]:
    """Tell only some of a hit."""
    of_hit = [name for name in ("title", "snippet", "metadata") if name in fields]
    of_metadata = fields.difference(("title", "snippet", "text", "metadata"))

    def told(hit: Hit) -> dict[str, Any]:
        answer = {name: getattr(hit, name) for name in ("rank", "id", "score", *of_hit)}
        if "text" in fields:
            answer["text"] = index.document(hit.id).text
        if of_metadata and "metadata" not in fields:
            own = {name: held for name, held in hit.metadata.items() if name in of_metadata}
            answer["metadata"] = own
        return _with_besides(answer, hit)

    return told


class ExplainAnswer(Answer):
    """How the score of one document came about."""

    query: str
    index: str
    generation: str
    time_ms: float
    explanation: Explanation
