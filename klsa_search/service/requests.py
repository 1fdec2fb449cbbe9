"""What all routes share: the desk where indexes are asked, and ids and terms in a path."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, TypeVar, cast

from fastapi import Depends, Request, Response
from starlette.convertors import PathConvertor, register_url_convertor

from klsa_search.core.keywords import SearchParameters
from klsa_search.errors import IndexNotFound, QueryError, SettingsError, WritingRefused
from klsa_search.search.index import Index
from klsa_search.service.admission import Admission
from klsa_search.service.background import Writes
from klsa_search.service.catalog import Catalog, Status
from klsa_search.service.keys import Scope
from klsa_search.service.metrics import Metrics
from klsa_search.service.middleware.auth import EVERYTHING, Access
from klsa_search.service.refits import Refit, Refits, Setting
from klsa_search.service.schemas.responses import Answer, refuse_too_large

T = TypeVar("T")


class _Whole(PathConvertor):
    """Whatever a path holds, slashes and line ends too: the id of a document is opaque."""

    regex = r"[\s\S]*"


register_url_convertor("whole", _Whole())


LIGHT: Final = 15.0
"""Estimated milliseconds of the most expensive request that runs among the light ones."""


class IndexService:
    """Runs calls on an index in a thread, when one is free, and writes the answer as JSON there."""

    def __init__(
        self,
        catalog: Catalog,
        admission: Admission,
        heavy: Admission,
        writes: Writes | None,
        refits: Refits | None,
        metrics: Metrics,
    ) -> None:
        self.catalog = catalog
        self.refits = refits
        self.metrics = metrics
        self._admission = admission
        self._heavy = heavy
        self._writes = writes
        self._access = EVERYTHING
        self._noted: dict[str, Any] = {}

    def seen_by(self, access: Access, noted: dict[str, Any]) -> IndexService:
        """Return the desk for one request and its key; `noted` is called with the index."""
        desk = object.__new__(IndexService)  # a third of the time that `copy` takes
        desk.__dict__.update(self.__dict__, _access=access, _noted=noted)
        return desk

    def statuses(self, besides: str | None = None) -> list[Status]:
        """The indexes that the request may know of, and one besides: see `Catalog.statuses`."""
        statuses = self.catalog.statuses()
        return [each for each in statuses if each.name == besides or self._access.sees(each.name)]

    def require(self, *scopes: Scope) -> None:
        """InsufficientScope unless the request has one of the scopes."""
        if self._access.scopes.isdisjoint(scopes):
            self._access.require(scopes[0])

    async def measured(self, accept: str) -> Response:
        """Tell the metrics, of the indexes that the request may know of."""
        # Files are read for them, which no thread of a pool may be free to do.
        content, kind = await asyncio.to_thread(self.metrics.exposition, self.statuses(), accept)
        return Response(content, headers={"Content-Type": kind})

    async def ask(
        self,
        name: str | None,
        question: Callable[[Index], Answer | bytes],
        *,
        heavy: bool = False,
        cost: Callable[[Index], float] | None = None,
        quick: Callable[[Index], bool] | None = None,
    ) -> Response:
        """Answer a question to the index of that name; see `Catalog.use` and `Admission.run`.

        heavy  whether it runs in the threads for expensive requests, which delay no others
        cost   estimates its milliseconds; it is heavy above `LIGHT`
        quick  whether it needs no thread, if nothing else has to be done first

        QueryError where the answer would be too large, InsufficientScope.
        """
        name = self._allowed("search", name)

        def as_json(index: Index) -> str | bytes:
            self._noted["index"] = index.name
            answer = question(index)
            if isinstance(answer, bytes):
                return answer
            refuse_too_large(answer)
            return answer.model_dump_json()

        def work() -> str | bytes:
            with self.catalog.use(name) as index:
                return as_json(index)

        def at_once() -> str | bytes | None:
            with self.catalog.at_hand(name) as index:
                return as_json(index) if index is not None and quick and quick(index) else None

        answer = self._admission.at_once(at_once) if quick is not None else None
        if answer is None:
            if cost is not None:
                with self.catalog.at_hand(name) as index:
                    heavy = index is not None and cost(index) > LIGHT
            pool = self._heavy if heavy else self._admission
            answer = await pool.run(work)
        return Response(answer, media_type="application/json")

    async def all_of(self, asked: Awaitable[T]) -> T:
        """Wait for what asks several questions; see `Admission.all_of`."""
        return await self._admission.all_of(asked)

    @property
    def writes(self) -> Writes:
        """The writes under way; WritingRefused where there may be none, InsufficientScope."""
        if self._writes is None:
            raise WritingRefused(
                "the service is read-only; start klsa-serve without --read-only, "
                "or write on its machine (klsa-index add, remove)"
            )
        self._access.require("write")
        return self._writes

    @property
    def may_write(self) -> bool:
        """Return whether the request may write to some index."""
        return self._writes is not None and "write" in self._access.scopes

    async def write(self, name: str, change: Callable[[Index], T]) -> T:
        """Change the index of that name, and return what that gave. See `Catalog.writing`."""
        named = self._allowed("write", name) or name

        def work() -> T:
            with self.catalog.writing(named) as index:
                self._noted["index"] = index.name
                return change(index)

        return await self.writes.run(work)

    async def refit(self, name: str, settings: Mapping[str, Setting] | None = None) -> Refit | None:
        """The last refit of the index of that name, or one that is begun with settings.

        WritingRefused if the index is read-only, InsufficientScope; QueryError for invalid
        settings, IndexBusy if another refit is under way.
        """
        refits = self.refits
        if refits is None or self._writes is None:
            raise WritingRefused(
                "the service is read-only; start klsa-serve without --read-only, "
                "or refit on its machine (klsa-index refit)"
            )
        named = self._allowed("write", name) or name

        def work() -> Refit | None:
            with self.catalog.use(named) as index:
                self._noted["index"] = index.name
                if settings is None:
                    return refits.last().get(index.name)
                index.parameters(**cast(SearchParameters, settings))  # which refuses what is wrong
                return refits.begin(index.name, index.generation, settings)

        return await self._admission.run(work)

    def aliases(self) -> dict[str, str]:
        """The aliases that the request may know of, and what they stand for."""
        sees = self._access.sees
        found = self.catalog.aliases().items()
        return {name: index for name, index in found if sees(name) or sees(index)}

    async def change_aliases(self, change: Callable[[Catalog], None]) -> None:
        """Change aliases; InsufficientScope for a key limited to some indexes, as an alias could
        point to any.
        """
        self._access.require_all("write")

        def work() -> None:
            try:
                change(self.catalog)
            except SettingsError as error:  # a slip of who asks, not of who serves
                raise QueryError(error.message, field=error.field) from None

        await self.writes.run(work)

    def _allowed(self, scope: str, name: str | None) -> str | None:
        """Return the index that the request may use with this scope, by name or alias.

        An alias is resolved here, so that the index allowed is the index used, even if the alias
        changes meanwhile.
        """
        name = self._named(name)
        if name is None:
            self._access.require(scope)
            return None
        index = self.catalog.aliases().get(name, name)
        self._access.require(scope, index if self._access.sees(index) else name)
        return index

    def _named(self, name: str | None) -> str | None:
        """Return the requested index; errors name only indexes that the request may see."""
        if self._access.indexes is None:
            return name
        aliases = sorted(self.aliases())
        served = sorted(each.name for each in self.statuses()) or aliases
        choices = ", ".join(served) or "none"
        if name is None:
            if len(served) != 1:
                raise QueryError(f"index is missing; choose one of {choices}", field="index")
            return served[0]
        if name in self._access.indexes and name not in (*served, *aliases):
            raise IndexNotFound(f"no index {name!r}; choose from {choices}", field="index")
        return name


def desk_of(request: Request) -> IndexService:
    """Return the desk of the application that was asked, as this request finds it."""
    state = request.app.state
    noted = request.scope.setdefault("state", {})
    desk: IndexService = state.desk
    # A gate that noted nothing is a slip: rather no answer than one too many.
    return desk.seen_by(noted["access"] if state.gated else EVERYTHING, noted)


class Requires:
    """Dependency that each route declares: the scope a key needs for it, or one of several.

    Without any, the route is open to requests without a key. InsufficientScope; WritingRefused if
    no key was sent.
    """

    def __init__(self, *scopes: Scope) -> None:
        self.scopes = scopes

    async def __call__(self, request: Request) -> None:
        """Refuse a request without one of the scopes."""
        if self.scopes:
            desk_of(request).require(*self.scopes)


def requires(*scopes: Scope) -> list[Any]:
    """Return the `dependencies` of a route, or of a router, that needs one of the scopes."""
    return [Depends(Requires(*scopes))]


async def _desk(request: Request) -> IndexService:
    return desk_of(request)


Served = Annotated[IndexService, Depends(_desk)]
