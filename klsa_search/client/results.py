"""Results of a service: how its JSON is read, and those that the library has no type for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter

from klsa_search.collection.model import Problems, Unread
from klsa_search.collection.passages import page_of
from klsa_search.search.batches import WriteResult
from klsa_search.search.pages.excerpts import Excerpt
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.results import Hit, SearchResults
from klsa_search.search.sync import SyncResult


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
    >>> [(hit.hit.id, hit.query) for hit in found.hits]
    [('leak', 0), ('tyre', 1), ('heat', 0)]
    """

    hits: tuple[FederatedHit, ...]
    total: int
    offset: int
    results: tuple[SearchResults, ...]


_RESULTS: Final = TypeAdapter(SearchResults)
_HIT: Final = TypeAdapter(Hit)
_EXCERPT: Final = TypeAdapter(Excerpt)
_FACET: Final = TypeAdapter(Facet)

write_result_of: Final = TypeAdapter(WriteResult).validate_python
"""Return what a write did."""


def results_of(answer: Any) -> SearchResults:
    """Return the results of a search."""
    for facet in answer.get("facets", {}).values():
        facet["values"] = _values(facet)
    return _RESULTS.validate_python(answer)


def federated_results_of(answer: Any) -> FederatedResults:
    """Return the merged hits of several searches."""
    hits = tuple(
        FederatedHit(
            hit=_HIT.validate_python(
                {"title": "", "snippet": "", "metadata": {}}
                | {name: value for name, value in hit.items() if name != "federation"}
            ),
            **hit["federation"],
        )
        for hit in answer["hits"]
    )
    results = tuple(results_of(result) for result in answer["results"])
    return FederatedResults(hits, answer["total"], answer["offset"], results)


@dataclass(frozen=True, slots=True)
class FileResult:
    """What a service read of a file, and added.

    format    in which the file was read
    added     number of documents added or replaced
    skipped   records that could not be read
    unread    files of an archive that are not documents
    numbered  tables without IDs, whose documents are numbered
    notes     what was recognised, such as encodings and columns
    warnings  values of the wrong type, which count as missing

    >>> with Client(url) as client:
    ...     result: FileResult = client.index("reports").add_file("reports.jsonl")
    >>> result.format, result.added, result.skipped.count
    ('jsonl', 6, 0)
    """

    format: str
    added: int
    skipped: Problems
    unread: Unread
    numbered: Sequence[str]
    notes: Sequence[str]
    warnings: Problems


def file_result_of(answer: Any) -> FileResult:
    """Return what was read of a file."""
    return FileResult(
        format=answer["format"],
        added=answer["added"],
        skipped=_problems_of(answer["skipped"]),
        unread=Unread(answer["unread"]["kinds"], answer["unread"]["first"]),
        numbered=answer["numbered"],
        notes=answer["notes"],
        warnings=_problems_of(answer["warnings"]),
    )


def _problems_of(answer: Any) -> Problems:
    return Problems(answer["count"], answer["first"], answer["kinds"])


def facet_of(answer: Any) -> Facet:
    """Return the values of a field."""
    return _FACET.validate_python({**answer, "values": _values(answer)})


def _values(facet: Any) -> tuple[Any, ...]:
    return tuple((entry["value"], entry["count"]) for entry in facet["values"])


def excerpt_of(answer: Any) -> Excerpt:
    """Return a passage, or a part of a document."""
    options = {
        "document_id": answer["id"],
        "span": (0, len(answer["text"])),
        "page": page_of(answer["text"], 0),
        "heading": "",
    }
    if "span" in answer:
        options["page"] = None  # of a part, the service says it
    return _EXCERPT.validate_python({**options, **answer})


def sync_result_of(answer: Any) -> SyncResult:
    """Return what a sync did."""
    ids = answer["ids"]
    return SyncResult(
        added=tuple(ids["added"]),
        changed=tuple(ids["changed"]),
        deleted=tuple(ids["deleted"]),
        unchanged=answer["unchanged"],
        batches=answer["batches"],
        warnings=_problems_of(answer["warnings"]),
        removed_fields=tuple(answer["removed_fields"]),
    )


def checked_for(name: str) -> Callable[[Any], None]:
    """Return a function that reads nothing of an answer; KeyError if it lacks a name."""

    def check(answer: Any) -> None:
        answer[name]

    return check
