"""Results of a search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from klsa_search.search.explaining.explanation import Explanation
from klsa_search.search.facets import Facet
from klsa_search.search.highlights import Highlight
from klsa_search.search.language import QueryInterpretation
from klsa_search.search.quality import FITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One ranked document; `rank` counts from 1.

    `explanation`, `highlight` (of title and snippet) and `quality` (how good a match it is, from 0
    to 1) are set if they were requested.

    >>> index.search("roads", k=1)[0]
    Hit(rank=1, id='tyre', score=..., title='Tyres', snippet='Bald tyres slip on wet roads.', ...)
    """

    rank: int
    id: str
    score: float
    title: str
    snippet: str
    metadata: Mapping[str, Any]
    explanation: Explanation | None = None
    highlight: Mapping[str, Highlight] | None = None
    quality: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResults:
    """The hits of one query, with the parameters of their ranking.

    `total` counts all matching documents, those with a score above 0, on all pages;
    `hits` are the best of them, or those from `offset` on. `parameters` are those that the ranker
    used, `facets` those requested, by name, `interpretation` is how the query was read, `quality`
    that of the best match among the hits, if it was requested.

    >>> results: klsa.SearchResults = index.search("leaking coolant", k=2)
    >>> results.total, len(results), results.ranker
    (3, 2, 'klsa')
    >>> hit = results[0]
    >>> hit.rank, hit.id, hit.title
    (1, 'leak', 'Leaks')
    """

    query: str
    interpretation: QueryInterpretation
    hits: tuple[Hit, ...]
    total: int
    ranker: str
    parameters: Mapping[str, Any]
    offset: int = 0
    facets: Mapping[str, Facet] = field(default_factory=dict)
    quality: float | None = None

    @property
    def good_match(self) -> bool | None:
        """Return whether any hit is a good match; None if no quality was requested.

        >>> index.search("leaking coolant", quality=True).good_match
        True
        >>> index.search("leaking submarines of the admiralty", quality=True).good_match
        False
        """
        return None if self.quality is None else self.quality >= FITS

    def __iter__(self) -> Iterator[Hit]:
        """Iterate over the hits, best first."""
        return iter(self.hits)

    def __len__(self) -> int:
        """Return the number of hits."""
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        """Return the hit at an index, from 0."""
        return self.hits[place]
