"""What all routes share: the desk where indexes are asked, and ids and terms in a path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Request, Response
from starlette.convertors import PathConvertor, register_url_convertor

from klsa_search.errors import WritingRefused
from klsa_search.search import Index
from klsa_search.service.admission import Admission
from klsa_search.service.answers import Answer
from klsa_search.service.catalog import Catalog
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
        writes: Writes | None,
        refits: Refits | None,
    ) -> None:
        self.catalog = catalog
        self.refits = refits
        self._admission = admission
        self._writes = writes

    async def ask(self, name: str | None, question: Callable[[Index], Answer | bytes]) -> Response:
        """Answer a question to the index of that name; see `Catalog.use` and `Admission.run`.

        QueryError where the answer would be too large.
        """

        def work() -> str | bytes:
            with self.catalog.use(name) as index:
                answer = question(index)
                if isinstance(answer, bytes):
                    return answer
                refuse_too_large(answer)
                return answer.model_dump_json()

        return Response(await self._admission.run(work), media_type="application/json")

    @property
    def writes(self) -> Writes:
        """The writes under way; WritingRefused where there may be none."""
        if self._writes is None:
            raise WritingRefused(
                "this service takes no writes: start klsa-serve with --writable where only those "
                "can ask it who may write, or write on its machine (klsa-index add, remove)"
            )
        return self._writes

    async def write(self, name: str, change: Callable[[Index], T]) -> T:
        """Change the index of that name, and return what that gave. See `Catalog.writing`."""

        def work() -> T:
            with self.catalog.writing(name) as index:
                return change(index)

        return await self.writes.run(work)


def desk_of(request: Request) -> Desk:
    """Return the desk of the application that was asked."""
    desk: Desk = request.app.state.desk
    return desk


async def _desk(request: Request) -> Desk:
    return desk_of(request)


Served = Annotated[Desk, Depends(_desk)]
