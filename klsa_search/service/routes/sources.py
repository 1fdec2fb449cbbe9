"""Endpoints of sources: add the documents of a file, make an index equal to a stream of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, Final, Self, TypeVar, cast

from fastapi import Request, Response
from pydantic import AfterValidator, Field
from starlette.requests import ClientDisconnect

from klsa_search.collection.intake import ADVICE
from klsa_search.collection.model import Document, Problems
from klsa_search.collection.opening import open_collection
from klsa_search.collection.reading_options import (
    ColumnOptions,
    FileOptions,
    FileReading,
    FormatName,
)
from klsa_search.errors import BadDocument, CollectionError, KlsaError, QueryError, SettingsError
from klsa_search.search.batches import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    declared_of,
    refuse_read_only,
)
from klsa_search.search.index import Index
from klsa_search.search.sync import MAX_DELETE_PATTERN, max_deletions
from klsa_search.service.dependencies import Service, router_for
from klsa_search.service.file_reading import FileReader, FileSummary, FileTask
from klsa_search.service.index_service import IndexService
from klsa_search.service.middleware.bodies import (
    LINES,
    UNLIMITED,
    received,
    refuse_other_types,
    spool,
)
from klsa_search.service.routes.documents import LINES_BODY, body_of
from klsa_search.service.schemas.base import Answer, RequestModel, elapsed, field_error
from klsa_search.service.schemas.documents import ProblemCounts, SyncAnswer, documents_of_lines

router = router_for("write", body=UNLIMITED)

T = TypeVar("T")

_LONGEST_NAME: Final = 255  # bytes of a file name, as most file systems limit it


class FileRequest(ColumnOptions, FileOptions, RequestModel):
    """The parameters of PUT /indexes/{name}/files/{file}."""

    format: FormatName | None = Field(None, description="read this format")  # no folder
    preview: int | None = Field(
        None, ge=1, le=20, description="add nothing; answer the first documents, at most so many"
    )

    @property
    def reading(self) -> FileReading:
        """The keyword arguments of `open_collection`."""
        options = {name: getattr(self, name) for name in FileOptions.model_fields}
        return cast(FileReading, {**options, "columns": self.columns})


class UnreadFiles(Answer):
    """Files of an archive that are not read as documents."""

    count: int
    kinds: dict[str, int] = Field(description="number of them by suffix or reason")
    first: dict[str, str] = Field(description="first file of each kind")


class FileDocument(Answer):
    """The beginning of a document of a file."""

    id: str
    title: str
    text: str
    metadata: dict[str, Any]

    @classmethod
    def of(cls, document: Document) -> Self:
        """Return a document as it is shown."""
        metadata = dict(document.metadata)
        return cls(id=document.id, title=document.title, text=document.text, metadata=metadata)


class FileAnswer(Answer):
    """What was read of a file, and added: durable and searchable when it is answered."""

    index: str
    generation: str
    format: str = Field(description="format in which the file was read")
    added: int = Field(description="documents added or replaced")
    skipped: ProblemCounts = Field(description="records that were left out")
    unread: UnreadFiles
    numbered: list[str] = Field(description="tables without IDs, whose documents are numbered")
    notes: list[str] = Field(description="what was recognised, such as encodings and columns")
    columns: list[str] = Field(description="columns of a table, or names of its first object")
    used: dict[str, str | list[str]] = Field(
        description="columns that are the ID, the title and the text of documents"
    )
    documents: list[FileDocument] = Field(description="with `preview`: the first documents")
    fault: str | None = Field(description="with `preview`: why it cannot be added as requested")
    log_position: int = Field(description="position of the last row in the log of writes")
    warnings: ProblemCounts = Field(description="values of the wrong type, which count as missing")
    time_ms: float


@router.put(
    "/indexes/{name}/files/{file}",
    summary="Add the documents of a file",
    response_model=FileAnswer,
    openapi_extra=body_of("application/octet-stream", {"type": "string", "format": "binary"}),
)
async def add_file(
    name: str, file: str, request: Request, params: FileRequest, service: Service
) -> Response:
    """Add the documents of a file: a table, JSON, XML, text, web page, PDF or ZIP archive.

    The body is the file. Formats, columns and encodings are recognised as by `klsa-index add`. A
    document replaces the one with the same ID; the rows of a table without IDs are named after the
    file, as `a.csv#1`, so rows that a shorter version no longer has stay: use a sync for those.
    Records that cannot be read are left out and reported. Documents are stored in batches of 1,000;
    if one fails, or the connection ends, those before it stay: `added` of the error. The same file
    can be sent again.
    """
    begin = time.perf_counter()
    if file in (".", "..") or "\0" in file or len(file.encode(errors="replace")) > _LONGEST_NAME:
        raise QueryError(f"{file[:60]!r} is not the name of a file; rename it", field="file")
    with service.writes.slot(None):
        addition = await service.look_up(name, _Addition)
        async with received(request, file) as path:
            async with service.writes.reader():
                try:
                    work = addition.read(path, params, service)
                    summary = await _while_connected(request, work)
                except KlsaError as error:
                    error.added = addition.added
                    raise
            answer = FileAnswer(
                index=addition.index,
                generation=addition.generation,
                added=addition.added,
                documents=addition.shown,
                log_position=addition.log_position,
                warnings=addition.warnings.as_json(),
                time_ms=elapsed(begin),
                **summary,
            )
    return Response(answer.model_dump_json(), media_type="application/json")


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work; cancel it when the client leaves, ClientDisconnect."""
    tasks = asyncio.create_task(work), asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise ClientDisconnect
        return tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _Addition:
    """What an index takes of the documents of a file, and what was added."""

    def __init__(self, index: Index) -> None:
        refuse_read_only(index.name, index.settings)  # before the body is received
        self._declared = declared_of(index.settings, index.fields)
        self._dimensions = {space.name: space.dimension for space in index.vector_spaces}
        self.index, self.generation = index.name, index.generation
        self.log_position = index.last_write.seq
        self.added, self.warnings = 0, Problems()
        self.shown: list[FileDocument] = []

    async def read(self, path: Path, params: FileRequest, service: IndexService) -> FileSummary:
        """Write the documents of a file in batches, between which other writes may run."""
        task = FileTask(
            path=path,
            reading=params.reading,
            declared=self._declared,
            dimensions=self._dimensions,
            batch=BATCH_DOCUMENTS,
            characters=BATCH_CHARACTERS,
            preview=params.preview,
        )
        reader = FileReader(task)
        try:
            while isinstance(answer := await asyncio.to_thread(reader.next), list):
                if params.preview:
                    self.shown = [FileDocument.of(document) for document in answer]
                else:
                    await self._write(answer, service)
        finally:
            reader.kill()  # at once: a service that stops waits for nothing
            await asyncio.to_thread(reader.__exit__)
        return answer

    async def _write(self, batch: list[Document], service: IndexService) -> None:
        # The name of the index, not of an alias, which may be moved between batches.
        written = await service.write(self.index, lambda index: index.write(batch))
        self.added += written.added
        self.generation, self.log_position = written.generation, written.log_position
        for warning in written.warnings:
            self.warnings.add(warning.message, kind=warning.field)


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
