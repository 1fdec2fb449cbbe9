"""Searches, filters and settings of Meilisearch in terms of this service, and answers in its terms.

What has no equal here is refused by name; nothing is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import VECTORS
from klsa_search.errors import BadDocument, QueryError
from klsa_search.search.filters.text import filter_of_text
from klsa_search.search.index import Index
from klsa_search.service.schemas.requests import (
    MAX_HITS,
    Name,
    Names,
    QueryText,
    RequestModel,
    Text,
    field_error,
)
from klsa_search.service.schemas.search_requests import (
    MAX_SNIPPET,
    MAX_WINDOW,
    Numbers,
    SearchRequest,
)
from klsa_search.service.schemas.writes import documents_of_array

EVERY: Final[dict[str, Any]] = {"and": []}
"""Filter that every document passes: Meilisearch answers a blank query with all documents."""

_LETTERS: Final = 7
"""Characters of a word and a blank, to crop by words."""

MeilisearchFilter = Text | list[Text | list[Text]]
"""A filter, or filters that are all to match, of a list at least one."""


class Hybrid(RequestModel):
    """The space of a vector."""

    embedder: Name


class MeilisearchQuery(RequestModel):
    """The parameters of a search."""

    q: QueryText | None = None
    offset: int = Field(0, ge=0, le=MAX_WINDOW)
    limit: int = Field(20, ge=0, le=MAX_HITS)
    page: int | None = Field(None, ge=0, le=MAX_WINDOW)
    hitsPerPage: int | None = Field(None, ge=0, le=MAX_HITS)  # noqa: N815 - as Meilisearch
    filter: MeilisearchFilter | None = None
    facets: Names | None = None
    sort: Names | None = None
    distinct: Text | None = None
    matchingStrategy: Literal["last", "all"] = "last"  # noqa: N815
    attributesToRetrieve: Names | None = None  # noqa: N815
    attributesToHighlight: Names | None = None  # noqa: N815
    highlightPreTag: Text = "<em>"  # noqa: N815
    highlightPostTag: Text = "</em>"  # noqa: N815
    attributesToCrop: Names | None = None  # noqa: N815
    cropLength: Annotated[int, Field(ge=1, le=MAX_SNIPPET)] = 10  # noqa: N815
    showRankingScore: bool = False  # noqa: N815
    vector: Numbers | None = None
    hybrid: Hybrid | None = None

    @model_validator(mode="after")
    def _named_space(self) -> Self:
        if self.vector is not None and self.hybrid is None:
            raise field_error(
                "hybrid", 'hybrid is missing: name the space of `vector`, as {"embedder": "minilm"}'
            )
        if self.hybrid is not None and self.vector is None:
            raise field_error("vector", "vector is missing: `hybrid` needs the vector of the query")
        return self

    @property
    def by_page(self) -> bool:
        """Return whether pages are requested, not an offset."""
        return self.page is not None or self.hitsPerPage is not None

    @property
    def count(self) -> int:
        """Return the number of hits to return."""
        return (
            self.hitsPerPage if self.hitsPerPage is not None else 20 if self.by_page else self.limit
        )

    @property
    def first(self) -> int:
        """Return the number of hits to skip."""
        return (max(self.page or 1, 1) - 1) * self.count if self.by_page else self.offset

    @property
    def formats(self) -> bool:
        """Return whether hits have `_formatted`."""
        return bool(self.attributesToHighlight or self.attributesToCrop)

    def request(self) -> SearchRequest:
        """Return the search in terms of this service."""
        q = (self.q or "").strip()
        filter_ = filter_text(self.filter)
        given: dict[str, Any] = {
            "q": q,
            "k": max(self.count, 1),
            "filter": filter_ if filter_ is not None or q or self.vector else EVERY,
            "offset": self.first,
            "fields": ("title", "text", "metadata"),
        }
        if q:
            given["prefix"] = "last"
        if self.formats:
            cropped = self.attributesToCrop and self.cropLength * _LETTERS
            given |= {"highlight": True, "snippet_length": min(cropped or MAX_SNIPPET, MAX_SNIPPET)}
        if self.vector is not None and self.hybrid is not None:
            given["vector"] = {self.hybrid.embedder: self.vector}
        if self.matchingStrategy == "all":
            given["match"] = "all"
        if self.showRankingScore:
            given["quality"] = True
        for name in ("facets", "sort", "distinct"):
            if value := getattr(self, name):
                given[name] = value
        return SearchRequest.model_validate(given)


class MeilisearchIndexQuery(MeilisearchQuery):
    """One query of POST /multi-search."""

    indexUid: Name  # noqa: N815


class MeilisearchQueries(RequestModel):
    """The body of POST /multi-search."""

    queries: list[MeilisearchIndexQuery] = Field(min_length=1, max_length=100)


class MeilisearchFacetQuery(RequestModel):
    """The body of POST /indexes/{uid}/facet-search."""

    facetName: Text  # noqa: N815
    facetQuery: QueryText = ""  # noqa: N815
    q: QueryText | None = None
    filter: MeilisearchFilter | None = None


def documents_of(body: bytes) -> list[Document]:
    """Return the documents of an array, with vectors as `{"embeddings": ...}` or as they are."""
    return [_with_plain_vectors(each) for each in documents_of_array(body)]


def _with_plain_vectors(document: Document) -> Document:
    given = document.metadata.get(VECTORS)
    if not isinstance(given, Mapping):
        return document
    vectors = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            if value.get("regenerate", False):
                raise BadDocument(
                    f"document {document.id!r}: `{VECTORS}.{name}.regenerate` is not supported; "
                    "send false",
                    field=VECTORS,
                )
            value = value.get("embeddings")
        vectors[name] = value
    return replace(document, metadata={**document.metadata, VECTORS: vectors})


def filter_text(given: str | Sequence[str | Sequence[str]] | None) -> str | None:
    """Return a filter in the syntax of this service, None for an empty one.

    Texts have nearly the same syntax (docs/guides/from-meilisearch.md). Each is parsed alone, so
    that parentheses of one cannot close those of another. QueryError.
    """
    if given is None or isinstance(given, str):
        return (given or "").strip() or None
    parts = [[part] if isinstance(part, str) else part for part in given]
    for alternatives in parts:
        for each in alternatives:
            filter_of_text(each)
    joined = [" OR ".join(f"({each})" for each in some) for some in parts if some]
    return " AND ".join(f"({each})" for each in joined) or None


def meilisearch_answer(query: MeilisearchQuery, index: str, found: Mapping[str, Any]) -> Any:
    """Return the answer to a search, from a `SearchAnswer` as JSON."""
    hits = found["hits"] if query.count else []
    answer: dict[str, Any] = {
        "indexUid": index,
        "hits": [_hit(query, hit) for hit in hits],
        "query": query.q or "",
        "processingTimeMs": round(found["time_ms"]),
    }
    if query.by_page:
        pages = -(-found["total"] // query.count) if query.count else 0
        answer |= {"page": query.page or 1, "hitsPerPage": query.count}
        answer |= {"totalHits": found["total"], "totalPages": pages}
    else:
        answer |= {"limit": query.limit, "offset": query.offset}
        answer["estimatedTotalHits"] = found["total"]
    if query.facets is not None:
        facets = found.get("facets", {})
        answer["facetDistribution"] = {
            name: {_key(each["value"]): each["count"] for each in facet["values"]}
            for name, facet in facets.items()
        }
        answer["facetStats"] = {
            name: {"min": facet["low"], "max": facet["high"]}
            for name, facet in facets.items()
            if facet["type"] == "number" and facet["low"] is not None
        }
    return answer


def fields_of(found: Mapping[str, Any], chosen: Sequence[str] | None = None) -> dict[str, Any]:
    """Return a document as it was sent; `chosen` selects its fields, `*` or None all."""
    texts = {name: found[name] for name in ("title", "text") if found.get(name)}
    document = {"id": found["id"], **texts, **(found["metadata"] or {})}
    if chosen is None or "*" in chosen:
        return document
    return {name: value for name, value in document.items() if name in chosen}


def _hit(query: MeilisearchQuery, found: Mapping[str, Any]) -> dict[str, Any]:
    hit = fields_of(found, query.attributesToRetrieve)
    if query.formats:
        hit["_formatted"] = _formatted(query, hit, found.get("highlight") or {})
    if query.showRankingScore:
        hit["_rankingScore"] = found["quality"]
    return hit


def _formatted(
    query: MeilisearchQuery, hit: Mapping[str, Any], highlights: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a hit with marked words, and all values as texts."""
    marked = query.attributesToHighlight or ()
    cropped = [name.partition(":")[0] for name in query.attributesToCrop or ()]
    formatted = {}
    for name, value in hit.items():
        highlight = highlights.get("snippet" if name == "text" else name)
        is_marked = name in marked or "*" in marked
        if highlight is None or not (is_marked or name in cropped or "*" in cropped):
            formatted[name] = _as_text(value)
        elif is_marked:
            formatted[name] = _tagged(query, highlight["text"], highlight["marks"])
        else:
            formatted[name] = highlight["text"]
    return formatted


def _tagged(query: MeilisearchQuery, text: str, marks: Sequence[Sequence[int]]) -> str:
    parts, last = [], 0
    for start, end in marks:
        parts += [text[last:start], query.highlightPreTag, text[start:end], query.highlightPostTag]
        last = end
    return "".join((*parts, text[last:]))


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    if isinstance(value, dict):
        return {name: _as_text(each) for name, each in value.items()}
    return _key(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _key(value: object) -> str:
    """Return a value as a text, a whole number without decimals."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


_AUTOMATIC: Final = ("filterableAttributes", "sortableAttributes")
"""Settings of names of fields that work for all fields here."""

_RULES: Final = ["words", "typo", "proximity", "attribute", "sort", "exactness"]


def settings_of(index: Index) -> dict[str, Any]:
    """Return the settings of an index."""
    settings = index.settings
    return {
        "displayedAttributes": ["*"],
        "searchableAttributes": [
            part.partition("^")[0].strip() for part in settings.search.split(",")
        ],
        "filterableAttributes": ["*"],
        "sortableAttributes": ["*"],
        "rankingRules": _RULES,
        "stopWords": list(settings.own_stop_words),
        "synonyms": {word: list(others) for word, others in index.synonyms.items()},
        "distinctAttribute": None,
        "typoTolerance": {"enabled": settings.spelling == "auto"},
        "faceting": {"maxValuesPerFacet": 100},
        "pagination": {"maxTotalHits": MAX_WINDOW},
    }


def changed_settings(given: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a change needs, in terms of this service; without synonyms.

    QueryError for a setting that has no equal and would change something.
    """
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if name == "synonyms" or value == current.get(name, current):
            continue
        if name in _AUTOMATIC and _is_names(value):
            continue
        if name == "searchableAttributes" and _is_names(value) and value and value != ["*"]:
            changes["search"] = ",".join(value)
        elif name == "stopWords" and _is_names(value):
            changes["own_stop_words"] = value
        elif name == "typoTolerance" and value in ({"enabled": True}, {"enabled": False}):
            changes["spelling"] = "auto" if value["enabled"] else "off"
        else:
            raise QueryError(
                f"{name} = {str(value)[:60]} is not supported; leave {name} out "
                "(docs/guides/from-meilisearch.md)",
                field=name,
            )
    return changes


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
