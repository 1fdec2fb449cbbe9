"""Results of the library in the JSON of answers whose form differs from theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import TypeAdapter

from klsa_search.client.results import FederatedHit, FederatedResults
from klsa_search.collection.model import Problems
from klsa_search.collection.passages import page_of
from klsa_search.core.analytics import Analytics
from klsa_search.search.pages.excerpts import Excerpt
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.results import Hit, SearchResults
from klsa_search.search.sync import SyncResult
from klsa_search.search.writing import WriteResult
from klsa_search.storage.columns.declared import FieldWarning

_RESULTS: Final = TypeAdapter(SearchResults)
_HIT: Final = TypeAdapter(Hit)
_EXCERPT: Final = TypeAdapter(Excerpt)
_FACET: Final = TypeAdapter(Facet)
_ANALYTICS: Final = TypeAdapter(Analytics)


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


def write_result_of(answer: Any) -> WriteResult:
    """Return what a write did."""
    return WriteResult(
        generation=answer["generation"],
        last_write=answer["log_position"],
        written=answer["added"],
        deleted=answer["deleted"],
        warnings=tuple(FieldWarning(**warning) for warning in answer["warnings"]),
    )


def sync_result_of(answer: Any) -> SyncResult:
    """Return what a sync did."""
    ids, warnings = answer["ids"], answer["warnings"]
    return SyncResult(
        added=tuple(ids["added"]),
        changed=tuple(ids["changed"]),
        deleted=tuple(ids["deleted"]),
        unchanged=answer["unchanged"],
        batches=answer["batches"],
        warnings=Problems(warnings["count"], warnings["first"], warnings["kinds"]),
        removed_fields=tuple(answer["removed_fields"]),
    )


def analytics_of(answer: Any) -> Analytics:
    """Return analytics."""
    lists = {"days": "day", "queries": "query", "no_results": "query", "low_quality": "query"}
    by_key = {name: {row[key]: row for row in answer[name]} for name, key in lists.items()}
    return _ANALYTICS.validate_python({**answer, **by_key})


def checked_for(name: str) -> Callable[[Any], None]:
    """Return a function that reads nothing of an answer; KeyError if it lacks a name."""

    def check(answer: Any) -> None:
        answer[name]

    return check
