"""Options of a search."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from klsa_search.errors import QueryError
from klsa_search.keywords import SearchParameters
from klsa_search.search.filters.masks import Given

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
class Wishes:
    """Options of a search besides query and k; see `Index.search`."""

    offset: int = 0
    filter: Given | None = None
    sort: tuple[str, ...] = ()
    facets: tuple[str, ...] = ()
    max_facet_values: int = 100
    distinct: str | None = None
    min_score: float | None = None
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()

    @classmethod
    def checked(
        cls,
        offset: int,
        filter: Given | None,  # noqa: A002 - the name callers see
        sort: Iterable[str],
        facets: Iterable[str],
        max_facet_values: int,
        distinct: str | None,
        min_score: float | None,
        positive: Iterable[str],
        negative: Iterable[str],
    ) -> Self | None:
        """Return the checked options; None if all are defaults. QueryError."""
        wishes = cls(
            offset=_number("offset", offset, 0),
            filter=filter,
            sort=names("sort", sort),
            facets=names("facets", facets),
            max_facet_values=_number("max_facet_values", max_facet_values, 1),
            distinct=distinct,
            min_score=_score(min_score),
            positive=names("positive", positive),
            negative=names("negative", negative),
        )
        return None if wishes == cls(max_facet_values=wishes.max_facet_values) else wishes


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


def _number(name: str, value: Any, least: int) -> int:
    try:
        number = value.__index__()
    except AttributeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise QueryError(
            f"{name} = {value!r} is not a whole number of at least {least}", field=name
        )
    return int(number)


def _score(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise QueryError(f"min_score = {value!r} is not a finite number", field="min_score")
    return float(value)
