"""The index service: run the calls of routes on indexes, with access control and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar, cast

from fastapi import Response
from starlette.datastructures import State

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.config import Settings
from klsa_search.core.service_reports import Job, Setting
from klsa_search.errors import (
    AnalyticsOff,
    IndexExists,
    IndexNotFound,
    InsufficientScope,
    QueryError,
    SettingsError,
    WritingRefused,
)
from klsa_search.indexing.build import build
from klsa_search.search.configuration import change_settings, needing_refit
from klsa_search.search.filters.masks import FilterLike
from klsa_search.search.index import Index
from klsa_search.search.rankers import needs_eigenvectors
from klsa_search.service.admission import Writes
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.catalog import Catalog
from klsa_search.service.catalog_entries import Status
from klsa_search.service.job_ledger import job_not_found
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import Scope
from klsa_search.service.metrics import Metrics
from klsa_search.service.middleware.auth import Access
from klsa_search.service.resources import Resources
from klsa_search.service.schemas.base import Answer, IndexAnswer, elapsed, encoded
from klsa_search.service.schemas.errors import is_fault
from klsa_search.service.visible_indexes import VisibleIndexes, cost_for, restricted_by_token
from klsa_search.service.write_failures import WriteFailures
from klsa_search.storage.maintenance import delete_index
from klsa_search.storage.names import index_path, is_built

A = TypeVar("A", bound=Answer)
T = TypeVar("T")

MAX_LIGHT_COST: Final = 15.0
"""Estimated milliseconds above which a request runs in the threads for expensive requests."""


class IndexService:
    """Runs calls of one request on indexes in threads, and encodes their answers as JSON there.

    shared  state of the application: its resources, metrics and failures of writes
    access  what the request may do
    state   of the request; it gets the name of the used index
    """

    def __init__(self, shared: State, access: Access, state: dict[str, Any]) -> None:
        resources: Resources = shared.resources
        self.access = access
        self.catalog = resources.catalog
        self.jobs = resources.jobs
        self.metrics: Metrics = shared.metrics
        self.recorder = resources.recorder
        self.replications = resources.replications
        self.visible = VisibleIndexes(resources.catalog, access)
        self.admission = resources.admission
        self.heavy = resources.heavy
        self._writes = resources.writes
        self.write_failures: WriteFailures = shared.write_failures
        self.state = state

    async def current_statuses(self, also: str | None = None) -> list[Status]:
        """Return the states of the visible indexes with all acknowledged changes.

        also  see `VisibleIndexes.statuses`
        """
        await asyncio.to_thread(self.catalog.catch_up_all)
        return self.visible.statuses(also)

    def is_searchable(self, statuses: Sequence[Status]) -> bool:
        """Return whether an index is served, or there is none yet, so that one can be created.

        A follower without an index has not copied a backup yet.
        """
        if not statuses:
            return not any(replication.work == "follow" for replication in self.replications)
        return any(status.index is not None for status in statuses)

    def require(self, *scopes: Scope) -> None:
        """Raise InsufficientScope unless the request has one of the scopes.

        WritingRefused if the service has no keys, or is read-only so that a key would not help.
        """
        if self.access.scopes.isdisjoint(scopes):
            if self.access.key is None and self._writes is None:
                raise _read_only()
            self.access.require(scopes[0])

    async def exposition(self, accept: str) -> Response:
        """Return the metrics, with those of the indexes that the request may see."""

        def work() -> tuple[bytes, str]:
            self.write_failures.failing()  # looks at the index directory again
            return self.metrics.exposition(self.visible.statuses(), accept)

        content, kind = await asyncio.to_thread(work)  # no thread of a pool may be free
        return Response(content, headers={"Content-Type": kind})

    async def read(
        self,
        name: str | None,
        compute: Callable[[Index], Answer | bytes],
        *,
        heavy: bool = False,
        cost: Callable[[Index], float] | None = None,
        quick: Callable[[Index], bool] | None = None,
        scope: Scope = "search",
    ) -> Response:
        """Return the JSON of what `compute` returns; see `Catalog.use` and `Admission.run`.

        heavy  whether to use the threads for expensive requests, which delay no others
        cost   estimates the milliseconds; the request is heavy above `MAX_LIGHT_COST`
        quick  returns whether it may run in the event loop
        scope  that the request needs

        `compute` gets an index with the documents that the request may see: for a tenant token,
        those of its filter. QueryError if the answer would be too large, InsufficientScope.
        """
        name, token_filter = self.visible.resolve_with_filter(scope, name)
        if token_filter is not None:
            quick = None

        def as_json(index: Index) -> bytes:
            self.state["index"] = index.name
            if token_filter is not None:
                index = restricted_by_token(index, token_filter)
            answer = compute(index)
            return answer if isinstance(answer, bytes) else encoded(answer)

        def work() -> bytes:
            with self.catalog.use(name) as index:
                return as_json(index)

        def inline() -> bytes | None:
            with self.catalog.use_if_current(name) as index:
                return as_json(index) if index is not None and quick and quick(index) else None

        answer = await self.admission.run_inline(inline) if quick is not None else None
        if answer is None:
            if cost is not None:
                if not self.catalog.is_current(name):
                    await self.admission.run(partial(self.catalog.catch_up, name))
                with self.catalog.use_if_current(name) as index:
                    heavy = cost_for(index, token_filter, cost) > MAX_LIGHT_COST
            pool = self.heavy if heavy else self.admission
            answer = await pool.run(work)
        return Response(answer, media_type="application/json")

    async def answer(
        self,
        name: str | None,
        compute: Callable[[Index], A],
        *,
        heavy: bool = False,
        cost: Callable[[Index], float] | None = None,
    ) -> A:
        """Return the response of `read` as what it has the JSON of, which the route documents."""

        def with_facts(index: Index) -> Answer:
            begin = perf_counter()
            answer = compute(index)
            if not isinstance(answer, IndexAnswer):
                return answer
            facts = {"index": index.name, "generation": index.generation}
            return answer.model_copy(update={**facts, "time_ms": elapsed(begin)})

        return cast(A, await self.read(name, with_facts, heavy=heavy, cost=cost))

    async def check_filters(self, filters: Mapping[str, FilterLike]) -> None:
        """Raise QueryError unless each filter can be applied to its index, or alias.

        IndexNotFound, InsufficientScope.
        """
        for name, filter_ in filters.items():
            target = self.visible.resolve("search", name) or name
            if not self.access.sees(name):
                raise InsufficientScope(
                    f"API key {self.access.key!r} is not valid for the alias `{name}`; name its "
                    f"index, `{target}`",
                    scope="search",
                    field="filters",
                )

            def work(target: str = target, condition: FilterLike = filter_) -> None:
                with self.catalog.use(target) as index:
                    index.restricted(condition)

            try:
                await self.admission.run(work)
            except QueryError as error:
                raise QueryError(f"index `{name}`: {error.message}", field="filters") from None

    @property
    def writes(self) -> Writes:
        """The queue of writes; WritingRefused if the service is read-only, InsufficientScope."""
        if self._writes is None:
            raise _read_only()
        self.access.require("write")
        return self._writes

    @property
    def may_write(self) -> bool:
        """Return whether the request may write to some index."""
        return self._writes is not None and "write" in self.access.scopes

    async def look_up(self, name: str, compute: Callable[[Index], T], *, long: bool = False) -> T:
        """Return what `compute` returns for an index that the request may write to, unchanged.

        long  whether it reads a body of any size
        IndexNotFound, InsufficientScope; see `Catalog.use`.
        """
        target = self.visible.resolve("write", name) or name

        def work() -> T:
            with self.catalog.use(target) as index:
                self.state["index"] = index.name
                return compute(index)

        if not long:
            return await self.admission.run(work)
        return await self.writes.read(work)

    async def write(self, name: str, change: Callable[[Index], T]) -> T:
        """Run `change`, and return its result: `Catalog.writing`."""
        target = self.visible.resolve("write", name) or name

        def work() -> T:
            with self.catalog.writing(target) as index:
                self.state["index"] = index.name
                return change(index)

        return await self._run_write(target, work)

    async def configure(
        self, name: str, change: Callable[[Index], None], answer: Callable[[Index], bytes]
    ) -> Response:
        """Change rules or synonyms, and return an answer in JSON; QueryError, else see `write`."""

        def work(index: Index) -> bytes:
            with _settings_from_client():
                change(index)
            return answer(index)

        with self.writes.slot():
            return Response(await self.write(name, work), media_type="application/json")

    async def _run_write(self, index: str, work: Callable[[], T]) -> T:
        """Run a write, and note whether it failed; `index` is blank for the index directory."""
        writes = self.writes
        try:
            result = await writes.run(work)
        except Exception as failure:
            if is_fault(failure):
                self.write_failures.failed(index, failure)
            raise
        self.write_failures.succeeded(index)
        return result

    async def create_index(self, name: str, settings: Mapping[str, Setting]) -> None:
        """Create an empty index and serve it.

        IndexExists; QueryError for an invalid name or setting, or settings that make an index
        read-only; WritingRefused, InsufficientScope.
        """
        self.access.require("write", name)
        self.state["index"] = name

        def work() -> None:
            with _settings_from_client():
                chosen = Settings.checked(_without_code(settings))
                if field := needs_eigenvectors(chosen):
                    value = getattr(chosen, field)
                    reason = f"{field} = {value}: no document can be added to an index with it"
                    raise SettingsError(f"{reason}; leave it out", field=field)
                path = index_path(self.catalog.home, name)
                if name in self.catalog.aliases() or is_built(path):
                    raise IndexExists(f"`{name}` exists already; choose another name", field="name")
                build((), name=name, home=self.catalog.home, **chosen.model_dump()).close()
                self.catalog.refresh(name)

        await self._run_write("", work)

    async def delete_index(self, name: str) -> list[str]:
        """Delete an index; return the names of files that stay because they are not its own.

        IndexNotFound; QueryError for an alias; WritingRefused, InsufficientScope.
        """
        self.access.require("write", name)
        self.state["index"] = name

        def work() -> list[str]:
            with _settings_from_client():
                if name in self.catalog.aliases():
                    raise QueryError(
                        f"`{name}` is an alias; delete its index, or the alias with "
                        f"DELETE /aliases/{name}",
                        field="name",
                    )
                if all(status.name != name for status in self.catalog.statuses()):
                    raise IndexNotFound(f"no index `{name}`; list indexes with GET /indexes")
                left = delete_index(index_path(self.catalog.home, name))
                self.catalog.refresh(name)
                if self.recorder is not None:
                    self.recorder.forget(name)
                return [path.name for path in left]

        left = await self._run_write("", work)
        self.write_failures.forget(name)
        return left

    @property
    def analytics(self) -> Recorder:
        """The recorder of analytics; AnalyticsOff."""
        if self.recorder is None:
            raise AnalyticsOff("analytics are off; start klsa-serve with --analytics")
        return self.recorder

    async def read_analytics(self, name: str, compute: Callable[[Recorder, str], T]) -> T:
        """Return what `compute` returns for the recorder and the name of an index, or alias.

        It runs in the threads for expensive requests. AnalyticsOff, IndexNotFound,
        InsufficientScope, StoreError.
        """
        target = self.visible.resolve("write", name) or name
        with self.catalog.use_if_current(target) as opened:
            self.state["index"] = target
            index = target if opened is None else opened.name
        recorder = self.analytics
        return await self.heavy.run(lambda: compute(recorder, index))

    async def refit(self, name: str) -> Job:
        """Request a refit of an index, and return its job; WritingRefused, InsufficientScope."""
        jobs = self._writable_jobs()
        return await self.look_up(name, lambda one: jobs.request(one.name, one.generation, {}))

    async def update_settings(self, name: str, settings: Mapping[str, Setting]) -> Job | None:
        """Change settings of an index at once, or by a refit if one needs it; return its job.

        WritingRefused if the service is read-only, InsufficientScope; QueryError for invalid
        settings; IndexBusy if a refit with other settings is waiting or running.
        """
        jobs = self._writable_jobs()

        def change(index: Index) -> Job | None:
            with _settings_from_client():
                chosen = Settings.checked(
                    {**index.settings.model_dump(), **_without_code(settings)}
                )
                if needing_refit(index.manifest.checked_settings(), chosen):
                    Analyzer(chosen)  # else only the refit would find an unknown language
                    return jobs.request(index.name, index.generation, settings)
                jobs.refuse_conflict(index.name, settings)
                change_settings(index.path.parent, settings)
            index.refresh()
            return None

        return await self.write(name, change)

    async def all_jobs(self, index: str | None) -> list[Job]:
        """Return the jobs that the request may see, newest first, of all indexes or of one."""
        jobs = self._writable_jobs()
        if index is not None:
            index = self.visible.resolve("write", index)

        def work() -> list[Job]:
            visible = filter(self.visible.has_job, jobs.all())
            return [job for job in visible if index in (None, job.index)]

        return await self.admission.run(work)

    async def job(self, id_: int, *, cancel: bool = False) -> Job:
        """Return a job, after its cancellation if `cancel`; JobNotFound."""
        jobs = self._writable_jobs()
        self.access.require("write")

        def work() -> Job:
            job = jobs.get(id_)
            if not self.visible.has_job(job):
                raise job_not_found(id_)
            return jobs.cancel(id_) if cancel else job

        return await self.admission.run(work)

    async def open_job(self, index: str) -> int | None:
        """Return the ID of the waiting or running job of an index."""
        if self.jobs is None:
            return None
        job = await asyncio.to_thread(self.jobs.open_job, index)  # no thread of a pool may be free
        return None if job is None else job.id

    def _writable_jobs(self) -> Jobs:
        """Return the jobs; WritingRefused if the service is read-only."""
        if self.jobs is None or self._writes is None:
            raise _read_only()
        return self.jobs

    async def change_aliases(self, change: Callable[[Catalog], None]) -> None:
        """Change aliases; InsufficientScope for a key that is restricted to some indexes."""
        self.access.require_all("write")

        def work() -> None:
            with _settings_from_client():
                change(self.catalog)

        await self._run_write("", work)


def _read_only() -> WritingRefused:
    return WritingRefused(
        "the service is read-only; start klsa-serve without --read-only, or change the index on "
        "its machine (klsa-index add, remove, refit); if it follows another service, write to that"
    )


@contextmanager
def _settings_from_client() -> Iterator[None]:
    """Raise QueryError instead of SettingsError: the client is at fault, not the service."""
    try:
        yield
    except SettingsError as error:
        raise QueryError(error.message, field=error.field) from None


def _without_code(settings: Mapping[str, Setting]) -> Mapping[str, Setting]:
    """Return settings of a client; QueryError for a `tokenizer` that is not a plug-in."""
    if ":" in str(settings.get("tokenizer")):
        raise QueryError(
            "tokenizer cannot be a function over HTTP, because it runs code; use the name of a "
            "plug-in, or set it on the machine of the service: klsa-index build --tokenizer",
            field="tokenizer",
        )
    return settings
