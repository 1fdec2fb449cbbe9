"""Requests of searches: one model, from which parameters, body and documentation come."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from klsa_search.collection.vectors import MAX_DIMENSION
from klsa_search.core.parameters import (
    SNIPPET,
    MatchOptions,
    Names,
    QueryOptions,
    RankingParameters,
    Text,
    encodable,
)
from klsa_search.search.filters.parser import MAX_CHARACTERS
from klsa_search.search.index import Index
from klsa_search.search.parts.exports import Format
from klsa_search.search.query.query import Query
from klsa_search.service.schemas.base import (
    MAX_HITS,
    IndexName,
    QueryText,
    RequestModel,
    field_error,
)

MAX_WINDOW = 10_000  # rank of the last hit
MAX_VALUES = 1_000
MAX_SEARCHES = 100
MAX_SNIPPET = 1_000  # characters
MAX_EXPLAINED = 100  # hits; each takes some ms
MAX_TOKENS = 1_000_000
MAX_RERANKED = 100  # hits; each takes some 10 ms

MAX_INLINE_COST: Final = 8.0
"""Estimated milliseconds up to which a search may run in the event loop: ten hits with highlights
and two facets.
"""

FilterText = Annotated[str, Field(max_length=MAX_CHARACTERS), AfterValidator(encodable)]
QueryVector = Annotated[
    dict[Text, Annotated[list[float], Field(max_length=MAX_DIMENSION)]],
    Field(max_length=1, examples=[{"minilm": [0.1, -0.3, 0.2]}]),
]
QUERY: Final = (
    'words, "phrases", +required, -excluded, field:word, prefix*; a blank query finds nothing, or '
    "every document with a filter or sort, and may then be left out"
)


def _described(name: str) -> str:
    """Return the description of an option, whose limits a request narrows."""
    return QueryOptions.model_fields[name].description or ""


_WITHOUT_QUERY: Final = frozenset(("filter", "sort", "positive", "vector"))
"""Parameters that need no query."""
_PAGING: Final = frozenset(("limit", "offset", "page", "hits_per_page"))
_SIZES: Final = _PAGING | {"k"}


class _TextAndPage(RequestModel):
    q: QueryText | None = Field(None, description=QUERY)
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


class SearchRequest(RankingParameters, QueryOptions, _TextAndPage):
    """The parameters of a search; what is left out is as the index was built."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "leaking coolant", "k": 3}]})

    filter: FilterText | dict[str, Any] | None = Field(
        None, description=f"{_described('filter')} in a body"
    )
    max_facet_values: int = Field(
        100, ge=1, le=MAX_VALUES, description=_described("max_facet_values")
    )
    snippet_length: int = Field(
        SNIPPET, ge=1, le=MAX_SNIPPET, description=_described("snippet_length")
    )
    explain: bool = Field(False, description=f"{_described('explain')}; at most 100 hits")
    max_tokens: int | None = Field(None, ge=1, le=MAX_TOKENS, description=_described("max_tokens"))
    rerank: int | None = Field(None, ge=1, le=MAX_RERANKED, description=_described("rerank"))
    vector: QueryVector | None = Field(None, description=f"{_described('vector')}; only in a body")
    fields: Names | None = Field(
        None,
        description="fields of a hit besides rank, id and score: title, snippet, text, "
        "metadata, document_id, span, page, heading, more_passages, or names of metadata fields; "
        "by default all but text, and with group=passage all",
    )
    partial: bool = Field(
        False,
        description="with a cluster, answer even if some partitions fail, from the others; "
        "`partitions` counts the failed ones",
    )
    analytics: bool | Literal["typing"] = Field(
        True,
        description="record the search, if the service records analytics; false: do not record; "
        "typing: the user is still typing, so count only the last step",
    )

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        fields_set = self.model_fields_set
        if self.q is None and fields_set.isdisjoint(_WITHOUT_QUERY):
            raise field_error(
                "q", "q is missing: add it, or a filter or sort to go through everything"
            )
        if self.explain and self.count > MAX_EXPLAINED:
            raise field_error(
                "explain",
                f"explain: {self.count} hits are requested, and at most "
                f"{MAX_EXPLAINED} can be explained; request fewer",
            )
        if fields_set.isdisjoint(_PAGING):
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

    def to_query(self) -> Query:
        """Return the query that is requested; QueryError for options that exclude each other."""
        page = {"query": self.q or "", "k": self.count, "offset": self.first}
        query = _NO_OPTIONS.model_copy(update=_options_of(self) | page)  # each is checked already
        query.check_combinations()
        return query

    def is_quick(self, index: Index) -> bool:
        """Return whether the search takes at most some 2 ms, so that it may run in an event loop.

        Cost: 5 µs, or 20 with options.
        """
        text = self.q or ""
        if self.prefix == "last":  # of the last word the completions are searched, which are few
            text = text.rpartition(" ")[0]
        return index.is_quick(text, self.count, filter=self.filter) and (
            self.model_fields_set <= _PLAIN
            or (self.max_facet_values <= _QUICK_VALUES and self.cost(index) <= MAX_INLINE_COST)
        )

    def cost(self, index: Index) -> float:
        """Return the estimated cost in milliseconds: see `klsa_search.search.costs`."""
        return index.search_cost(self.to_query())


_QUICK_VALUES: Final = 100  # values of a facet up to which a search may run in the event loop
_PLAIN: Final = frozenset(("q", "index", "k", "limit", "hits_per_page", "analytics", "fields"))
"""Parameters that change no cost but that of `k` hits."""

_NO_OPTIONS: Final = Query()
_OPTIONS: Final = frozenset(Query.model_fields) - {"query", "k", "offset"}


def _options_of(request: RequestModel) -> dict[str, Any]:
    """Return the options of the query of a request that were given."""
    names = request.model_fields_set & _OPTIONS
    return {name: value for name in names if (value := getattr(request, name)) is not None}


class MultiSearchQuery(SearchRequest):
    """A search of several: the parameters of POST /search, and its weight."""

    weight: float = Field(
        1.0,
        ge=0.01,
        le=100,
        description="with `federation`: about how many hits of this search follow "
        "for each hit of one with weight 1",
    )


class Federation(RequestModel):
    """The page of merged hits."""

    limit: int = Field(20, ge=1, le=MAX_HITS, description="number of hits")
    offset: int = Field(0, ge=0, le=MAX_HITS, description="number of hits to skip")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.last > MAX_HITS:
            raise field_error(
                "federation",
                f"federation: hit {self.last:,} is beyond the last, {MAX_HITS:,}; "
                "request an earlier one",
            )
        return self

    @property
    def last(self) -> int:
        """Return the rank of the last hit."""
        return self.offset + self.limit


class MultiSearchBody(RequestModel):
    """The body of POST /multi-search."""

    queries: list[MultiSearchQuery] = Field(
        min_length=1,
        max_length=MAX_SEARCHES,
        description="searches, each with the parameters of POST /search",
    )
    federation: Federation | None = Field(
        None, description="merge the hits of all searches into one list"
    )

    @model_validator(mode="after")
    def _paged_once(self) -> Self:
        for number, query in enumerate(self.queries):
            fields_set = query.model_fields_set
            if self.federation is None and "weight" in fields_set:
                name, reason = "weight", "needs `federation`"
            elif self.federation is not None and (paging := sorted(fields_set & _SIZES)):
                name, reason = paging[0], "leave it out, and give `federation` limit and offset"
            elif self.federation is not None and query.explain:
                if self.federation.last <= MAX_EXPLAINED:
                    continue
                name, reason = "explain", f"at most {MAX_EXPLAINED} hits can be explained"
            else:
                continue
            raise field_error("queries", f"queries[{number}]: {name}: {reason}")
        return self


class _TextAndVector(RequestModel):
    q: QueryText = Field(description="query text")
    vector: QueryVector | None = Field(None, description=f"{_described('vector')}; only in a body")


class ExplainRequest(RankingParameters, _TextAndVector):
    """The parameters of /indexes/{name}/explain/{id}."""

    def cost(self, index: Index) -> float:
        """Return the estimated cost in milliseconds: see `klsa_search.search.costs`."""
        ranking = {name: getattr(self, name) for name in RankingParameters.model_fields}
        changes = {"query": self.q, "k": 1, "explain": True, "vector": self.vector, **ranking}
        return index.search_cost(_NO_OPTIONS.model_copy(update=changes))


class _Rows(RequestModel):
    q: QueryText = Field("", description=QUERY)
    format: Format = Field("csv", description="format of the rows: csv or jsonl, lines of JSON")
    columns: Names = Field(
        (),
        description="columns in their order: rank, id, score, title, snippet, text, document_id, "
        "page, heading, more_passages or metadata fields; by default rank, id, score, title, "
        "snippet and all filterable fields",
    )
    limit: int | None = Field(
        None, ge=1, le=MAX_WINDOW, description="maximum number of rows; by default all matches"
    )


class ExportRequest(RankingParameters, MatchOptions, _Rows):
    """The parameters of an export: those of a search that decide which hits it has."""

    filter: FilterText | dict[str, Any] | None = Field(
        None, description="filter on metadata, as text, or as JSON in a body"
    )
    snippet_length: int = Field(
        SNIPPET, ge=1, le=MAX_SNIPPET, description="maximum length of a snippet, in characters"
    )
    vector: QueryVector | None = Field(None, description="vector of the query; only in a body")

    def query(self) -> Query:
        """Return the search; QueryError for options that exclude each other."""
        return Query(self.q, **_options_of(self))
