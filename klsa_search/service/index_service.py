"""The index service: run the calls of routes on the indexes that a request may see, with limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar, cast

from fastapi import Response
from starlette.datastructures import State

from klsa_search.core.service_reports import Job
from klsa_search.errors import (
    AnalyticsOff,
    IndexNotFound,
    InsufficientScope,
    QueryError,
    SettingsError,
    WritingRefused,
)
from klsa_search.search.filters.masks import FilterLike, filter_of
from klsa_search.search.filters.parser import And
from klsa_search.search.index import Index
from klsa_search.service.admission import Writes
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import Scope
from klsa_search.service.metrics import Metrics
from klsa_search.service.middleware.auth import Access
from klsa_search.service.resources import Resources
from klsa_search.service.schemas.base import Answer, IndexAnswer, elapsed, encoded
from klsa_search.service.schemas.errors import is_fault, shown_message
from klsa_search.service.served_index import Status
from klsa_search.service.write_failures import WriteFailures

A = TypeVar("A", bound=Answer)
T = TypeVar("T")

MAX_LIGHT_COST: Final = 15.0
"""Estimated milliseconds above which a request runs in the threads for expensive requests."""


class IndexService:
    """Runs calls of one request on indexes in threads, and encodes their answers as JSON there.

    shared  state of the application
    state   of the request; it gets the name of the used index
    """

    def __init__(self, shared: State, access: Access, state: dict[str, Any]) -> None:
        resources: Resources = shared.resources
        self.access = access
        self.open_indexes = resources.open_indexes
        self.keys = resources.keys
        self.jobs = resources.jobs
        self.metrics: Metrics = shared.metrics
        self.recorder = resources.recorder
        self.replications = resources.replications
        self.admission = resources.admission
        self.heavy = resources.heavy
        self._writes = resources.writes
        self.write_failures: WriteFailures = shared.write_failures
        self.state = state

    def statuses(self, extra_index: str | None = None) -> list[Status]:
        """Return the states of the visible indexes: see `OpenIndexes.statuses`.

        extra_index  name of another index to return the state of

        Empty for a tenant token, as a state counts all documents. Paths in failures are those
        within the index directory.
        """
        if self.access.filters is not None:
            return []
        sees = self.access.sees
        home = self.open_indexes.home
        return [
            replace(status, failure=status.failure and shown_message(status.failure, home))
            for status in self.open_indexes.statuses()
            if status.name == extra_index or sees(status.name)
        ]

    def aliases(self) -> dict[str, str]:
        """Return the aliases of visible indexes by name, and those that the access names."""
        sees = self.access.sees
        aliases = self.open_indexes.aliases().items()
        return {name: index for name, index in aliases if sees(name) or sees(index)}

    def has_job(self, job: Job) -> bool:
        """Return whether the request may see a job, by its index or an alias of it."""
        return self.access.sees(job.index) or job.index in self.aliases().values()

    def resolve(self, scope: Scope, name: str | None) -> str | None:
        """Return the index of a name or alias, if the request may use it with this scope.

        An alias is resolved here, so that the checked index is the one used even if the alias
        changes meanwhile. None if no name is given, and one is not needed. IndexNotFound,
        InsufficientScope, QueryError.
        """
        name = self._requested(name)
        if name is None:
            self.access.require(scope)
            return None
        index = self.open_indexes.aliases().get(name, name)
        self.access.require(scope, index if self.access.sees(index) else name)
        return index

    def resolve_with_filter(self, name: str | None) -> tuple[str | None, FilterLike | None]:
        """Return the index of a name or alias to search, and the filter of a tenant token for it.

        A filter for the alias and one for the index both apply.
        """
        filters = self.access.filters
        if filters is None:
            return self.resolve("search", name), None
        name = self._requested(name)
        index = self.resolve("search", name)
        names = dict.fromkeys((name, index))
        applied = [filters[target] for target in names if target is not None and target in filters]
        if not applied:
            raise InsufficientScope(
                f"the tenant token is not valid for index {name!r}; use another token",
                scope="search",
                field="index",
            )
        return index, applied[0] if len(applied) == 1 else And(tuple(map(filter_of, applied)))

    def _requested(self, name: str | None) -> str | None:
        """Return the requested index; errors name only indexes that the request may see."""
        if self.access.indexes is None:
            return name
        aliases = sorted(self.aliases())
        served = sorted(
            status.name for status in self.open_indexes.statuses() if self.access.sees(status.name)
        )
        choices = ", ".join(served or aliases) or "none"
        if name is None:
            if len(served or aliases) != 1:
                raise QueryError(f"index is missing; choose one of {choices}", field="index")
            return (served or aliases)[0]
        if name in self.access.indexes and name not in (*served, *aliases):
            raise IndexNotFound(f"no index `{name}`; choose from {choices}", field="index")
        return name

    async def current_statuses(self, extra_index: str | None = None) -> list[Status]:
        """Return the states of the visible indexes with all acknowledged changes.

        extra_index  see `statuses`
        """
        await asyncio.to_thread(self.open_indexes.catch_up_all)
        return self.statuses(extra_index)

    def is_searchable(self, statuses: Sequence[Status]) -> bool:
        """Return whether an index is served, or there is none yet, so that one can be created.

        A follower without an index has not copied a backup yet.
        """
        if not statuses:
            return not any(replication.work == "follow" for replication in self.replications)
        return any(status.index is not None for status in statuses)

    def require(self, *scopes: Scope) -> None:
        """Raise InsufficientScope unless the request has one of the scopes.

        WritingRefused for a write if the service has no keys, or is read-only so that a key would
        not help.
        """
        if self.access.scopes.isdisjoint(scopes):
            if scopes[0] == "write" and self.access.key is None and self._writes is None:
                raise _read_only()
            self.access.require(scopes[0])

    async def read(
        self,
        name: str | None,
        compute: Callable[[Index], Answer | bytes],
        *,
        heavy: bool = False,
        cost: Callable[[Index], float] | None = None,
        quick: Callable[[Index], bool] | None = None,
    ) -> Response:
        """Return the JSON of what `compute` returns; see `OpenIndexes.use` and `Admission.run`.

        heavy  whether to use the threads for expensive requests, which delay no others
        cost   estimates the milliseconds; the request is heavy above `MAX_LIGHT_COST`
        quick  returns whether it may run in the event loop

        `compute` gets an index with the documents that the request may see: for a tenant token,
        those of its filter. QueryError if the answer would be too large, InsufficientScope.
        """
        name, token_filter = self.resolve_with_filter(name)
        if token_filter is not None:
            quick = None

        def as_json(index: Index) -> bytes:
            self.state["index"] = index.name
            if token_filter is not None:
                index = restricted_by_token(index, token_filter)
            answer = compute(index)
            return answer if isinstance(answer, bytes) else encoded(answer)

        def work() -> bytes:
            with self.open_indexes.use(name) as index:
                return as_json(index)

        def inline() -> bytes | None:
            with self.open_indexes.use_if_current(name) as index:
                return as_json(index) if index is not None and quick and quick(index) else None

        answer = await self.admission.run_inline(inline) if quick is not None else None
        if answer is None:
            if cost is not None:
                if not self.open_indexes.is_current(name):
                    await self.admission.run(partial(self.open_indexes.catch_up, name))
                with self.open_indexes.use_if_current(name) as index:
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

        long  whether it reads a body of any size, and so waits for writes
        IndexNotFound, InsufficientScope; see `OpenIndexes.use`.
        """
        target = self.resolve("write", name) or name

        def work() -> T:
            with self.open_indexes.use(target) as index:
                self.state["index"] = index.name
                return compute(index)

        return await (self.writes if long else self.admission).run(work)

    async def write(self, name: str, change: Callable[[Index], T]) -> T:
        """Run `change`, and return its result: `OpenIndexes.writing`."""
        target = self.resolve("write", name) or name

        def work() -> T:
            with self.open_indexes.writing(target) as index:
                self.state["index"] = index.name
                return change(index)

        return await self.run_write(target, work)

    async def run_write(self, index: str, work: Callable[[], T]) -> T:
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

    @property
    def analytics(self) -> Recorder:
        """The recorder of analytics; AnalyticsOff."""
        if self.recorder is None:
            raise AnalyticsOff("analytics are off; start klsa-serve with --analytics")
        return self.recorder

    @property
    def writable_jobs(self) -> Jobs:
        """The jobs; WritingRefused if the service is read-only."""
        if self.jobs is None or self._writes is None:
            raise _read_only()
        return self.jobs


def cost_for(
    index: Index | None, filter_: FilterLike | None, cost: Callable[[Index], float]
) -> float:
    """Return the estimated milliseconds of a request to the documents of a tenant token, or to all.

    Making the view of them is included; without it, the estimate is by the view. 0 for no index.
    """
    if index is None:
        return 0.0
    if filter_ is None:
        return cost(index)
    making = index.restriction_cost(filter_)
    return making + cost(index) if making else cost(restricted_by_token(index, filter_))


def restricted_by_token(index: Index, filter_: FilterLike) -> Index:
    """Return the documents of a tenant token; InsufficientScope if its filter is invalid now."""
    try:
        return index.restricted(filter_)
    except QueryError as error:
        raise InsufficientScope(
            f"cannot apply the filter of the tenant token: {error.message}; create another token",
            scope="search",
        ) from None


def _read_only() -> WritingRefused:
    return WritingRefused(
        "the service is read-only; start klsa-serve without --read-only, or change the index on "
        "its machine (klsa-index add, delete, refit); if it follows another service, write to that"
    )


@contextmanager
def settings_from_client() -> Iterator[None]:
    """Raise QueryError instead of SettingsError: the client is at fault, not the service."""
    try:
        yield
    except SettingsError as error:
        raise QueryError(error.message, field=error.field) from None
