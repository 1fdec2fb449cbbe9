"""Client of a service, with the results and errors of the library.

`Client` blocks, and `AsyncClient` awaits; both have the same methods.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Self, TypeVar, Unpack
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError

from klsa_search import errors
from klsa_search.collection.model import Document, Problems
from klsa_search.core.keywords import IndexSettings
from klsa_search.errors import CollectionError, KlsaError, ServiceFailed, SettingsError
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.options import RankingOptions, SearchOptions
from klsa_search.search.results import SearchResults
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.search.sync import SyncResult
from klsa_search.search.writing import WriteResult
from klsa_search.storage.columns.declared import FieldWarning

__all__ = ["AsyncClient", "AsyncRemoteIndex", "Client", "IndexInfo", "Job", "RemoteIndex"]

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

_POLL: Final = 0.5
"""Seconds between two requests for the state of a job that is waited for."""

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
    ...     job: Job = client.index("reports").update_settings(alpha=0.5)
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
    """Return the parameters of a search as JSON."""
    given = {
        name: value
        if isinstance(value, str | Mapping) or not isinstance(value, Iterable)
        else list(value)
        for name, value in options.items()
        if value is not None
    }
    return {"index": index, "q": query, "k": k, **given}


def results_of(answer: Any) -> SearchResults:
    """Return the results in an answer of a search."""
    for facet in answer.get("facets", {}).values():
        facet["values"] = [(each["value"], each["count"]) for each in facet["values"]]
    return _RESULTS.validate_python(answer)


def explain_call(index: str, query: str, id_: str, options: Mapping[str, Any]) -> Call[Explanation]:
    """Return the call of an explanation."""
    path = f"/indexes/{_part(index)}/explain/{_part(id_)}"
    return Call("GET", path, explanation_of, query={"q": query, **options})


def explanation_of(answer: Any) -> Explanation:
    """Return the explanation in an answer."""
    return _EXPLANATION.validate_python(answer["explanation"])


_RESULTS: Final = TypeAdapter(SearchResults)
_EXPLANATION: Final = TypeAdapter(Explanation)
_SUGGESTIONS: Final = TypeAdapter(tuple[Suggestion, ...])
_INDEXES: Final = TypeAdapter(list[IndexInfo])
_INDEX: Final = TypeAdapter(IndexInfo)
_DOCUMENT: Final = TypeAdapter(Document)
_JOB: Final = TypeAdapter(Job)
_JOBS: Final = TypeAdapter(list[Job])


def _multi_search(queries: Iterable[Mapping[str, Any]]) -> Call[list[SearchResults]]:
    bodies = [search_body(**_divided(query)) for query in queries]
    return Call(
        "POST",
        "/multi-search",
        lambda answer: [results_of(each) for each in answer["results"]],
        {"queries": bodies},
    )


def _divided(query: Mapping[str, Any]) -> dict[str, Any]:
    options = dict(query)
    return {
        "index": options.pop("index", None),
        "query": options.pop("q", ""),
        "k": options.pop("k", 10),
        "options": options,
    }


_INDEXES_CALL: Final = Call(
    "GET", "/indexes", lambda answer: _INDEXES.validate_python(answer["indexes"])
)


def _create(name: str, settings: Mapping[str, Any]) -> Call[IndexInfo]:
    body = {"name": name, "settings": dict(settings)}
    return Call("POST", "/indexes", _INDEX.validate_python, body)


def _delete(name: str) -> Call[str]:
    return Call("DELETE", f"/indexes/{_part(name)}", lambda answer: str(answer["name"]))


def _jobs(index: str | None) -> Call[list[Job]]:
    query = {"index": index}
    return Call("GET", "/jobs", lambda answer: _JOBS.validate_python(answer["jobs"]), query=query)


def _job(id_: int, method: str = "GET") -> Call[Job]:
    return Call(method, f"/jobs/{id_}", _JOB.validate_python)


def _deadline(timeout: float | None) -> float:
    return float("inf") if timeout is None else time.monotonic() + timeout


def _has_ended(job: Job, deadline: float) -> bool:
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


def _as_json(record: Record) -> str:
    if isinstance(record, Document):
        record = {
            "id": record.id,
            "title": record.title,
            "text": record.text,
            "metadata": dict(record.metadata),
        }
    return json.dumps(record, ensure_ascii=False)


class _Calls:
    """The calls about one index."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = f"/indexes/{_part(name)}"

    def info(self) -> Call[IndexInfo]:
        return Call("GET", self._path, _INDEX.validate_python)

    def refit(self) -> Call[Job]:
        return Call("POST", f"{self._path}/refit", _JOB.validate_python, {})

    def update_settings(self, settings: Mapping[str, Any]) -> Call[Job]:
        return Call("PATCH", self._path, _JOB.validate_python, {"settings": dict(settings)})

    def document(self, id_: str) -> Call[Document]:
        path = f"/documents/{_part(id_)}"
        return Call("GET", path, _DOCUMENT.validate_python, query={"index": self.name})

    def suggest(self, typed: str, k: int) -> Call[tuple[Suggestion, ...]]:
        return Call(
            "GET",
            f"{self._path}/suggest",
            lambda answer: _SUGGESTIONS.validate_python(answer["suggestions"]),
            query={"q": typed, "k": k},
        )

    def add(self, batch: Sequence[str]) -> Call[WriteResult]:
        body = f"[{','.join(batch)}]".encode()
        return Call("POST", f"{self._path}/documents", _written, body)

    def patch(self, id_: str, changes: Mapping[str, Any]) -> Call[WriteResult]:
        return Call("PATCH", f"{self._path}/documents/{_part(id_)}", _written, dict(changes))

    def delete(self, ids: Iterable[str]) -> Call[WriteResult]:
        if isinstance(ids, str):  # its letters would be IDs
            raise CollectionError(f"ids = {ids!r} is a text; give a list of IDs", field="ids")
        return Call("POST", f"{self._path}/documents/delete-batch", _written, list(ids))

    def sync(
        self,
        lines: Iterable[bytes] | AsyncIterable[bytes],
        max_delete: str | int | None,
        dry_run: bool,
    ) -> Call[SyncResult]:
        query = {"ids": "true", "dry_run": str(dry_run).lower(), "max_delete": max_delete}
        return Call("POST", f"{self._path}/sync", _synced, lines, query, can_repeat=False)


class _Batch:
    """Documents that wait to be sent together."""

    def __init__(self) -> None:
        self.documents: list[str] = []
        self._bytes = 0

    def add(self, record: Record) -> bool:
        """Add a document; return whether the batch is full."""
        written = _as_json(record)
        self.documents.append(written)
        self._bytes += len(written)
        return len(self.documents) == _BATCH or self._bytes > _BATCH_BYTES

    def take(self) -> list[str]:
        """Return the documents, and begin another batch."""
        taken, self.documents, self._bytes = self.documents, [], 0
        return taken


class Client:
    """A service at `url`, over a pool of connections; usable by several threads.

    key      API key, if the service needs one
    timeout  seconds without a byte before a request fails
    retries  times that a request is repeated after 429, 503 or a failed connection; it waits as
             long as `Retry-After` says
    transport  of httpx, for proxies and tests
    Use it as a context manager, or close it. SettingsError for an invalid address or key. All
    methods raise the errors of the library that the service reports, by their codes, and
    ServiceFailed if it cannot be reached.

    >>> with Client(url) as client:  # such as "http://127.0.0.1:8000"
    ...     shop = client.create_index("shop")
    ...     added = shop.add([{"id": "1", "title": "Red bicycle", "price": 300}])
    ...     results = shop.search("bicycle", filter="price < 500")
    >>> added, [hit.title for hit in results.hits]
    (1, ['Red bicycle'])
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._service = Service(url, key, retries)
        self._http = httpx.Client(
            headers=self._service.headers, timeout=timeout, transport=transport
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Send a call, again if the service is busy, and return what it answers."""
        attempt = 0
        while True:
            answer: Answer
            try:
                answer = self._http.request(**self._service.request(call))
            except httpx.TransportError as error:
                answer = error
            pause = self._service.pause(call, answer, attempt)
            if pause is None:
                return self._service.read(call, answer)
            time.sleep(pause)
            attempt += 1

    def index(self, name: str) -> RemoteIndex:
        """Return an index or alias by its name; nothing is sent."""
        return RemoteIndex(self, name)

    def indexes(self) -> list[IndexInfo]:
        """Return all indexes that the key may see."""
        return self.send(_INDEXES_CALL)

    def create_index(self, name: str, **settings: Unpack[IndexSettings]) -> RemoteIndex:
        """Create an empty index; IndexExists, QueryError for an invalid name or setting."""
        self.send(_create(name, settings))
        return self.index(name)

    def delete_index(self, name: str) -> None:
        """Delete an index with all its documents; IndexNotFound."""
        self.send(_delete(name))

    def multi_search(self, queries: Iterable[Mapping[str, Any]]) -> list[SearchResults]:
        """Run several searches, of any indexes, in one request.

        queries  parameters of each: `index`, `q`, `k` and those of `Index.search`
        """
        return self.send(_multi_search(queries))

    def jobs(self, index: str | None = None) -> list[Job]:
        """Return the jobs of all indexes, or of one, newest first."""
        return self.send(_jobs(index))

    def job(self, id: int) -> Job:  # noqa: A002 - as in `Job`
        """Return a job; JobNotFound."""
        return self.send(_job(id))

    def cancel_job(self, id: int) -> Job:  # noqa: A002 - as in `Job`
        """Cancel a job, and return it; a running one ends soon after. JobNotFound."""
        return self.send(_job(id, "DELETE"))

    def wait(self, job: Job, timeout: float | None = None) -> Job:
        """Return a job when it has ended: look at its `state`.

        timeout  seconds after which TimeoutError is raised; None: never
        """
        deadline = _deadline(timeout)
        while not _has_ended(job := self.job(job.id), deadline):
            time.sleep(_POLL)
        return job


class RemoteIndex:
    """An index of a service; methods, results and errors as those of `klsa_search.Index`.

    >>> with Client(url) as client:
    ...     reports: RemoteIndex = client.index("reports")
    ...     reports.search("leaking coolant", k=1)[0].id, reports.document("leak").title
    ('leak', 'Leaks')
    """

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client
        self._calls = _Calls(name)

    def info(self) -> IndexInfo:
        """Return its number of documents and state."""
        return self._client.send(self._calls.info())

    def refit(self) -> Job:
        """Rebuild the index from its documents in the background: see `Client.wait`.

        If a refit of it waits or runs, its job is returned. WritingRefused.
        """
        return self._client.send(self._calls.refit())

    def update_settings(self, **settings: Unpack[IndexSettings]) -> Job:
        """Change settings by a refit; QueryError for an invalid one, IndexBusy during another."""
        return self._client.send(self._calls.update_settings(settings))

    def search(self, query: str, k: int = 10, **options: Unpack[SearchOptions]) -> SearchResults:
        """Return the best documents: see `Index.search`; without `mask`."""
        return self._client.send(search_call(self.name, query, k, options))

    def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - as in `Index`
        **options: Unpack[RankingOptions],
    ) -> Explanation:
        """Return the parts of the score of a document: see `Index.explain`."""
        return self._client.send(explain_call(self.name, query, id, options))

    def suggest(self, typed: str, k: int = 10) -> tuple[Suggestion, ...]:
        """Return completions of typed text: see `Index.suggest`."""
        return self._client.send(self._calls.suggest(typed, k))

    def document(self, id: str) -> Document:  # noqa: A002 - as in `Index`
        """Return a document; DocumentNotFound."""
        return self._client.send(self._calls.document(id))

    def add(self, documents: Iterable[Record]) -> int:
        """Add or replace documents, in batches of 1,000; return how many.

        Each batch is stored completely or not at all, and is durable when it was sent; sending
        documents again is safe. BadDocument.
        """
        batch, count = _Batch(), 0
        for record in documents:
            if batch.add(record):
                count += self._client.send(self._calls.add(batch.take())).written
        if batch.documents:
            count += self._client.send(self._calls.add(batch.take())).written
        return count

    def patch(self, id: str, changes: Mapping[str, Any]) -> WriteResult:  # noqa: A002
        """Merge changes into a document, None removes a field: see `Index.patch`."""
        return self._client.send(self._calls.patch(id, changes))

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by ID; return how many there were."""
        return self._client.send(self._calls.delete(ids)).deleted

    def sync(
        self,
        documents: Iterable[Record],
        *,
        max_delete: str | int | None = None,
        dry_run: bool = False,
    ) -> SyncResult:
        """Make the index contain exactly these documents, which are streamed: see `Index.sync`."""
        lines = (_as_json(record).encode() + b"\n" for record in documents)
        return self._client.send(self._calls.sync(lines, max_delete, dry_run))


class AsyncClient:
    """As `Client`, for coroutines of one event loop.

    >>> import asyncio
    >>> async def titles(query):
    ...     async with AsyncClient(url) as client:
    ...         index: AsyncRemoteIndex = client.index("reports")
    ...         return [hit.title for hit in (await index.search(query, k=1)).hits]
    >>> asyncio.run(titles("leaking coolant"))
    ['Leaks']
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._service = Service(url, key, retries)
        self._http = httpx.AsyncClient(
            headers=self._service.headers, timeout=timeout, transport=transport
        )

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a call, again if the service is busy, and return what it answers."""
        attempt = 0
        while True:
            answer: Answer
            try:
                answer = await self._http.request(**self._service.request(call))
            except httpx.TransportError as error:
                answer = error
            pause = self._service.pause(call, answer, attempt)
            if pause is None:
                return self._service.read(call, answer)
            await asyncio.sleep(pause)
            attempt += 1

    def index(self, name: str) -> AsyncRemoteIndex:
        """Return an index or alias by its name; nothing is sent."""
        return AsyncRemoteIndex(self, name)

    async def indexes(self) -> list[IndexInfo]:
        """Return all indexes that the key may see."""
        return await self.send(_INDEXES_CALL)

    async def create_index(self, name: str, **settings: Unpack[IndexSettings]) -> AsyncRemoteIndex:
        """Create an empty index; IndexExists, QueryError for an invalid name or setting."""
        await self.send(_create(name, settings))
        return self.index(name)

    async def delete_index(self, name: str) -> None:
        """Delete an index with all its documents; IndexNotFound."""
        await self.send(_delete(name))

    async def multi_search(self, queries: Iterable[Mapping[str, Any]]) -> list[SearchResults]:
        """Run several searches, of any indexes, in one request: see `Client.multi_search`."""
        return await self.send(_multi_search(queries))

    async def jobs(self, index: str | None = None) -> list[Job]:
        """Return the jobs of all indexes, or of one, newest first."""
        return await self.send(_jobs(index))

    async def job(self, id: int) -> Job:  # noqa: A002 - as in `Job`
        """Return a job; JobNotFound."""
        return await self.send(_job(id))

    async def cancel_job(self, id: int) -> Job:  # noqa: A002 - as in `Job`
        """Cancel a job, and return it; a running one ends soon after. JobNotFound."""
        return await self.send(_job(id, "DELETE"))

    async def wait(self, job: Job, timeout: float | None = None) -> Job:
        """Return a job when it has ended: see `Client.wait`."""
        deadline = _deadline(timeout)
        while not _has_ended(job := await self.job(job.id), deadline):
            await asyncio.sleep(_POLL)
        return job


class AsyncRemoteIndex:
    """As `RemoteIndex`, for coroutines; documents may come from an asynchronous iterable."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name = name
        self._client = client
        self._calls = _Calls(name)

    async def info(self) -> IndexInfo:
        """Return its number of documents and state."""
        return await self._client.send(self._calls.info())

    async def refit(self) -> Job:
        """Rebuild the index from its documents in the background: see `RemoteIndex.refit`."""
        return await self._client.send(self._calls.refit())

    async def update_settings(self, **settings: Unpack[IndexSettings]) -> Job:
        """Change settings by a refit: see `RemoteIndex.update_settings`."""
        return await self._client.send(self._calls.update_settings(settings))

    async def search(
        self, query: str, k: int = 10, **options: Unpack[SearchOptions]
    ) -> SearchResults:
        """Return the best documents: see `Index.search`; without `mask`."""
        return await self._client.send(search_call(self.name, query, k, options))

    async def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - as in `Index`
        **options: Unpack[RankingOptions],
    ) -> Explanation:
        """Return the parts of the score of a document: see `Index.explain`."""
        return await self._client.send(explain_call(self.name, query, id, options))

    async def suggest(self, typed: str, k: int = 10) -> tuple[Suggestion, ...]:
        """Return completions of typed text: see `Index.suggest`."""
        return await self._client.send(self._calls.suggest(typed, k))

    async def document(self, id: str) -> Document:  # noqa: A002 - as in `Index`
        """Return a document; DocumentNotFound."""
        return await self._client.send(self._calls.document(id))

    async def add(self, documents: Iterable[Record] | AsyncIterable[Record]) -> int:
        """Add or replace documents, in batches of 1,000: see `RemoteIndex.add`."""
        batch, count = _Batch(), 0
        async for record in _asynchronous(documents):
            if batch.add(record):
                count += (await self._client.send(self._calls.add(batch.take()))).written
        if batch.documents:
            count += (await self._client.send(self._calls.add(batch.take()))).written
        return count

    async def patch(self, id: str, changes: Mapping[str, Any]) -> WriteResult:  # noqa: A002
        """Merge changes into a document, None removes a field: see `Index.patch`."""
        return await self._client.send(self._calls.patch(id, changes))

    async def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by ID; return how many there were."""
        return (await self._client.send(self._calls.delete(ids))).deleted

    async def sync(
        self,
        documents: Iterable[Record] | AsyncIterable[Record],
        *,
        max_delete: str | int | None = None,
        dry_run: bool = False,
    ) -> SyncResult:
        """Make the index contain exactly these documents, which are streamed: see `Index.sync`."""

        async def lines() -> AsyncIterator[bytes]:
            async for record in _asynchronous(documents):
                yield _as_json(record).encode() + b"\n"

        return await self._client.send(self._calls.sync(lines(), max_delete, dry_run))


async def _asynchronous(records: Iterable[Record] | AsyncIterable[Record]) -> AsyncIterator[Record]:
    if isinstance(records, AsyncIterable):
        async for record in records:
            yield record
    else:
        for record in records:
            yield record
