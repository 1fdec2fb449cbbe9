"""A search as it is requested, with all its options, independent of any index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Unpack

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, SkipValidation, ValidationError

from klsa_search.core.arguments import checked_argument
from klsa_search.core.array_types import DocIds, DocumentMask
from klsa_search.core.parameters import (
    GroupName,
    PrefixName,
    QueryOptions,
    RankingParameters,
    SearchParameters,
)
from klsa_search.core.settings_group import first_fault
from klsa_search.errors import QueryError
from klsa_search.search.filters.masks import FilterLike

CountTokens = Callable[[str], int]
"""Returns the number of tokens of a text."""

ALIASES: Final[Mapping[str, str]] = {"limit": "k"}
"""Options by the names that HTTP has for them."""

CANDIDATES: Final = 50
"""Passages that are considered at least, however few are requested."""

VectorLike = Mapping[str, object]
"""The vector of a search: the name of its space, and an array or list of numbers."""


class SearchOptions(SearchParameters, total=False):
    """Keyword arguments of `Index.search`, to be passed as `**options`; see `Query`.

    >>> recent: SearchOptions = {"filter": "year >= 2020", "sort": ["year:desc"], "alpha": 0.5}
    >>> [hit.id for hit in index.search("coolant", **recent).hits]
    ['leak', 'heat']
    """

    offset: int
    filter: FilterLike | None
    sort: Iterable[str]
    facets: Iterable[str]
    disjunctive_facets: Iterable[str]
    max_facet_values: int
    distinct: str | None
    min_score: float | None
    positive: Iterable[str]
    negative: Iterable[str]
    mask: DocumentMask | DocIds | None
    explain: bool
    highlight: bool
    snippet_length: int
    quality: bool
    prefix: PrefixName | None
    group: GroupName
    max_tokens: int | None
    count_tokens: CountTokens
    rerank: int | None
    rules: bool
    vector: VectorLike | None


def estimated_tokens(text: str) -> int:
    """Return about the number of tokens of a text: a quarter of its bytes in UTF-8.

    Language models have tokens of about four letters of English, and of about one character of
    Chinese, Japanese or Korean. Pass the tokenizer of your model to `search` to be exact.

    >>> from klsa_search.search.query.query import estimated_tokens
    >>> estimated_tokens("Check the coolant hose.")
    6
    """
    return -(-len(text.encode()) // 4)


class _TextAndPage(BaseModel):
    query: str = Field("", description="text to search for, with operators")
    k: int = Field(10, ge=1, description="number of hits")
    offset: int = Field(0, ge=0, description="number of hits to skip")


class Query(RankingParameters, QueryOptions, _TextAndPage):
    """A search: a text with all options of `Index.search`, checked once and immutable.

    It belongs to no index: `Index.search`, its snapshots and views, and the clients take it, and it
    names documents by ID. Only `mask` is by doc ids, so it is valid for one state of one index. It
    can be pickled if `count_tokens` can. QueryError for an unknown option, a value outside its
    limits, and options that exclude each other. Cost: 5 µs.

    >>> query = Query("coolant", k=2, filter="year >= 2020", sort=["year:desc"])
    >>> [hit.id for hit in index.search(query).hits]
    ['leak', 'heat']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    filter: SkipValidation[FilterLike | None] = None
    vector: SkipValidation[VectorLike | None] = None
    mask: SkipValidation[DocumentMask | DocIds | None] = Field(
        None, description="documents that may be found: doc ids, or (max_doc,) bool"
    )
    count_tokens: SkipValidation[CountTokens] = Field(
        estimated_tokens, description="returns the number of tokens of a text"
    )

    def __init__(self, query: str = "", k: int = 10, **options: Unpack[SearchOptions]) -> None:
        """Check a search: see `Index.search` for the options."""
        checked_argument("query", query, str)
        values = {name: _plain(value) for name, value in options.items()}
        try:
            BaseModel.__init__(self, **values, query=query, k=_plain(k))
        except ValidationError as error:
            message, field = first_fault(error, Query, "option", ALIASES)
            raise QueryError(message, field=field) from None
        self.check_combinations()

    def check_combinations(self) -> None:
        """Refuse options that exclude each other; QueryError."""
        if self.max_tokens is not None and (self.group != "passage" or self.offset):
            raise QueryError(
                "max_tokens: only the first passages can be limited in tokens; use "
                "group = 'passage' without offset",
                field="max_tokens",
            )
        if self.distinct is not None and self.distinct in self.disjunctive_facets:
            raise QueryError(
                f"disjunctive_facets: {self.distinct!r} cannot be both `distinct` and a "
                "disjunctive facet; use `facets`",
                field="disjunctive_facets",
            )
        if not (self.positive or self.negative):
            return
        if self.group == "passage":
            raise QueryError(
                "group: relevance feedback is by documents; leave the examples out, or use "
                "group = 'document'",
                field="group",
            )
        if self.explain:
            raise QueryError(
                "explain: scores moved by positive or negative examples cannot be "
                "split into parts; leave the examples out",
                field="explain",
            )

    @property
    def candidates(self) -> int:
        """Return the number of hits, from `offset` on, of which the results are chosen."""
        return self.k if self.max_tokens is None else max(self.k, CANDIDATES)


def as_query(query: str | Query, k: int, options: SearchOptions) -> Query:
    """Return a text with its options as a `Query`; QueryError for options beside a `Query`."""
    if not isinstance(query, Query):
        return Query(query, k, **options)
    if options or k != 10:
        name = next(iter(options), "k")
        raise QueryError(f"`{name}` cannot be passed with a Query; set it in the Query", field=name)
    return query


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python, and every other value as it is."""
    return value.item() if isinstance(value, np.generic) else value
