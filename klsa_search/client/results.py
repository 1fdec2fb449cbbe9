"""Results of a service: how its JSON is read, and those that the library has no type for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, TypeAdapter

from klsa_search.analysis.passages import page_of
from klsa_search.collection.model import Problems, Unread
from klsa_search.search.pages.excerpts import Excerpt
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.results import Hit, SearchResults
from klsa_search.search.sync import SyncResult

T = TypeVar("T")


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


_adapter: Callable[[object], TypeAdapter[Any]] = cache(TypeAdapter)


def read(kind: type[T], name: str = "") -> Callable[[Any], T]:
    """Return a function that reads a value of a type from the JSON of an answer.

    name  of the value in the answer; by default all of it
    """
    validate = _adapter(kind).validate_python
    return (lambda answer: validate(answer[name])) if name else validate


def _reshaped(kind: type[T], reshape: Callable[[Any], Any]) -> type[T]:
    """Return a type for `read` whose JSON is reshaped to the fields of the class."""
    return Annotated[kind, BeforeValidator(reshape)]  # type: ignore[return-value]  # read as `kind`


def _facet(answer: Any) -> Any:
    return {**answer, "values": [(entry["value"], entry["count"]) for entry in answer["values"]]}


def _results(answer: Any) -> Any:
    facets = answer.get("facets", {}).items()
    return {**answer, "facets": {name: _facet(facet) for name, facet in facets}}


def _federated(answer: Any) -> Any:
    absent = {"title": "", "snippet": "", "metadata": {}}
    hits = [{"hit": absent | hit, **hit["federation"]} for hit in answer["hits"]]
    return {**answer, "hits": hits, "results": list(map(_results, answer["results"]))}


def _excerpt(answer: Any) -> Any:
    text = answer["text"]
    if "span" in answer:  # of a part, the service says the page, if there is one
        return {"page": None, **answer}
    span, page = (0, len(text)), page_of(text, 0)
    return {"document_id": answer["id"], "span": span, "page": page, "heading": "", **answer}


def _with_reasons(answer: Any) -> Any:
    problems = {name: answer[name] for name in ("skipped", "warnings") if name in answer}
    return answer | {name: {**one, "reasons": one["first"]} for name, one in problems.items()}


FacetJson = _reshaped(Facet, _facet)
ResultsJson = _reshaped(SearchResults, _results)
ResultsListJson = _reshaped(list[SearchResults], lambda answers: list(map(_results, answers)))
FederatedJson = _reshaped(FederatedResults, _federated)
ExcerptJson = _reshaped(Excerpt, _excerpt)
FileJson = _reshaped(FileResult, _with_reasons)
SyncJson = _reshaped(SyncResult, lambda answer: _with_reasons(answer | answer["ids"]))
NothingJson = _reshaped(NoneType, lambda _: None)
"""Types of results whose JSON has other fields than the class. `NothingJson` ignores the answer."""
