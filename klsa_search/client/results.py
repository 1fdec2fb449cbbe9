"""Results of a service that the library has no type for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from klsa_search.search.pages.results import Hit, SearchResults


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index of a service.

    documents  number of live documents; None if the index cannot be opened, and `error` says why
    settings   by name; None in a list of indexes
    job        ID of its waiting or running job; None in a list of indexes

    >>> with Client(url) as client:
    ...     info: IndexInfo = client.index("reports").info()
    >>> info.name, info.documents
    ('reports', 6)
    """

    name: str
    documents: int | None
    error: str | None = None
    settings: Mapping[str, Any] | None = None
    job: int | None = None


@dataclass(frozen=True, slots=True)
class FederatedHit:
    """A hit of several searches; `hit.rank` is that of the merged list.

    index           its index
    query           number of the search that found it, from 0
    rank            its rank in that search
    weighted_score  weight of the search / rank, by which the hits are ordered

    >>> with Client(url) as client:
    ...     found = client.federated_search([{"index": "reports", "q": "coolant", "weight": 2}])
    >>> best: FederatedHit = found.hits[0]
    >>> best.hit.id, best.query, best.weighted_score
    ('leak', 0, 2.0)
    """

    hit: Hit
    index: str
    query: int
    rank: int
    weighted_score: float


@dataclass(frozen=True, slots=True)
class FederatedResults:
    """The merged hits of several searches.

    total    sum of the totals of the searches
    results  of each search, without hits

    >>> with Client(url) as client:
    ...     searches = [{"index": "reports", "q": word} for word in ("coolant", "roads")]
    ...     found: FederatedResults = client.federated_search(searches, limit=3)
    >>> [(each.hit.id, each.query) for each in found.hits]
    [('leak', 0), ('tyre', 1), ('heat', 0)]
    """

    hits: tuple[FederatedHit, ...]
    total: int
    offset: int
    results: tuple[SearchResults, ...]
