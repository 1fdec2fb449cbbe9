"""A search as it is requested, with all its options, independent of any index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, Literal, Unpack, cast

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation, ValidationError
from pydantic_core import PydanticCustomError

from klsa_search.core.array_types import DocIds, DocumentMask
from klsa_search.core.keywords import SearchParameters
from klsa_search.core.parameters import (
    Alpha,
    Boosts,
    Coverage,
    Dimensions,
    Exact,
    Gamma,
    Head,
    HoldBack,
    Latent,
    LexicalSharpness,
    Match,
    Operators,
    PassageWeight,
    Ranker,
    Sharpness,
    Spectral,
    Spelling,
    Synonyms,
    Text,
    UnitLength,
    Z,
    first_fault,
)
from klsa_search.errors import QueryError
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.pages.budget import CANDIDATES, CountTokens, estimated_tokens
from klsa_search.search.ranking.vector_ranking import VectorLike
from klsa_search.search.snippets.snippet import LENGTH, LONGEST

PrefixName = Literal["last"]
GroupName = Literal["document", "passage"]

MAX_NAMES: Final = 100
"""Fields to sort by, to count or to return, and examples of relevance feedback, at most."""


def _as_tuple(value: object) -> object:
    """Return the items of a list or another iterable as a tuple, and everything else as it is."""
    if isinstance(value, str):
        raise PydanticCustomError("text", "it is a text; give a list")
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return tuple(value)
    return value


Names = Annotated[tuple[Text, ...], BeforeValidator(_as_tuple), Field(max_length=MAX_NAMES)]


class RankingParameters(BaseModel):
    """Parameters of parsing and ranking; None means the setting of the index."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    operators: Operators = None
    spelling: Spelling | None = None
    synonyms: Synonyms | None = None
    match: Match | None = None
    ranker: Ranker | None = None
    alpha: Alpha | None = None
    hold_back: HoldBack | None = None
    z: Z | None = None
    sharpness: Sharpness | None = None
    spectral: Spectral | None = None
    gamma: Gamma | None = None
    head: Head | None = None
    unit_length: UnitLength | None = None
    coverage: Coverage | None = None
    latent: Latent | None = None
    lexical_sharpness: LexicalSharpness | None = None
    passage_weight: PassageWeight | None = None
    boosts: Boosts | None = None
    exact: Exact | None = None
    dimensions: Dimensions | None = None

    @property
    def parameters(self) -> SearchParameters:
        """Return the parameters that were passed."""
        names = self.model_fields_set & SearchParameters.__annotations__.keys()
        return cast(SearchParameters, {name: getattr(self, name) for name in names})


class MatchOptions(BaseModel):
    """Options of a search that decide which hits it has, in which order and form."""

    filter: SkipValidation[FilterLike | None] = Field(
        None,
        description="filter on metadata, as text: year >= 2020 AND kind IN [a, b]; or as JSON: "
        '{"field": "year", ">=": 2020}',
    )
    sort: Names = Field((), description="metadata fields to sort by, as field:asc or field:desc")
    distinct: Text | None = Field(
        None,
        description="metadata field; only the best document for each of its values is returned",
    )
    min_score: float | None = Field(None, description="minimum score")
    positive: Names = Field((), description="IDs of relevant documents (relevance feedback)")
    negative: Names = Field((), description="IDs of irrelevant documents (relevance feedback)")
    prefix: PrefixName | None = Field(
        None,
        description="last: search for completions of the last word too, for a search box that "
        "searches while the user types",
    )
    snippet_length: int = Field(
        LENGTH, ge=1, le=LONGEST, description="maximum length of a snippet, in characters"
    )
    rules: bool = Field(True, description="apply the rules of the index")
    group: GroupName = Field(
        "document",
        description="passage: return passages of long documents, with their texts, instead of "
        "documents; totals, facets and operators are then those of passages",
    )
    vector: SkipValidation[VectorLike | None] = Field(
        None,
        description="vector of the query, as {space: numbers}: documents near to it score more, "
        "and match even without a word of the query",
    )


class QueryOptions(MatchOptions):
    """Options of a search: what is found, counted and returned."""

    facets: Names = Field((), description="metadata fields to count the values of")
    disjunctive_facets: Names = Field(
        (),
        description="metadata fields to count the values of as if the filter had no conditions on "
        "them: those of which a user may choose several values, joined by OR",
    )
    max_facet_values: int = Field(100, ge=1, description="maximum number of values of each facet")
    highlight: bool = Field(
        False,
        description="highlight the words of the query in title, snippet and passages of other "
        "searched fields; each is then the passage whose words contribute most to the score",
    )
    quality: bool = Field(
        False,
        description="return how good a match each hit is, from 0 to 1, and whether any is good",
    )
    explain: bool = Field(False, description="explain the score of each hit")
    max_tokens: int | None = Field(
        None,
        ge=1,
        description="with group=passage: return the best passages that fit into this number of "
        "tokens (estimated as a quarter of the bytes), at most k, without repetitions",
    )
    rerank: int | None = Field(
        None, ge=1, description="let the reranker order this many of the first hits"
    )


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


class _TextAndPage(BaseModel):
    query: str = Field("", description="text to search for, with operators")
    k: int = Field(10, ge=1, description="number of hits")
    offset: int = Field(0, ge=0, description="number of hits to skip")


class Query(RankingParameters, QueryOptions, _TextAndPage):
    """A search: a text with all options of `Index.search`, checked once and immutable.

    It belongs to no index: `Index.search`, its snapshots and views, and the clients take it. It can
    be pickled if `count_tokens` can, and names documents by ID, except in `mask`, which is that of
    one state of one index. QueryError for an unknown option, a value outside its limits, and
    options that exclude each other. Cost: 5 µs.

    >>> query = Query("coolant", k=2, filter="year >= 2020", sort=["year:desc"])
    >>> [hit.id for hit in index.search(query).hits]
    ['leak', 'heat']
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    mask: SkipValidation[DocumentMask | DocIds | None] = Field(
        None, description="documents that may be found: doc ids, or (max_doc,) bool"
    )
    count_tokens: SkipValidation[CountTokens] = Field(
        estimated_tokens, description="returns the number of tokens of a text"
    )

    def __init__(self, query: str = "", k: int = 10, **options: Unpack[SearchOptions]) -> None:
        """Check a search: see `Index.search` for the options."""
        values = {name: _plain(value) for name, value in options.items()}
        try:
            BaseModel.__init__(self, **values, query=query, k=_plain(k))
        except ValidationError as error:
            message, field = first_fault(error, Query, "option")
            raise QueryError(message, field=field) from None
        self._check_combinations()

    def _check_combinations(self) -> None:
        """Refuse options that exclude each other; QueryError."""
        if self.max_tokens is not None and (self.group != "passage" or self.offset):
            raise QueryError(
                "max_tokens: only the first passages can be limited in tokens; use "
                "group = 'passage' without offset",
                field="max_tokens",
            )
        if self.distinct is not None and self.distinct in self.disjunctive_facets:
            raise QueryError(
                f"disjunctive_facets: the values of {self.distinct!r} are distinct among the hits; "
                "count it in `facets`",
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
        raise QueryError(f"{name}: the query has its options already; pass it alone", field=name)
    return query


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python, and every other value as it is."""
    return value.item() if isinstance(value, np.generic) else value
