"""Request and response models of searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from pydantic import AfterValidator, ConfigDict, Field, create_model, model_validator
from pydantic_core import to_json

from klsa_search.cluster.calls import ShardTally
from klsa_search.core.config import LanguageSettings, SearchSettings, optional_fields
from klsa_search.core.deadlines import check_deadline
from klsa_search.search.costs import estimated_cost
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.facets import Facet
from klsa_search.search.filters.text import MAX_CHARACTERS
from klsa_search.search.index import Index
from klsa_search.search.query.interpretation import Relaxed
from klsa_search.search.rankers import RANKERS
from klsa_search.search.results import Highlight, Hit, SearchResults
from klsa_search.search.snippets import LENGTH
from klsa_search.service.schemas.requests import (
    MAX_HITS,
    IndexName,
    Names,
    QueryText,
    RequestModel,
    Text,
    encodable,
    field_error,
)
from klsa_search.service.schemas.responses import MAX_ANSWER, Answer, too_large

MAX_WINDOW = 10_000  # rank of the last hit
MAX_VALUES = 1_000
MAX_SEARCHES = 100
MAX_SNIPPET = 1_000  # characters
MAX_EXPLAINED = 100  # hits; each takes some ms
MAX_DIMENSIONS = 100_000

FilterText = Annotated[str, Field(max_length=MAX_CHARACTERS), AfterValidator(encodable)]

DIMENSIONS: Final[Any] = Field(
    None,
    ge=1,
    le=MAX_DIMENSIONS,
    description="number of eigenvectors to use, at most those built",
)

_WITHOUT_QUERY: Final = frozenset(("filter", "sort", "positive"))
"""Parameters that need no query."""
_PAGING: Final = frozenset(("limit", "offset", "page", "hits_per_page"))


class _SearchRequest(RequestModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "leaking coolant", "k": 3}]})

    q: QueryText | None = Field(
        None,
        description='words, "phrases", +required, -excluded, field:word, prefix*; a blank '
        "query finds nothing, or every document with a filter or sort, and may "
        "then be left out",
    )
    index: IndexName | None = None
    k: int | None = Field(None, ge=1, le=MAX_HITS, description="number of hits, 10 by default")
    limit: int | None = Field(None, ge=1, le=MAX_HITS, description="alias of k")
    offset: int | None = Field(None, ge=0, le=MAX_WINDOW, description="number of hits to skip")
    page: int | None = Field(
        None, ge=1, le=MAX_WINDOW, description="page number from 1, instead of offset"
    )
    hits_per_page: int | None = Field(
        None, ge=1, le=MAX_HITS, description="hits per page, 10 by default, instead of k"
    )
    filter: FilterText | dict[str, Any] | None = Field(
        None,
        description="filter on metadata, as text: year >= 2020 AND kind IN [a, b]; in a body "
        'also as JSON: {"field": "year", ">=": 2020}',
    )
    sort: Names = Field((), description="metadata fields to sort by, as field:asc or field:desc")
    facets: Names = Field((), description="metadata fields to count the values of")
    max_facet_values: int = Field(
        100, ge=1, le=MAX_VALUES, description="maximum number of values of each facet"
    )
    distinct: Text | None = Field(
        None,
        description="metadata field; only the best document for each of its values is returned",
    )
    min_score: float | None = Field(None, description="minimum score")
    positive: Names = Field((), description="IDs of relevant documents (relevance feedback)")
    negative: Names = Field((), description="IDs of irrelevant documents (relevance feedback)")
    fields: Names | None = Field(
        None,
        description="fields of a hit besides rank, id and score: title, snippet, text, "
        "metadata, or names of metadata fields; by default title, snippet and "
        "metadata",
    )
    highlight: bool = Field(
        False,
        description="highlight the words of the query in title and snippet; the snippet is "
        "then the passage whose words contribute most to the score",
    )
    snippet_length: int = Field(
        LENGTH, ge=1, le=MAX_SNIPPET, description="maximum length of a snippet, in characters"
    )
    quality: bool = Field(
        False,
        description="return how good a match each hit is, from 0 to 1, and whether any is good",
    )
    explain: bool = Field(False, description="explain the score of each hit; at most 100 hits")
    partial: bool = Field(
        False,
        description="with a cluster, answer even if some shards fail, from the others; "
        "`shards` counts the failed ones",
    )
    dimensions: int | None = DIMENSIONS

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        given = self.model_fields_set
        if self.q is None and given.isdisjoint(_WITHOUT_QUERY):
            raise field_error(
                "q", "q is missing: add it, or a filter or sort to go through everything"
            )
        if self.explain and self.count > MAX_EXPLAINED:
            raise field_error(
                "explain",
                f"explain: {self.count} hits are requested, and at most "
                f"{MAX_EXPLAINED} can be explained; request fewer",
            )
        if given.isdisjoint(_PAGING):
            return self
        by_page = [name for name in ("page", "hits_per_page") if getattr(self, name) is not None]
        others = [name for name in ("k", "limit", "offset") if getattr(self, name) is not None]
        twice = ["k", "limit"] if {"k", "limit"} <= set(others) else [*by_page[:1], *others[:1]]
        if len(twice) > 1 and (by_page or "limit" in twice):
            raise field_error(
                twice[0], f"{twice[0]}: {twice[1]} is given as well; give one of them"
            )
        if self.first + self.count > MAX_WINDOW:
            field = "page" if by_page else "offset"
            last = self.first + self.count
            raise field_error(
                field,
                f"{field}: hit {last:,} is beyond the last, {MAX_WINDOW:,}; request an earlier one",
            )
        return self

    @property
    def count(self) -> int:
        """Return the number of hits to return."""
        return self.k or self.limit or self.hits_per_page or 10

    @property
    def first(self) -> int:
        """Return the number of hits to skip."""
        return (self.page - 1) * self.count if self.page is not None else self.offset or 0

    def search_options(self) -> dict[str, Any]:
        """Return the options of `Index.search`."""
        given = {name: getattr(self, name) for name in self.model_fields_set - _NOT_OPTIONS}
        options = {name: value for name, value in given.items() if value is not None}
        return {**options, "offset": self.first} if self.first else options

    @property
    def is_plain(self) -> bool:
        """Return whether only the first hits of a query are requested."""
        return self.model_fields_set <= _PLAIN

    def cost(self, index: Index) -> float:
        """Return the estimated cost in milliseconds: see `klsa_search.search.costs`."""
        options = self.search_options()
        return estimated_cost(
            index.query_counts(
                self.q or "", operators=options.get("operators"), spelling=options.get("spelling")
            ),
            self.first + self.count,
            highlight=self.highlight,
            quality=self.quality,
            explain=self.explain,
            everything=options.get("exact", False)
            or not _SCORE_ALL.isdisjoint(options)
            or RANKERS[options.get("ranker", index.settings.ranker)].uses_lsi,
        )


_PLAIN: Final = frozenset(("q", "index", "k", "limit", "hits_per_page"))

_SCORE_ALL: Final = frozenset(
    ("min_score", "spectral", "title_boost", "text_boost", "positive", "negative")
)
"""Parameters that make a search score every document."""

_NOT_OPTIONS: Final = frozenset(
    ("q", "index", "k", "limit", "offset", "page", "hits_per_page", "fields", "partial")
)


if TYPE_CHECKING:

    class SearchRequest(_SearchRequest):
        """The parameters of a search; what is left out is as the index was built."""
else:
    SearchRequest = create_model(
        "SearchRequest",
        __base__=_SearchRequest,
        __doc__="The parameters of a search; what is left out is as the index was built.",
        # Declared with limits and descriptions in `core.config`.
        **optional_fields(LanguageSettings) | optional_fields(SearchSettings),
    )


class BatchBody(RequestModel):
    """The body of POST /search/batch."""

    searches: list[SearchRequest] = Field(
        min_length=1,
        max_length=MAX_SEARCHES,
        description="searches, each with the parameters of POST /search",
    )


class _ExplainRequest(RequestModel):
    q: QueryText = Field(description="query text")
    dimensions: int | None = DIMENSIONS

    def search_options(self) -> dict[str, Any]:
        """Return the options of `Index.explain`."""
        return self.model_dump(exclude={"q"}, exclude_none=True)


if TYPE_CHECKING:

    class ExplainRequest(_ExplainRequest):
        """The parameters of GET /indexes/{name}/explain/{id}."""
else:
    ExplainRequest = create_model(
        "ExplainRequest", __base__=_ExplainRequest, **optional_fields(SearchSettings)
    )


_FIELDS: Final = ("title", "snippet", "metadata")
"""Fields of a hit by default, in the order they are written."""

_BATCH: Final = 10
"""Hits encoded in one call; the size of the answer is checked after each call."""


class FoundAnswer(Answer):
    """One hit of a search; `fields` of the request selects its fields."""

    rank: int = Field(description="rank from 1, continued over pages")
    id: str
    score: float
    title: str | None = None
    snippet: str | None = None
    text: str | None = None
    metadata: dict[str, Any] | None = None
    explanation: Explanation | None = Field(
        None, description="explanation of the score, if requested"
    )
    quality: float | None = Field(
        None, description="how good a match it is, from 0 to 1, if requested"
    )
    highlight: dict[str, Highlight] | None = Field(
        None, description="highlights of title and snippet, if requested"
    )


class FacetValueAnswer(Answer):
    """Count of one value."""

    value: str | float
    count: int = Field(description="number of matching documents with this value")


class FacetAnswer(Answer):
    """Value counts of one metadata field over all matching documents."""

    type: str = Field(description="type of the field: keyword, number or date")
    values: list[FacetValueAnswer] = Field(description="values, most frequent first")
    others: int = Field(description="number of further distinct values")
    missing: int = Field(description="number of matching documents without a value")
    low: float | str | None = Field(description="smallest value of a number or date field")
    high: float | str | None = Field(description="largest value of a number or date field")


class InterpretationAnswer(Answer):
    """How the text of a query was interpreted."""

    words: list[str] = Field(description="words that documents are ranked by")
    unknown: list[str] = Field(description="words that no document contains")
    phrases: list[str] = Field(description="phrases, whose words must be adjacent")
    required: list[str] = Field(description="words and phrases after +")
    excluded: list[str] = Field(description="words and phrases after -")
    fields: list[str] = Field(description="words and phrases restricted to one field")
    relaxed: dict[str, Relaxed] = Field(
        description="operators that were read as plain words, and why: plain_text, the query "
        "has more plain words than operators, or several lines; "
        "nothing_to_exclude_from; no_match, no document contains the phrase"
    )
    prefixes: dict[str, list[str]] = Field(description="prefixes, and the terms that match them")
    joined: dict[str, str] = Field(
        description="hyphenated words, and how documents write them without hyphen"
    )
    synonyms: dict[str, list[str]] = Field(
        description="words, and the synonyms that were searched as well"
    )
    corrections: dict[str, str] = Field(
        description="words that no document contains, and the corrections that were searched "
        "instead or, for words still in `unknown`, only suggested"
    )
    did_you_mean: str | None = Field(description="the query with the corrections applied")


class ShardsAnswer(Answer):
    """Shards that answered."""

    total: int
    ok: int = Field(description="number of shards that answered")
    failed: int = Field(
        description="number of shards that did not; their documents are missing from the hits"
    )


class SearchAnswer(Answer):
    """The ranked hits, with how they were found."""

    query: str
    interpretation: InterpretationAnswer
    index: str
    generation: str
    ranker: str
    parameters: dict[str, bool | int | float | str] = Field(
        description="parameters that the ranker used"
    )
    total: int = Field(
        description="number of matching documents on all pages; with `distinct`, of its values"
    )
    offset: int = Field(description="number of skipped hits")
    page: int | None = Field(None, description="only if a page was requested")
    hits_per_page: int | None = Field(None, description="only if a page was requested")
    total_pages: int | None = Field(None, description="only if a page was requested")
    time_ms: float = Field(description="duration of the search in milliseconds")
    facets: dict[str, FacetAnswer] = Field(
        {}, description="facets of the requested fields, by name"
    )
    quality: float | None = Field(
        None, description="quality of the best match among the hits, if requested"
    )
    good_match: bool | None = Field(
        None, description="whether any hit is a good match, if quality was requested"
    )
    shards: ShardsAnswer | None = Field(
        None, description="shards that answered, if a cluster searched"
    )
    hits: list[FoundAnswer]


class BatchAnswer(Answer):
    """The answers to several searches, in their order."""

    answers: list[SearchAnswer]


def search_answer(
    results: SearchResults, index: Index, request: SearchRequest, time_ms: float, tally: ShardTally
) -> bytes:
    """Return the results of a search as the JSON of a `SearchAnswer`.

    Encoded without the model, which would take four times as long. QueryError if it is too large.
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
        **_paging(results, request),
        "time_ms": round(time_ms, 3),
    }
    if results.facets:
        answer["facets"] = {name: _facet(facet) for name, facet in results.facets.items()}
    if results.quality is not None:
        answer |= {"quality": results.quality, "good_match": results.good_match}
    if tally.total:
        failed = len(tally.failed)
        answer["shards"] = {"total": tally.total, "ok": tally.total - failed, "failed": failed}
    as_dict = _hit_writer(frozenset(_FIELDS if request.fields is None else request.fields), index)
    size = _BATCH if request.fields is None else 1  # with `fields`, hits may have whole texts
    head = to_json(answer, inf_nan_mode="null")
    left, hits = MAX_ANSWER - len(head), []
    for first in range(0, len(results), size):
        check_deadline()
        batch = [as_dict(hit) for hit in results.hits[first : first + size]]
        hits.append(to_json(batch, inf_nan_mode="null")[1:-1])
        left -= len(hits[-1]) + 1
        if left < 0:
            raise too_large()
    return head[:-1] + b',"hits":[' + b",".join(hits) + b"]}"


def _paging(results: SearchResults, request: SearchRequest) -> dict[str, int]:
    if request.page is None and request.hits_per_page is None:
        return {}
    return {
        "page": request.page or 1,
        "hits_per_page": request.count,
        "total_pages": -(-results.total // request.count),
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


def _hit_writer(fields: frozenset[str], index: Index) -> Callable[[Hit], dict[str, Any]]:
    """Return a function that returns the requested fields of a hit."""
    of_hit = ["rank", "id", "score", *(name for name in _FIELDS if name in fields)]
    of_metadata = fields.difference((*_FIELDS, "text"))

    def chosen(hit: Hit) -> dict[str, Any]:
        answer = {name: getattr(hit, name) for name in of_hit}
        if "text" in fields:
            answer["text"] = index.document(hit.id).text
        if of_metadata and "metadata" not in fields:
            answer["metadata"] = {
                name: value for name, value in hit.metadata.items() if name in of_metadata
            }
        for name in ("quality", "explanation", "highlight"):  # if requested
            if (value := getattr(hit, name)) is not None:
                answer[name] = value
        return answer

    return chosen


class ExplainAnswer(Answer):
    """Explanation of the score of one document."""

    query: str
    index: str
    generation: str
    time_ms: float
    explanation: Explanation
