"""Answers of searches, and how results are encoded as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from pydantic import Field
from pydantic_core import to_json

from klsa_search.cluster.calls import PartitionTally
from klsa_search.core.deadlines import check_deadline
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.index import Index
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.results import Hit, SearchResults
from klsa_search.search.parts.exports import refuse_unknown
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.service.schemas.base import MAX_ANSWER, Answer, IndexAnswer, documented, too_large
from klsa_search.service.schemas.search_requests import Federation, SearchRequest

_FIELDS: Final = ("title", "snippet", "metadata")
"""Fields of a hit by default, in the order they are written."""

_PLACE: Final[tuple[str, ...]] = ("document_id", "span", "page", "heading", "more_passages")
"""Fields of a hit by default if it has them, as in an index with passages."""

_OF_DOCUMENT: Final = frozenset((*_FIELDS, *_PLACE))
_OF_PASSAGE: Final = _OF_DOCUMENT | {"text"}

_REQUESTED: Final = ("quality", "explanation", "highlight", "rerank")
"""Fields of a hit if they were requested otherwise."""

_INTERPRETATION_FIELDS: Final = tuple(field.name for field in fields_of(QueryInterpretation))
_interpretation_values: Final = attrgetter(*_INTERPRETATION_FIELDS)

_BATCH: Final = 10  # hits encoded in one call; the size of the answer is checked after each call


@documented
@dataclass(kw_only=True)
class HitAnswer(Hit):
    """One hit of a search; `fields` of the request selects its fields.

    rank  rank from 1, continued over pages
    """

    title: str = ""
    snippet: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class FacetValueAnswer(Answer):
    """Count of one value."""

    value: str | float
    count: int = Field(description="number of matching documents with this value")


class FacetAnswer(Answer):
    """Value counts of one metadata field over all matching documents."""

    type: str = Field(description="type of the field: keyword, number or date")
    values: list[FacetValueAnswer] = Field(description="values, most frequent first")
    other_count: int = Field(description="number of further distinct values")
    missing: int = Field(description="number of matching documents without a value")
    min: float | str | None = Field(description="smallest value of a number or date field")
    max: float | str | None = Field(description="largest value of a number or date field")


class PartitionsAnswer(Answer):
    """Partitions that answered."""

    total: int
    ok: int = Field(description="number of partitions that answered")
    failed: int = Field(
        description="number of partitions that did not; their documents are missing from the hits"
    )


@documented
@dataclass(kw_only=True)
class SearchAnswer(SearchResults):
    """The ranked hits, with how they were found.

    page, hits_per_page, total_pages  only if a page was requested
    time_ms     duration of the search in milliseconds
    good_match  whether any hit is a good match, if quality was requested
    partitions  partitions that answered, if a cluster searched
    """

    index: str
    generation: str
    time_ms: float
    hits: tuple[HitAnswer, ...]
    parameters: Mapping[str, bool | int | float | str]
    facets: Mapping[str, FacetAnswer] = field(default_factory=dict)  # type: ignore[assignment]
    page: int | None = None
    hits_per_page: int | None = None
    total_pages: int | None = None
    good_match: bool | None = None
    partitions: PartitionsAnswer | None = None


class MultiSearchAnswer(Answer):
    """The answers to several searches, in their order."""

    results: list[SearchAnswer]


class HitOrigin(Answer):
    """The search that a merged hit is from."""

    index: str
    query: int = Field(description="number of the search in `queries`, from 0")
    rank: int = Field(description="its rank in that search")
    weighted_score: float = Field(description="weight / rank, by which the hits are ordered")


@documented
@dataclass(kw_only=True)
class FederatedHit(HitAnswer):
    """A hit of several searches; `rank` is that of the merged list."""

    federation: HitOrigin


class FederatedAnswer(Answer):
    """The merged hits of several searches."""

    hits: list[FederatedHit]
    limit: int
    offset: int
    total: int = Field(
        description="sum of the totals of the searches; a document that several of them find "
        "counts for each"
    )
    results: list[SearchAnswer] = Field(
        description="the answer to each search, in their order, without hits, which are merged"
    )


def search_answer(
    results: SearchResults,
    index: Index,
    request: SearchRequest,
    time_ms: float,
    tally: PartitionTally,
    search_id: str | None = None,
) -> bytes:
    """Return the results of a search as the JSON of a `SearchAnswer`.

    Encoded without the model, which would take four times as long. QueryError if it is too large.
    """
    answer = {
        "query": results.query,
        "interpretation": dict(
            zip(_INTERPRETATION_FIELDS, _interpretation_values(results.interpretation), strict=True)
        ),
        "index": index.name,
        "generation": index.generation,
        "ranker": results.ranker,
        "parameters": results.parameters,
        "total": results.total,
        "offset": results.offset,
    }
    if request.page is not None or request.hits_per_page is not None:
        answer |= {
            "page": request.page or 1,
            "hits_per_page": request.count,
            "total_pages": -(-results.total // request.count),
        }
    answer["time_ms"] = round(time_ms, 3)
    if search_id is not None:
        answer["search_id"] = search_id
    if results.facets:
        answer["facets"] = {name: facet_as_json(facet) for name, facet in results.facets.items()}
    if results.quality is not None:
        answer |= {"quality": results.quality, "good_match": results.good_match}
    if results.rules:
        answer["rules"] = results.rules
    if results.warnings:
        answer["warnings"] = results.warnings
    if results.tokens is not None:
        answer |= {"tokens": results.tokens, "truncated": results.truncated}
    if tally.total:
        failed = len(tally.failed)
        answer["partitions"] = {"total": tally.total, "ok": tally.total - failed, "failed": failed}
    if request.fields is not None:
        fields = frozenset(request.fields)
    else:
        fields = _OF_PASSAGE if request.group == "passage" else _OF_DOCUMENT
    as_dict = _hit_writer(fields, index)
    size = 1 if "text" in fields or request.fields else _BATCH  # hits may have whole texts
    pieces, left = list[bytes](), MAX_ANSWER
    for first in range(0, len(results) or 1, size):
        check_deadline()
        batch = list(map(as_dict, results.hits[first : first + size]))
        content = batch if pieces else {**answer, "hits": batch}
        piece = to_json(content, inf_nan_mode="null")
        pieces.append(piece[1:-1] if pieces else piece[:-2])
        left -= len(piece)
        if left < 0:
            raise too_large()
    return b",".join(pieces) + b"]}"


def facet_as_json(facet: Facet) -> dict[str, Any]:
    """Return a facet as the fields of a `FacetAnswer`."""
    return {
        "type": facet.type,
        "values": [{"value": value, "count": count} for value, count in facet.values],
        "other_count": facet.other_count,
        "missing": facet.missing,
        "min": facet.min,
        "max": facet.max,
    }


def _hit_writer(fields: frozenset[str], index: Index) -> Callable[[Hit], dict[str, Any]]:
    """Return a function that returns the requested fields of a hit."""
    left_out, of_metadata, optional = _selected(fields)
    if of_metadata - _OF_DOCUMENT:
        refuse_unknown(
            "fields", sorted(of_metadata), [one.name for one in fields_of(Hit)], index.fields
        )
    optional_values, absent = attrgetter(*optional), (None,) * len(optional)

    def chosen(hit: Hit) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "rank": hit.rank,
            "id": hit.id,
            "score": hit.score,
            "title": hit.title,
            "snippet": hit.snippet,
            "metadata": hit.metadata,
        }
        for name in left_out:
            del answer[name]
        if "text" in fields:
            answer["text"] = index.document(hit.id).text if hit.text is None else hit.text
        if of_metadata and "metadata" not in fields:
            metadata = {name: value for name, value in hit.metadata.items() if name in of_metadata}
            if metadata or not of_metadata.issubset(_PLACE):
                answer["metadata"] = metadata
        values = optional_values(hit)
        if values != absent:
            present = zip(optional, values, strict=True)
            answer |= {name: value for name, value in present if value is not None}
        return answer

    return chosen


@lru_cache(256)
def _selected(fields: frozenset[str]) -> tuple[list[str], frozenset[str], list[str]]:
    """Return which fields of a hit are left out, are those of metadata, or are written if set."""
    left_out = [name for name in _FIELDS if name not in fields]
    of_metadata = fields.difference((*_FIELDS, "text"))  # which may have names like `page`
    return left_out, of_metadata, [*(name for name in _PLACE if name in fields), *_REQUESTED]


class ExplainAnswer(IndexAnswer):
    """Explanation of the score of one document."""

    query: str
    explanation: Explanation


def merged(
    answers: Sequence[dict[str, Any]], weights: Sequence[float], page: Federation
) -> dict[str, Any]:
    """Return a `FederatedAnswer` from the `SearchAnswer` of each search, whose hits are removed.

    A document that several searches of one index find counts once, where it comes first. Equal
    weighted scores are in the order of the searches.
    """
    ranked = sorted(
        (-weight / hit["rank"], number, hit["rank"], hit)
        for number, (answer, weight) in enumerate(zip(answers, weights, strict=True))
        for hit in answer.pop("hits")
    )
    hits: dict[tuple[str, str], dict[str, Any]] = {}
    for negative, number, rank, hit in ranked:
        index = answers[number]["index"]
        origin = {"index": index, "query": number, "rank": rank, "weighted_score": -negative}
        hits.setdefault((index, hit["id"]), hit | {"federation": origin})
    listed = list(hits.values())[page.offset : page.last]
    return {
        "hits": [hit | {"rank": rank} for rank, hit in enumerate(listed, page.offset + 1)],
        "limit": page.limit,
        "offset": page.offset,
        "total": sum(answer["total"] for answer in answers),
        "results": [answer | {"hits": []} for answer in answers],
    }
