"""Requests to a service, and how their answers and errors are read."""

from __future__ import annotations

import json
import time
from collections.abc import (
    AsyncIterable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import httpx
import numpy as np
from pydantic import TypeAdapter, ValidationError

from klsa_search import errors
from klsa_search.collection.model import Document, Problems
from klsa_search.collection.passages import page_of
from klsa_search.collection.vectors import VECTORS
from klsa_search.errors import (
    CollectionError,
    KlsaError,
    QueryError,
    ServiceFailed,
    SettingsError,
)
from klsa_search.search.excerpts import Excerpt
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.facets import Facet
from klsa_search.search.results import Hit, SearchResults
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.search.sync import SyncResult
from klsa_search.search.writing import WriteResult
from klsa_search.storage.columns.declared import FieldWarning

T = TypeVar("T")

Record = Document | Mapping[str, Any]
"""A document, or a mapping with `id`, `title`, `text` and metadata fields."""

TIMEOUT: Final = 60.0
"""Seconds without a byte before a request fails; longer than the timeouts of the service."""

RETRIES: Final = 3
"""Times that a request is repeated by default."""

_MAX_PAUSE: Final = 30.0
"""Seconds between two attempts at most, whatever the service asks for."""

_BATCH: Final = 1_000
"""Documents of a request that adds documents, at most."""

_BATCH_BYTES: Final = 2**22
"""Bytes of JSON after which such a request is sent."""

_BUSY: Final = frozenset({429, 503})
"""Statuses after which the same request may succeed."""

_WAIT: Final = 20.0
"""Seconds that the service waits for the end of a job before it answers, at most."""

_LINES: Final = "application/x-ndjson"
_ERRORS: Final = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, KlsaError)
}
"""Errors of the library by code."""


Answer = httpx.Response | httpx.TransportError
"""What a request led to."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request.

    read        returns what the JSON of its answer contains
    body        JSON, bytes of JSON, or lines of JSON as a stream
    can_repeat  whether it may be sent again; a stream may not
    """

    method: str
    path: str
    read: Callable[[Any], T]
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    can_repeat: bool = True


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
class Job:
    """Work of a service on an index in the background.

    kind         kind of work; "refit" rebuilds an index
    state        waiting, running, done, failed or cancelled
    generation   generation that is rebuilt
    settings     settings that it changes
    begun        time of its start, or of its request while it waits: UTC, ISO 8601
    phase        current or last phase of the build; None before the first
    done, total  amount of that phase; `total` is None if unknown
    seconds      duration; None before its end, and if the service ended first
    error        why it failed

    >>> with Client(url) as client:
    ...     job: Job = client.index("reports").refit()
    ...     job = client.cancel_job(job.id)  # or client.wait(job)
    >>> job.kind, job.state
    ('refit', 'cancelled')
    """

    id: int
    kind: str
    index: str
    state: str
    generation: str
    settings: Mapping[str, Any]
    begun: str
    phase: str | None
    done: int
    total: int | None
    seconds: float | None
    error: str | None

    @property
    def has_ended(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state not in ("waiting", "running")


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


class Service:
    """The address of a service, and how its answers and errors are read.

    SettingsError for an invalid address or key.
    """

    def __init__(self, url: str, key: str | None = None, retries: int = RETRIES) -> None:
        try:
            parts = httpx.URL(url)
        except httpx.InvalidURL:
            parts = httpx.URL()
        if parts.scheme not in ("http", "https") or not parts.host or parts.query:
            raise SettingsError(
                f"`{url}` is not the address of a service; give one such as http://127.0.0.1:8000",
                field="url",
            )
        if key is not None and not (key.isascii() and key.isprintable()):
            raise SettingsError(
                "the key has characters that no API key has; give it as `klsa-keys` printed it",
                field="key",
            )
        self.url = url.rstrip("/")
        self.headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.retries = retries

    def request(self, call: Call[Any]) -> dict[str, Any]:
        """Return the arguments of `httpx.Client.request`."""
        arguments: dict[str, Any] = {
            "method": call.method,
            "url": self.url + call.path,
            "params": {name: value for name, value in call.query.items() if value is not None},
        }
        if call.body is not None:
            is_written = isinstance(call.body, bytes) or not call.can_repeat
            arguments["content"] = call.body if is_written else json.dumps(call.body).encode()
            kind = "application/json" if call.can_repeat else _LINES
            arguments["headers"] = {"Content-Type": kind}
        return arguments

    def pause(self, call: Call[Any], answer: Answer, attempt: int) -> float | None:
        """Return the seconds before a request is repeated; None if it is not."""
        if attempt >= self.retries or not call.can_repeat:
            return None
        after = ""
        if isinstance(answer, httpx.Response):
            if answer.status_code not in _BUSY:
                return None
            after = answer.headers.get("retry-after", "")
        elif not isinstance(answer, httpx.NetworkError):
            return None  # a timeout, or not HTTP
        return min(float(after) if after.isdigit() else 0.1 * 2**attempt, _MAX_PAUSE)

    def read(self, call: Call[T], response: Answer) -> T:
        """Return what an answer contains, or raise the error that it reports."""
        if not isinstance(response, httpx.Response):
            raise self.failure(str(response).rstrip(".") or type(response).__name__) from None
        if not response.is_success:
            raise self._reported(response)
        try:
            return call.read(response.json())
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise self.failure(
                f"unexpected answer (`{where}`): the service runs another version"
            ) from None
        except (ValueError, KeyError, TypeError):
            raise self.failure("the answer is not from klsa-serve") from None

    def failure(self, reason: object) -> ServiceFailed:
        """Return the error of a service that gives no usable answer."""
        return ServiceFailed(
            f"no usable answer from `{self.url}`: {reason}; check that klsa-serve runs there"
        )

    def _reported(self, response: httpx.Response) -> KlsaError:
        try:
            error = response.json()["error"]
            code, message, about = error["code"], str(error["message"]), error["field"]
        except (ValueError, KeyError, TypeError):
            return self.failure(
                f"the answer has status {response.status_code} and is not from klsa-serve"
            )
        reported = _ERRORS.get(code, ServiceFailed)(message)
        reported.field = about
        return reported


def search_call(index: str, query: str, k: int, options: Mapping[str, Any]) -> Call[SearchResults]:
    """Return the call of a search."""
    return Call("POST", "/search", results_of, search_body(index, query, k, options))


def search_body(index: str, query: str, k: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a search as JSON; QueryError for those that are not JSON."""
    for name in ("mask", "count_tokens"):
        if options.get(name) is not None:
            raise QueryError(
                f"{name} cannot be sent to a service; leave it out, or search the index in Python",
                field=name,
            )
    given = {
        name: value
        if isinstance(value, str | Mapping) or not isinstance(value, Iterable)
        else list(value)
        for name, value in options.items()
        if value is not None
    }
    return {"index": index, "q": query, "k": k, **given, **_vector(options.get("vector"))}


def _vector(vector: Any) -> dict[str, Any]:
    """Return the vector of a search as a parameter, with arrays as lists."""
    return {} if vector is None else {"vector": _without_arrays(vector)}


def _without_arrays(value: Any) -> Any:
    """Return a mapping, list or array with lists of numbers instead of arrays."""
    if isinstance(value, Mapping):
        return {name: _without_arrays(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_without_arrays(each) for each in value] if isinstance(value, list | tuple) else value


def results_of(answer: Any) -> SearchResults:
    """Return the results in an answer of a search."""
    for facet in answer.get("facets", {}).values():
        facet["values"] = [(each["value"], each["count"]) for each in facet["values"]]
    return _RESULTS.validate_python(answer)


def explain_call(index: str, query: str, id_: str, options: Mapping[str, Any]) -> Call[Explanation]:
    """Return the call of an explanation."""
    path = f"/indexes/{_part(index)}/explain/{_part(id_)}"
    given = {name: value for name, value in options.items() if value is not None}
    body = {"q": query, **given, **_vector(options.get("vector"))}
    return Call("POST", path, explanation_of, body)


def explanation_of(answer: Any) -> Explanation:
    """Return the explanation in an answer."""
    return _EXPLANATION.validate_python(answer["explanation"])


_RESULTS: Final = TypeAdapter(SearchResults)
_HIT: Final = TypeAdapter(Hit)
_EXPLANATION: Final = TypeAdapter(Explanation)
_SUGGESTIONS: Final = TypeAdapter(tuple[Suggestion, ...])
_INDEXES: Final = TypeAdapter(list[IndexInfo])
_INDEX: Final = TypeAdapter(IndexInfo)
_DOCUMENT: Final = TypeAdapter(Document)
_EXCERPT: Final = TypeAdapter(Excerpt)
_FACET: Final = TypeAdapter(Facet)
_JOB: Final = TypeAdapter(Job)
_JOBS: Final = TypeAdapter(list[Job])


def multi_search_call(queries: Iterable[Mapping[str, Any]]) -> Call[list[SearchResults]]:
    """Return the call of several searches."""
    bodies = [search_body(**_divided(query)) for query in queries]
    return Call(
        "POST",
        "/multi-search",
        lambda answer: [results_of(each) for each in answer["results"]],
        {"queries": bodies},
    )


def federated_search_call(
    queries: Iterable[Mapping[str, Any]], limit: int, offset: int
) -> Call[FederatedResults]:
    """Return the call of several searches whose hits are merged."""
    bodies = [
        {name: value for name, value in search_body(**_divided(query)).items() if name != "k"}
        for query in queries
    ]
    body = {"queries": bodies, "federation": {"limit": limit, "offset": offset}}
    return Call("POST", "/multi-search", _merged, body)


def _merged(answer: Any) -> FederatedResults:
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
    results = tuple(results_of(each) for each in answer["results"])
    return FederatedResults(hits, answer["total"], answer["offset"], results)


def _divided(query: Mapping[str, Any]) -> dict[str, Any]:
    options = dict(query)
    return {
        "index": options.pop("index", None),
        "query": options.pop("q", ""),
        "k": options.pop("k", 10),
        "options": options,
    }


INDEXES_CALL: Final = Call(
    "GET", "/indexes", lambda answer: _INDEXES.validate_python(answer["indexes"])
)


def create_call(name: str, settings: Mapping[str, Any]) -> Call[IndexInfo]:
    """Return the call that creates an index."""
    body = {"name": name, "settings": dict(settings)}
    return Call("POST", "/indexes", _INDEX.validate_python, body)


def delete_call(name: str) -> Call[str]:
    """Return the call that deletes an index."""
    return Call("DELETE", f"/indexes/{_part(name)}", lambda answer: str(answer["name"]))


def tenant_token_call(filters: Mapping[str, str | Mapping[str, Any]], expires_in: int) -> Call[str]:
    """Return the call that creates a tenant token."""
    body = {"filters": dict(filters), "expires_in": expires_in}
    return Call("POST", "/tenant-tokens", lambda answer: str(answer["token"]), body)


def jobs_call(index: str | None) -> Call[list[Job]]:
    """Return the call that lists jobs, of one index or of all."""
    query = {"index": index}
    return Call("GET", "/jobs", lambda answer: _JOBS.validate_python(answer["jobs"]), query=query)


def job_call(id_: int, method: str = "GET") -> Call[Job]:
    """Return the call about one job: GET, or DELETE to cancel it."""
    return Call(method, f"/jobs/{id_}", _JOB.validate_python)


def wait_call(id_: int, deadline: float) -> Call[Job]:
    """Return the call for a job that is answered when it has ended, or soon after the deadline."""
    seconds = min(_WAIT, max(deadline - time.monotonic(), 0.0))
    return Call("GET", f"/jobs/{id_}", _JOB.validate_python, query={"wait": f"{seconds:.3f}"})


def deadline_of(timeout: float | None) -> float:
    """Return the time, in seconds of `monotonic`, at which a timeout expires."""
    return float("inf") if timeout is None else time.monotonic() + timeout


def has_ended(job: Job, deadline: float) -> bool:
    """Return whether a job has ended; TimeoutError after the deadline."""
    if not job.has_ended and time.monotonic() > deadline:
        raise TimeoutError(
            f"job {job.id} has not ended (state `{job.state}`); wait again, or cancel it"
        )
    return job.has_ended


def _written(answer: Any) -> WriteResult:
    return WriteResult(
        generation=answer["generation"],
        last_write=answer["log_position"],
        written=answer["added"],
        deleted=answer["deleted"],
        warnings=tuple(FieldWarning(**each) for each in answer["warnings"]),
    )


def _excerpt(answer: Any) -> Excerpt:
    whole = {
        "document_id": answer["id"],
        "span": (0, len(answer["text"])),
        "page": page_of(answer["text"], 0),
        "heading": "",
    }
    if "span" in answer:
        whole["page"] = None  # of a part, the service says it
    return _EXCERPT.validate_python({**whole, **answer})


def _facet(answer: Any) -> Facet:
    values = tuple((each["value"], each["count"]) for each in answer["values"])
    return _FACET.validate_python({**answer, "values": values})


def _synced(answer: Any) -> SyncResult:
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


def _part(text: str) -> str:
    return quote(text, safe="")


def as_json(record: Record) -> str:
    """Return a document as JSON."""
    if isinstance(record, Document):
        record = {
            "id": record.id,
            "title": record.title,
            "text": record.text,
            "metadata": dict(record.metadata),
        }
    return json.dumps(_with_lists(record), ensure_ascii=False)


def _with_lists(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a document, with lists instead of arrays in its vectors."""
    if VECTORS in record:
        return {**record, VECTORS: _without_arrays(record[VECTORS])}
    if isinstance(metadata := record.get("metadata"), Mapping) and VECTORS in metadata:
        return {**record, "metadata": _with_lists(metadata)}
    return record


class IndexCalls:
    """The calls about one index."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = f"/indexes/{_part(name)}"

    def info(self) -> Call[IndexInfo]:
        """Return the call for its state."""
        return Call("GET", self._path, _INDEX.validate_python)

    def refit(self) -> Call[Job]:
        """Return the call that starts a refit."""
        return Call("POST", f"{self._path}/refit", _JOB.validate_python, {})

    def update_settings(self, settings: Mapping[str, Any]) -> Call[Job | None]:
        """Return the call that changes settings."""

        def job(answer: Any) -> Job | None:
            return None if answer["job"] is None else _JOB.validate_python(answer["job"])

        return Call("PATCH", self._path, job, {"settings": dict(settings)})

    def rules(self) -> Call[list[dict[str, Any]]]:
        """Return the call for its rules."""
        return Call("GET", f"{self._path}/rules", lambda answer: list(answer["rules"]))

    def set_rules(self, rules: Iterable[Mapping[str, Any]]) -> Call[list[str]]:
        """Return the call that replaces its rules."""
        body = {"rules": list(rules)}
        return Call("PUT", f"{self._path}/rules", lambda answer: list(answer["warnings"]), body)

    def put_rule(self, rule: Mapping[str, Any]) -> Call[list[str]]:
        """Return the call that replaces or adds a rule."""
        path = f"{self._path}/rules/{_part(str(rule.get('id')))}"
        return Call("PUT", path, lambda answer: list(answer["warnings"]), dict(rule))

    def delete_rule(self, id_: str) -> Call[int]:
        """Return the call that deletes a rule."""
        path = f"{self._path}/rules/{_part(id_)}"
        return Call("DELETE", path, lambda answer: int(answer["rules"]))

    def document(self, id_: str) -> Call[Document]:
        """Return the call for a document."""
        query = {"index": self.name, "vectors": "true"}
        return Call("GET", f"/documents/{_part(id_)}", _DOCUMENT.validate_python, query=query)

    def excerpt(self, id_: str, span: tuple[int, int] | None, page: int | None) -> Call[Excerpt]:
        """Return the call for a passage, or a part of a document."""
        query = {"index": self.name, "span": span and f"{span[0]}-{span[1]}", "page": page}
        return Call("GET", f"/documents/{_part(id_)}", _excerpt, query=query)

    def suggest(self, typed: str, k: int) -> Call[tuple[Suggestion, ...]]:
        """Return the call for completions."""
        return Call(
            "GET",
            f"{self._path}/suggest",
            lambda answer: _SUGGESTIONS.validate_python(answer["suggestions"]),
            query={"q": typed, "k": k},
        )

    def facet_search(
        self, field: str, typed: str, k: int, options: Mapping[str, Any]
    ) -> Call[Facet]:
        """Return the call for the values of a field that contain a text."""
        body = {"field": field, "q": typed, "k": k, **options}
        return Call("POST", f"{self._path}/facet-search", _facet, body)

    def event(self, body: Mapping[str, Any]) -> Call[bool]:
        """Return the call that records an event."""
        return Call("POST", f"{self._path}/events", lambda answer: bool(answer["accepted"]), body)

    def analytics(self, days: int, k: int) -> Call[dict[str, Any]]:
        """Return the call for analytics."""
        return Call("GET", f"{self._path}/analytics", dict, query={"days": days, "k": k})

    def add(self, batch: Sequence[str]) -> Call[WriteResult]:
        """Return the call that adds documents, each as JSON."""
        body = f"[{','.join(batch)}]".encode()
        return Call("POST", f"{self._path}/documents", _written, body)

    def patch(self, id_: str, changes: Mapping[str, Any]) -> Call[WriteResult]:
        """Return the call that patches a document."""
        path = f"{self._path}/documents/{_part(id_)}"
        return Call("PATCH", path, _written, dict(_with_lists(changes)))

    def delete(self, ids: Iterable[str]) -> Call[WriteResult]:
        """Return the call that deletes documents; CollectionError for a text."""
        if isinstance(ids, str):  # its letters would be IDs
            raise CollectionError(f"ids = {ids!r} is a text; give a list of IDs", field="ids")
        return Call("POST", f"{self._path}/documents/delete-batch", _written, list(ids))

    def sync(
        self,
        lines: Iterable[bytes] | AsyncIterable[bytes],
        max_delete: str | int | None,
        dry_run: bool,
    ) -> Call[SyncResult]:
        """Return the call that streams all documents, as lines."""
        query = {"ids": "true", "dry_run": str(dry_run).lower(), "max_delete": max_delete}
        return Call("POST", f"{self._path}/sync", _synced, lines, query, can_repeat=False)


def event_body(
    type_: str, results: SearchResults, hit: Hit, previous: SearchResults | None
) -> dict[str, Any]:
    """Return the body of an event; QueryError if the service did not record the search."""
    if results.search_id is None:
        raise QueryError(
            "no `search_id` in the results: the service records no analytics, or not this search; "
            "start klsa-serve with --analytics",
            field="search_id",
        )
    return {
        "type": type_,
        "search_id": results.search_id,
        "id": hit.id,
        "position": hit.rank,
        **({"previous": previous.search_id} if previous and previous.search_id else {}),
    }


class Batch:
    """Documents that wait to be sent together."""

    def __init__(self) -> None:
        self.documents: list[str] = []
        self._bytes = 0

    def add(self, record: Record) -> bool:
        """Add a document; return whether the batch is full."""
        written = as_json(record)
        self.documents.append(written)
        self._bytes += len(written)
        return len(self.documents) == _BATCH or self._bytes > _BATCH_BYTES

    def take(self) -> list[str]:
        """Return the documents, and begin another batch."""
        taken, self.documents, self._bytes = self.documents, [], 0
        return taken
