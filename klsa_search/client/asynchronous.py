"""The asynchronous client.

`python -m tools.blocking_client` makes the blocking client of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx

from klsa_search.client.calls import IndexCalls, ServiceCalls
from klsa_search.client.protocol import (
    PIECE,
    RETRIES,
    TIMEOUT,
    Answer,
    Batch,
    Call,
    Record,
    Service,
    as_json,
    checked_file,
    deadline_of,
    documented_as,
    has_ended,
    stream_records,
)
from klsa_search.client.results import FileResult
from klsa_search.collection.reading_options import FileReading
from klsa_search.core.config import IndexSettings
from klsa_search.core.service_reports import Job
from klsa_search.search.sync import SyncResult

T = TypeVar("T")
P = ParamSpec("P")


def _method(
    make: Callable[Concatenate[Any, P], Call[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return the method that sends a call and returns what it answers."""

    @documented_as(make)
    async def method(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        answer: T = await self.send(make(self._calls, *args, **options))
        return answer

    return method


def _stream(
    make: Callable[Concatenate[Any, P], Call[bytes]],
) -> Callable[Concatenate[Any, P], AsyncIterator[bytes]]:
    """Return the method that sends a call and yields its answer as it arrives."""

    @documented_as(make)
    def method(self: Any, /, *args: P.args, **options: P.kwargs) -> AsyncIterator[bytes]:
        pieces: AsyncIterator[bytes] = self.stream(make(self._calls, *args, **options))
        return pieces

    return method


class AsyncClient:
    """A service at `url`, over a pool of connections; for the coroutines of one event loop.

    key      API key, if the service needs one
    timeout  seconds without a byte before a request fails; the answer to a file or a sync may take
             any time
    retries  times that a request is repeated after 429, 503 or a failed connection; it waits as
             long as `Retry-After` says. What would give another result if it was processed twice,
             such as creating an index, is repeated only if it was certainly not processed
    transport  of httpx, for proxies and tests
    Use it as a context manager, or close it. SettingsError for an invalid address or key. All
    methods raise the errors of the library that the service reports, by their codes, and
    ServiceFailed if it cannot be reached.

    >>> import asyncio
    >>> async def open_shop():
    ...     async with AsyncClient(url) as client:  # such as "http://127.0.0.1:8000"
    ...         shop = await client.create_index("shop")
    ...         await shop.add([{"id": "1", "title": "Red bicycle", "price": 300}])
    ...         return await shop.search("bicycle", filter="price < 500")
    >>> [hit.title for hit in asyncio.run(open_shop())]
    ['Red bicycle']
    """

    _calls = ServiceCalls()

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._service = Service(url, key, retries, timeout)
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
            except httpx.RequestError as error:
                answer = error
            pause = self._service.pause(call, answer, attempt)
            if pause is None:
                return self._service.read(call, answer)
            await asyncio.sleep(pause)
            attempt += 1

    async def stream(self, call: Call[bytes]) -> AsyncIterator[bytes]:
        """Send a call once, when the first piece is read, and yield its answer as it arrives."""
        try:
            async with self._http.stream(**self._service.request(call)) as response:
                if not response.is_success:
                    await response.aread()
                async for piece in self._service.checked(response).aiter_bytes():
                    yield piece
        except httpx.RequestError as error:
            raise self._service.failure(error) from None

    request = _method(ServiceCalls.request)
    indexes = _method(ServiceCalls.indexes)
    delete_index = _method(ServiceCalls.delete_index)
    tenant_token = _method(ServiceCalls.tenant_token)
    multi_search = _method(ServiceCalls.multi_search)
    federated_search = _method(ServiceCalls.federated_search)
    jobs = _method(ServiceCalls.jobs)
    job = _method(ServiceCalls.job)
    cancel_job = _method(ServiceCalls.cancel_job)

    def index(self, name: str) -> AsyncRemoteIndex:
        """Return an index or alias by its name; nothing is sent."""
        return AsyncRemoteIndex(self, name)

    async def create_index(self, name: str, **settings: Unpack[IndexSettings]) -> AsyncRemoteIndex:
        """Create an empty index; IndexExists, QueryError for an invalid name or setting."""
        await self.send(self._calls.create_index(name, settings))
        return self.index(name)

    async def wait(self, job: Job, timeout: float | None = None) -> Job:
        """Return a job when it has ended: look at its `state`.

        timeout  seconds after which TimeoutError is raised; None: never
        """
        deadline = deadline_of(timeout)
        while not has_ended(job := await self.send(self._calls.wait(job, deadline)), deadline):
            pass
        return job


class AsyncRemoteIndex:
    """An index of a service; methods, results and errors as those of `klsa_search.Index`.

    >>> import asyncio
    >>> async def search(query):
    ...     async with AsyncClient(url) as client:
    ...         reports: AsyncRemoteIndex = client.index("reports")
    ...         return await reports.search(query, k=1)
    >>> asyncio.run(search("leaking coolant"))[0].id
    'leak'
    """

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name = name
        self.send, self.stream = client.send, client.stream
        self._calls = IndexCalls(name)

    info = _method(IndexCalls.info)
    refit = _method(IndexCalls.refit)
    update_settings = _method(IndexCalls.update_settings)
    search = _method(IndexCalls.search)
    export = _stream(IndexCalls.export)
    explain = _method(IndexCalls.explain)
    suggest = _method(IndexCalls.suggest)
    facet_search = _method(IndexCalls.facet_search)
    rules = _method(IndexCalls.rules)
    set_rules = _method(IndexCalls.set_rules)
    put_rule = _method(IndexCalls.put_rule)
    delete_rule = _method(IndexCalls.delete_rule)
    document = _method(IndexCalls.document)
    excerpt = _method(IndexCalls.excerpt)
    event = _method(IndexCalls.event)
    analytics = _method(IndexCalls.analytics)
    analytics_csv = _method(IndexCalls.analytics_csv)
    synonym_proposals = _method(IndexCalls.synonym_proposals)
    synonyms = _method(IndexCalls.synonyms)
    set_synonyms = _method(IndexCalls.set_synonyms)
    add_synonyms = _method(IndexCalls.add_synonyms)
    patch = _method(IndexCalls.patch)
    patch_many = _method(IndexCalls.patch_many)
    delete = _method(IndexCalls.delete)

    async def add(self, documents: Iterable[Record] | AsyncIterable[Record] | Record) -> int:
        """Add or replace documents, or one, in batches of 1,000; return how many.

        Each batch is stored completely or not at all, and is durable when it was sent; sending
        documents again is safe. BadDocument.
        """
        batch, count = Batch(), 0
        async for record in stream_records(documents):
            if batch.add(record):
                count += await self.send(self._calls.add(batch.take()))
        if batch.documents:
            count += await self.send(self._calls.add(batch.take()))
        return count

    async def sync(
        self,
        documents: Iterable[Record] | AsyncIterable[Record],
        *,
        max_delete: str | int | None = None,
        dry_run: bool = False,
    ) -> SyncResult:
        """Make the index contain exactly these documents, which are streamed: see `Index.sync`."""

        async def lines() -> AsyncIterator[bytes]:
            async for record in stream_records(documents):
                yield as_json(record).encode() + b"\n"

        return await self.send(self._calls.sync(lines(), max_delete, dry_run))

    async def add_file(self, path: str | Path, **reading: Unpack[FileReading]) -> FileResult:
        """Add the documents of a file, in any format that `Index.add` reads; see `FileResult`.

        reading  as for `Index.add`: `columns`, `format`, `encoding`, `sections`
        Records that cannot be read are skipped, and rows without IDs named after the file. What is
        stored when it fails stays, and the file can be sent again. CollectionError, OSError.
        """
        file_path = checked_file(path)

        async def pieces() -> AsyncIterator[bytes]:
            with file_path.open("rb") as file:
                while piece := await asyncio.to_thread(file.read, PIECE):
                    yield piece

        return await self.send(self._calls.add_file(file_path.name, pieces(), reading))
