"""Options of a search."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.config import SearchSettings
from klsa_search.errors import QueryError
from klsa_search.keywords import SearchParameters
from klsa_search.search import engine
from klsa_search.search.filters.masks import Given
from klsa_search.search.language import ParsedQuery, QueryInterpretation

MOST_NAMES: Final = 100
"""Fields to sort by, to count or to show, and documents that were judged."""

Mask = npt.NDArray[np.bool_]


class RankingOptions(SearchParameters, total=False):
    """Keyword arguments of `Index.rank` that affect scores."""

    dimensions: int | None


class SearchOptions(RankingOptions, total=False):
    """Keyword arguments of `Index.search`, to be passed as `**options`.

    >>> recent: SearchOptions = {"filter": "year >= 2020", "sort": ["year:desc"], "alpha": 0.5}
    >>> [hit.id for hit in index.search("coolant", **recent).hits]
    ['leak', 'heat']
    """

    offset: int
    filter: Given | None
    sort: Iterable[str]
    facets: Iterable[str]
    max_facet_values: int
    distinct: str | None
    min_score: float | None
    positive: Iterable[str]
    negative: Iterable[str]
    mask: Mask | None
    explain: bool
    highlight: bool
    snippet_length: int
    quality: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """A search, checked against one state of an index; see `Index.search`.

    parsed      query, without the documents that its operators allow
    parameters, dimensions  of its ranking
    mask        documents that may be returned, by the caller and by the operators; None for all
    """

    query: str
    parsed: ParsedQuery
    interpretation: QueryInterpretation
    parameters: SearchSettings
    dimensions: int
    mask: engine.Mask | None
    k: int
    offset: int
    filter: Given | None
    sort: tuple[str, ...]
    facets: tuple[str, ...]
    max_facet_values: int
    distinct: str | None
    min_score: float | None
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    explain: bool
    highlight: bool
    snippet_length: int
    quality: bool

    def __post_init__(self) -> None:
        """Refuse options that exclude each other; QueryError."""
        if self.explain and (self.positive or self.negative):
            raise QueryError(
                "explain: scores moved by positive or negative examples cannot be "
                "split into parts; leave the examples out",
                field="explain",
            )


def names(parameter: str, given: Iterable[str]) -> tuple[str, ...]:
    """Take a list of names; QueryError."""
    if isinstance(given, str):
        raise QueryError(f"{parameter} = {given!r} is a text; give a list", field=parameter)
    taken = tuple(given)
    for name in taken:
        if not isinstance(name, str):
            raise QueryError(f"{parameter}: {name!r} is not a text", field=parameter)
    if len(taken) > MOST_NAMES:
        raise QueryError(
            f"{parameter}: {len(taken):,} names, more than the limit of {MOST_NAMES}; give fewer",
            field=parameter,
        )
    return taken


def finite_score(value: Any) -> float | None:
    """Return a minimum score; QueryError."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise QueryError(f"min_score = {value!r} is not a finite number", field="min_score")
    return float(value)
