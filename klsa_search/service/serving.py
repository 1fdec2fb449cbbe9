"""What all routes share: the desk where indexes are asked, and ids and terms in a path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response
from starlette.convertors import PathConvertor, register_url_convertor

from klsa_search.errors import IndexNotFound, QueryError, WritingRefused
from klsa_search.search import Index
from klsa_search.service.access import EVERYTHING, Access
from klsa_search.service.admission import Admission
from klsa_search.service.answers import Answer
from klsa_search.service.catalog import Catalog, Status
from klsa_search.service.metrics import Metrics
from klsa_search.service.refitting import Refits
from klsa_search.service.size import refuse_too_large
from klsa_search.service.writing import Writes

T = TypeVar("T")


class _Whole(PathConvertor):
    """Whatever a path holds, slashes and line ends too: the id of a document is opaque."""

    regex = r"[\s\S]*"


register_url_convertor("whole", _Whole())


class Desk:
    """Where a route asks an index: in a thread, once there is one, and told as JSON there too."""

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

    def seen_by(self, access: Access, noted: dict[str, Any]) -> Desk:
        """The desk as one request finds it, which may do so much; `noted` is told of the index."""
        desk = object.__new__(Desk)  # a third of the time that `copy` takes
        desk.__dict__.update(self.__dict__, _access=access, _noted=noted)
        return desk

    def statuses(self) -> list[Status]:
        """The indexes that the request may know of: see `Catalog.statuses`."""
        return [each for each in self.catalog.statuses() if self._access.sees(each.name)]

    def measured(self, accept: str) -> Response:
        """Tell the metrics, of the indexes that the request may know of; KeyTooNarrow."""
        self._access.require("metrics")
        told, kind = self.metrics.told(self.statuses(), accept)
        return Response(told, headers={"Content-Type": kind})

    async def ask(
        self,
        name: str | None,
        question: Callable[[Index], Answer | bytes],
        *,
        heavy: bool = False,
    ) -> Response:
        """Answer a question to the index of that name; see `Catalog.use` and `Admission.run`.

        One that is `heavy` runs in threads for such alone, so that it holds up no other kind.

        QueryError where the answer would be too large, KeyTooNarrow.
        """
        name = self._named(name)
        self._access.require("search", name)

        def work() -> str | bytes:
            with self.catalog.use(name) as index:
                self._noted["index"] = index.name
                answer = question(index)
                if isinstance(answer, bytes):
                    return answer
                refuse_too_large(answer)
                return answer.model_dump_json()

        pool = self._heavy if heavy else self._admission
        return Response(await pool.run(work), media_type="application/json")

    @property
    def writes(self) -> Writes:
        """The writes under way; WritingRefused where there may be none, KeyTooNarrow."""
        if self._writes is None:
            raise WritingRefused(
                "this service takes no writes: start klsa-serve without --read-only, or write on "
                "its machine (klsa-index add, remove)"
            )
        self._access.require("write")
        return self._writes

    async def write(self, name: str, change: Callable[[Index], T]) -> T:
        """Change the index of that name, and return what that gave. See `Catalog.writing`."""
        self._access.require("write", self._named(name))

        def work() -> T:
            with self.catalog.writing(name) as index:
                self._noted["index"] = index.name
                return change(index)

        return await self.writes.run(work)

    def _named(self, name: str | None) -> str | None:
        """The index that is meant; a request that may not see all is told of none of the others."""
        if self._access.indexes is None:
            return name
        served = sorted(each.name for each in self.statuses())
        choices = ", ".join(served) or "none"
        if name is None:
            if len(served) != 1:
                raise QueryError(f"index is missing: choose one of {choices}", field="index")
            return served[0]
        if name in self._access.indexes and name not in served:
            raise IndexNotFound(f"there is no index {name!r}: choose from {choices}", field="index")
        return name


def desk_of(request: Request) -> Desk:
    """Return the desk of the application that was asked, as this request finds it."""
    state = request.app.state
    noted = request.scope.setdefault("state", {})
    desk: Desk = state.desk
    # A gate that noted nothing is a slip: rather no answer than one too many.
    return desk.seen_by(noted["access"] if state.gated else EVERYTHING, noted)


async def _desk(request: Request) -> Desk:
    return desk_of(request)


Served = Annotated[Desk, Depends(_desk)]
