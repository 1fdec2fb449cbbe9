"""The asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import Any, Literal, Self, TypeVar, Unpack

import httpx

from klsa_search.client.index_calls import (
    Batch,
    IndexCalls,
    Record,
    Synonyms,
    as_json,
    event_body,
    stream_records,
)
from klsa_search.client.protocol import RETRIES, TIMEOUT, Answer, Call, Service
from klsa_search.client.results import FederatedResults, IndexInfo, Job
from klsa_search.client.search_calls import (
    explain_call,
    federated_search_call,
    multi_search_call,
    search_call,
)
from klsa_search.client.service_calls import (
    INDEXES_CALL,
    any_call,
    create_call,
    deadline_of,
    delete_call,
    has_ended,
    job_call,
    jobs_call,
    tenant_token_call,
    wait_call,
)
from klsa_search.collection.model import Document
from klsa_search.core.analytics import Analytics, ListName, SynonymProposal
from klsa_search.core.keywords import IndexSettings
from klsa_search.search.explain.explanation import Explanation
from klsa_search.search.pages.excerpts import Excerpt
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.options import Query, RankingOptions, SearchOptions, as_query
from klsa_search.search.pages.results import Hit, SearchResults
from klsa_search.search.ranking.vector_ranking import VectorLike
from klsa_search.search.suggest.suggester import Suggestion
from klsa_search.search.sync import SyncResult
from klsa_search.search.writing import WriteResult

Filter = str | Mapping[str, Any]

T = TypeVar("T")


class AsyncClient:
    """A service at `url`, over a pool of connections; for the coroutines of one event loop.

    key      API key, if the service needs one
    timeout  seconds without a byte before a request fails
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
            except httpx.RequestError as error:
                answer = error
            pause = self._service.pause(call, answer, attempt)
            if pause is None:
                return self._service.read(call, answer)
            await asyncio.sleep(pause)
            attempt += 1

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotent: bool | None = None,
    ) -> Any:
        """Send any request of the HTTP API, and return the JSON of its answer.

        method      such as "GET"
        path        such as "/indexes"
        query       parameters of the URL, without those that are None
        body        JSON
        idempotent  whether it gives the same result if it is processed twice, so that it may be
                    sent again if its answer was lost; by default for GET and PUT
        """
        return await self.send(any_call(method, path, query, body, idempotent))

    def index(self, name: str) -> AsyncRemoteIndex:
        """Return an index or alias by its name; nothing is sent."""
        return AsyncRemoteIndex(self, name)

    async def indexes(self) -> list[IndexInfo]:
        """Return all indexes that the key may see."""
        return await self.send(INDEXES_CALL)

    async def create_index(self, name: str, **settings: Unpack[IndexSettings]) -> AsyncRemoteIndex:
        """Create an empty index; IndexExists, QueryError for an invalid name or setting."""
        await self.send(create_call(name, settings))
        return self.index(name)

    async def delete_index(self, name: str) -> None:
        """Delete an index with all its documents; IndexNotFound."""
        await self.send(delete_call(name))

    async def tenant_token(
        self, filters: Mapping[str, str | Mapping[str, Any]], *, expires_in: int = 3600
    ) -> str:
        """Return a token that finds only the documents of the filters, for the users of one tenant.

        filters     filters by index, as text or JSON; the token is for these indexes only
        expires_in  lifetime in seconds, at most a day
        Create it on your server and send it to their browser. QueryError for an invalid filter,
        IndexNotFound, InsufficientScope.
        """
        return await self.send(tenant_token_call(filters, expires_in))

    async def multi_search(self, queries: Iterable[Mapping[str, Any]]) -> list[SearchResults]:
        """Run several searches, of any indexes, in one request.

        queries  parameters of each: `index`, `q`, `k` and those of `Index.search`
        """
        return await self.send(multi_search_call(queries))

    async def federated_search(
        self, queries: Iterable[Mapping[str, Any]], limit: int = 20, offset: int = 0
    ) -> FederatedResults:
        """Run several searches in one request, and merge their hits by rank.

        queries  parameters of each: `index`, `q`, `weight`, and those of `Index.search` without `k`
        A search with weight 2 contributes about two hits for each hit of one with weight 1.
        """
        return await self.send(federated_search_call(queries, limit, offset))

    async def jobs(self, index: str | None = None) -> list[Job]:
        """Return the jobs of all indexes, or of one, newest first."""
        return await self.send(jobs_call(index))

    async def job(self, id: int) -> Job:  # noqa: A002 - as in `Job`
        """Return a job; JobNotFound."""
        return await self.send(job_call(id))

    async def cancel_job(self, id: int) -> Job:  # noqa: A002 - as in `Job`
        """Cancel a job, and return it; a running one ends soon after. JobNotFound."""
        return await self.send(job_call(id, "DELETE"))

    async def wait(self, job: Job, timeout: float | None = None) -> Job:
        """Return a job when it has ended: look at its `state`.

        timeout  seconds after which TimeoutError is raised; None: never
        """
        deadline = deadline_of(timeout)
        while not has_ended(job := await self.send(wait_call(job.id, deadline)), deadline):
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
        self._client = client
        self._calls = IndexCalls(name)

    async def info(self) -> IndexInfo:
        """Return its number of documents and state."""
        return await self._client.send(self._calls.info())

    async def refit(self) -> Job:
        """Rebuild the index from its documents in the background: see `AsyncClient.wait`.

        If a refit of it waits or runs, its job is returned. WritingRefused.
        """
        return await self._client.send(self._calls.refit())

    async def update_settings(self, **settings: Unpack[IndexSettings]) -> Job | None:
        """Change settings; return the job of the refit if one of them needs it: see `wait`.

        Those that only queries use are in effect on return. QueryError for an invalid setting;
        IndexBusy if a refit with other settings waits or runs.
        """
        return await self._client.send(self._calls.update_settings(settings))

    async def search(
        self, query: str | Query, k: int = 10, **options: Unpack[SearchOptions]
    ) -> SearchResults:
        """Return the best documents: see `Index.search`; without `mask` and `count_tokens`."""
        return await self._client.send(search_call(self.name, as_query(query, k, options)))

    async def explain(
        self,
        query: str,
        id: str,  # noqa: A002 - as in `Index`
        *,
        vector: VectorLike | None = None,
        **options: Unpack[RankingOptions],
    ) -> Explanation:
        """Return the parts of the score of a document: see `Index.explain`."""
        return await self._client.send(
            explain_call(self.name, query, id, {**options, "vector": vector})
        )

    async def suggest(self, typed: str, k: int = 10) -> tuple[Suggestion, ...]:
        """Return completions of typed text: see `Index.suggest`."""
        return await self._client.send(self._calls.suggest(typed, k))

    async def facet_search(
        self,
        field: str,
        typed: str = "",
        k: int = 10,
        *,
        query: str = "",
        filter: Filter | None = None,  # noqa: A002 - as in `search`
    ) -> Facet:
        """Return the values of a metadata field that contain the typed text, most frequent first.

        query, filter  count in the matches of this search only; by default in all documents
        QueryError for an unknown field.
        """
        options = {"query": query, "filter": filter}
        return await self._client.send(self._calls.facet_search(field, typed, k, options))

    async def rules(self) -> list[dict[str, Any]]:
        """Return the rules of searches, in order: see `Index.set_rules`."""
        return await self._client.send(self._calls.rules())

    async def set_rules(self, rules: Iterable[Mapping[str, Any]]) -> list[str]:
        """Replace the rules: see `Index.set_rules`; return warnings. QueryError names a rule."""
        return await self._client.send(self._calls.set_rules(rules))

    async def put_rule(self, rule: Mapping[str, Any]) -> list[str]:
        """Replace the rule of the same ID, or add it as the last; return warnings."""
        return await self._client.send(self._calls.put_rule(rule))

    async def delete_rule(self, id: str) -> None:  # noqa: A002 - as in `Index`
        """Delete a rule; RuleNotFound."""
        await self._client.send(self._calls.delete_rule(id))

    async def document(self, id: str) -> Document:  # noqa: A002 - as in `Index`
        """Return a document; DocumentNotFound."""
        return await self._client.send(self._calls.document(id))

    async def excerpt(
        self,
        id: str,  # noqa: A002 - as in `Index`
        *,
        span: tuple[int, int] | None = None,
        page: int | None = None,
    ) -> Excerpt:
        """Return a passage, or a part of a document: see `Index.excerpt`."""
        return await self._client.send(self._calls.excerpt(id, span, page))

    async def event(
        self,
        type: Literal["click", "conversion"],  # noqa: A002 - as in the HTTP API
        results: SearchResults,
        hit: Hit,
        previous: SearchResults | None = None,
    ) -> None:
        """Record that a visitor used a hit of these results, if the service records analytics.

        previous  results of the search that the visitor replaced by this one
        QueryError if the results have no `search_id`.
        """
        await self._client.send(self._calls.event(event_body(type, results, hit, previous)))

    async def analytics(self, days: int = 30, k: int = 20) -> Analytics:
        """Return figures by day, frequent and failing queries, and clicked documents.

        k  length of each list
        AnalyticsOff; InsufficientScope without the scope `write`.
        """
        return await self._client.send(self._calls.analytics(days, k))

    async def analytics_csv(
        self,
        list: ListName = "queries",  # noqa: A002 - as in the HTTP API
        days: int = 30,
        k: int = 1_000,
    ) -> str:
        """Return a list of the analytics as CSV, for a spreadsheet; errors as `analytics`."""
        return await self._client.send(self._calls.analytics_csv(list, days, k))

    async def synonym_proposals(self, days: int = 30, k: int = 10) -> list[SynonymProposal]:
        """Return synonyms for the k most searched words that no or few documents contain.

        Nothing is set: see `set_synonyms`. Errors as `analytics`.
        """
        return await self._client.send(self._calls.synonym_proposals(days, k))

    async def synonyms(self) -> dict[str, list[str]]:
        """Return the synonyms of the index by word."""
        return await self._client.send(self._calls.synonyms())

    async def set_synonyms(self, synonyms: Synonyms) -> int:
        """Replace the synonyms: see `Index.set_synonyms`; return the number of words with some."""
        return await self._client.send(self._calls.set_synonyms(synonyms))

    async def add_synonyms(self, synonyms: Synonyms) -> int:
        """Add synonyms: see `Index.add_synonyms`; return the number of words with some."""
        return await self._client.send(self._calls.add_synonyms(synonyms))

    async def add(self, documents: Iterable[Record] | AsyncIterable[Record]) -> int:
        """Add or replace documents, in batches of 1,000; return how many.

        Each batch is stored completely or not at all, and is durable when it was sent; sending
        documents again is safe. BadDocument.
        """
        batch, count = Batch(), 0
        async for record in stream_records(documents):
            if batch.add(record):
                count += await self._add(batch)
        return count + await self._add(batch)

    async def _add(self, batch: Batch) -> int:
        if not batch.documents:
            return 0
        result = await self._client.send(self._calls.add(batch.take()))
        return result.written

    async def patch(self, id: str, changes: Mapping[str, Any]) -> WriteResult:  # noqa: A002
        """Merge changes into a document, None removes a field: see `Index.patch`."""
        return await self._client.send(self._calls.patch(id, changes))

    async def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by ID; return how many there were."""
        result = await self._client.send(self._calls.delete(ids))
        return result.deleted

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

        return await self._client.send(self._calls.sync(lines(), max_delete, dry_run))
