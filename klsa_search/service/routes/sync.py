"""Endpoint that makes an index contain exactly the documents of a stream of lines."""

from __future__ import annotations

import time
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import Annotated, Final

from fastapi import Request, Response
from pydantic import AfterValidator, Field

from klsa_search.collection.intake import ADVICE
from klsa_search.collection.opening import open_collection
from klsa_search.errors import BadDocument, CollectionError, SettingsError
from klsa_search.search.index import Index
from klsa_search.search.sync import MAX_DELETE_PATTERN, max_deletions
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.middleware.bodies import LINES, UNLIMITED, refuse_other_types, spool
from klsa_search.service.routes.documents import LINES_BODY, body_of
from klsa_search.service.schemas.base import RequestModel, elapsed, field_error
from klsa_search.service.schemas.documents import SyncAnswer, documents_of_lines

router = router_for("write", body=UNLIMITED)

_IN_MEMORY: Final = 2**23  # bytes of a body that are kept in memory


def _limit(max_delete: str) -> str:
    """Return a limit of deletions; the error of a field if it is invalid."""
    try:
        max_deletions(max_delete, 0)
    except SettingsError as error:
        raise field_error("max_delete", error.message) from None
    return max_delete


class SyncRequest(RequestModel):
    """The parameters of POST /indexes/{name}/sync."""

    max_delete: Annotated[
        Annotated[str, AfterValidator(_limit)] | None,
        Field(
            description="refuse a body that would delete more documents, as a number or a share "
            "such as 20%; by default 20%, but at least 10",
            json_schema_extra={"pattern": MAX_DELETE_PATTERN},
        ),
    ] = None
    dry_run: bool = Field(False, description="report the differences and change nothing")
    ids: bool = Field(False, description="list the IDs of all documents that differ")


@router.post(
    "/indexes/{name}/sync",
    summary="Synchronise an index with its source",
    response_model=SyncAnswer,
    openapi_extra=body_of(LINES, LINES_BODY),
)
async def sync_index(
    name: str, request: Request, params: SyncRequest, service: Service
) -> Response:
    """Make the index contain exactly the documents of the body: a stream of lines, one each.

    Changed documents are replaced, and those that the body does not have are deleted; unchanged
    ones are not written. Nothing is written before the body was read and compared completely: an
    invalid line, or an ID that occurs twice, refuses all. Up to 20,000 documents that differ are
    one batch; after an interruption, the same request completes the sync.
    """
    with service.writes.slot(None):
        service.resolve("write", name)  # the key is valid for the index, before the body is read
        refuse_other_types(request, LINES)
        with ExitStack() as opened:
            body = opened.enter_context(SpooledTemporaryFile(_IN_MEMORY))
            await spool(request, body)

            def work(index: Index) -> str:
                with opened.pop_all():  # it may take longer than the request
                    return synchronise(index)

            def synchronise(index: Index) -> str:
                begin = time.perf_counter()
                # Opened here: the options of the build, such as columns, are not those of a body.
                source = open_collection(documents_of_lines(body))
                try:
                    result = index.sync(
                        source, max_delete=params.max_delete, dry_run=params.dry_run
                    )
                except CollectionError as error:
                    if ADVICE not in error.message:
                        raise
                    reason = error.message.removesuffix(ADVICE)
                    raise BadDocument(f"{reason}; correct it and send it again") from None
                return SyncAnswer(
                    index=index.name,
                    generation=index.generation,
                    dry_run=params.dry_run,
                    log_position=index.last_write.seq,
                    warnings=result.warnings.as_json(),
                    time_ms=elapsed(begin),
                    **result.as_json(ids=params.ids),
                ).model_dump_json(exclude=None if params.ids else {"ids"})

            if params.dry_run:
                content = await service.look_up(name, work, long=True)
            else:
                content = await service.write(name, work)
            return Response(content, media_type="application/json")
