"""Endpoint that adds the documents of a file, in any format that builds read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field
from starlette.requests import ClientDisconnect

from klsa_search.collection.detection import sniff
from klsa_search.collection.files.formats import format_of
from klsa_search.collection.files.reading import check_size
from klsa_search.collection.model import Document, Problems, batches
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.collection.opening import open_collection
from klsa_search.errors import BadDocument, CollectionError, KlsaError, QueryError
from klsa_search.search.batches import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    WriteResult,
    declared_of,
    with_dimensions,
)
from klsa_search.search.index import Index
from klsa_search.service.dependencies import Service, requires
from klsa_search.service.index_service import IndexService
from klsa_search.service.middleware.bodies import spool
from klsa_search.service.routes.documents import body_of
from klsa_search.service.schemas.base import Answer, Name, RequestModel, elapsed
from klsa_search.service.schemas.documents import CountedWarnings
from klsa_search.storage.log import document_as_json

router = APIRouter(dependencies=requires("write"))

_REASONS: Final = 100
"""Reasons for leaving out a record that an answer has, at most."""

_BEGINNING: Final = 500
"""Characters of a title or text in a preview."""

_LONGEST_NAME: Final = 255
"""Bytes of a file name, as most file systems limit it."""


class FileRequest(RequestModel):
    """The parameters of PUT /indexes/{name}/files/{file}."""

    id: Name | None = Field(None, description="column of the IDs")
    title: Name | None = Field(None, description="column of the titles")
    text: list[Name] | None = Field(None, description="columns of the texts, which are joined")
    format: Name | None = Field(None, description="format of the file; by default detected")
    encoding: Name | None = Field(
        None, description="encoding of CSV and texts, such as cp1251; by default detected"
    )
    sections: bool = Field(
        False, description="make one document of each section, page or chapter of a text"
    )
    preview: int | None = Field(
        None, ge=1, le=20, description="add nothing; answer the first documents, at most so many"
    )

    def opened(self, path: Path) -> OpenedCollection:
        """Open a file; CollectionError."""
        kind = self.format
        if kind is None and format_of(path) and not sniff(path):
            kind = "text"  # also a plain text, which is hardly meant to be a whole collection
        chosen = {"id": self.id, "title": self.title, "text": self.text}
        collection = open_collection(
            path,
            on_error="skip",
            columns={role: names for role, names in chosen.items() if names},
            format=kind,
            encoding=self.encoding,
            sections=self.sections,
        )
        if collection.format == "xlsx":  # which is in memory as a whole
            check_size(path)
        return collection


class LeftOut(Answer):
    """Records that were left out."""

    count: int
    first: list[str] = Field(description="the first reasons, at most 100")
    kinds: dict[str, int] = Field(description="number of unreadable files by suffix and fault")


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


class FileAnswer(Answer):
    """What was read of a file, and added: durable and searchable when it is answered."""

    index: str
    generation: str
    format: str = Field(description="format in which the file was read")
    added: int = Field(description="documents added or replaced")
    skipped: LeftOut
    unread: UnreadFiles
    numbered: list[str] = Field(description="tables without IDs, whose documents are numbered")
    notes: list[str] = Field(description="what was recognised, such as encodings and columns")
    columns: list[str] = Field(description="columns of a table, or names of its first object")
    used: dict[str, str | list[str]] = Field(
        description="columns that are the ID, the title and the text of documents"
    )
    documents: list[FileDocument] = Field(description="with `preview`: the first documents")
    fault: str | None = Field(description="with `preview`: why the file cannot be added so")
    log_position: int = Field(description="position of the last row in the log of writes")
    warnings: CountedWarnings
    time_ms: float


@router.put(
    "/indexes/{name}/files/{file}",
    summary="Add the documents of a file",
    response_model=FileAnswer,
    openapi_extra=body_of("application/octet-stream", {"type": "string", "format": "binary"}),
)
async def add_file(
    name: str,
    file: str,
    request: Request,
    params: Annotated[FileRequest, Depends(FileRequest.of_url)],
    service: Service,
) -> Response:
    """Add the documents of a file, the body: a table, JSON, XML, a text, page, PDF, ZIP archive ...

    Formats, columns and encodings are recognised as by `klsa-index add`. A document replaces the
    one with the same ID; the rows of a table without IDs are named after the file, as `a.csv#1`.
    Records that cannot be read are left out and reported. Documents are stored in batches of 1,000;
    if one fails, or the connection ends, those before it stay. The same file can be sent again.
    """
    begin = time.perf_counter()
    if file in (".", "..") or "\0" in file or len(file.encode(errors="replace")) > _LONGEST_NAME:
        raise QueryError(f"{file[:60]!r} is not the name of a file; rename it", field="file")
    with service.writes.slot(None):
        addition = await service.write(name, _Addition)
        async with _received(request, file) as path:
            shown: list[FileDocument] = []
            fault = None
            try:
                collection = await asyncio.to_thread(params.opened, path)
                documents = addition.documents(collection, file)
                try:
                    if params.preview:
                        count = params.preview
                        shown, fault = await asyncio.to_thread(_previewed, documents, count)
                    else:
                        await addition.write(documents, name, request, service)
                finally:
                    await asyncio.to_thread(documents.close)
            except KlsaError as error:
                error.message = error.message.replace(f"{path.parent}/", "")
                if addition.added:
                    error.message += f" ({addition.added:,} documents before were added)"
                raise
            columns, used = collection.header
            answer = FileAnswer(
                index=addition.index,
                generation=addition.generation,
                format=collection.format,
                added=addition.added,
                skipped=collection.problems.as_json(),
                unread=(await asyncio.to_thread(lambda: collection.unread)).as_json(),
                numbered=collection.numbered,
                notes=collection.notes,
                columns=columns,
                used=used.as_mapping(),
                documents=shown,
                fault=fault,
                log_position=addition.log_position,
                warnings=addition.warnings.as_json(),
                time_ms=elapsed(begin),
            )
            content = answer.model_dump_json().replace(f"{path.parent}/", "")
    return Response(content, media_type="application/json")


@asynccontextmanager
async def _received(request: Request, name: str) -> AsyncIterator[Path]:
    """The body of a request as a temporary file of this name."""
    folder = await asyncio.to_thread(
        TemporaryDirectory, prefix="klsa-file-", ignore_cleanup_errors=True
    )
    try:
        path = Path(folder.name) / name
        body = await asyncio.to_thread(path.open, "wb")
        try:
            await spool(request, body)
        finally:
            await asyncio.to_thread(body.close)
        yield path
    finally:
        await asyncio.to_thread(folder.cleanup)


class _Addition:
    """What an index takes of the documents of a file, and what was added."""

    def __init__(self, index: Index) -> None:
        self._declared = declared_of(index.settings, index.fields)
        self._dimensions = {space.name: space.dimension for space in index.vector_spaces}
        self.index, self.generation = index.name, index.generation
        self.log_position = index.last_write.seq
        self.added, self.warnings = 0, Problems()

    def documents(self, collection: OpenedCollection, name: str) -> Generator[Document, None, None]:
        """Yield the documents that the index takes; the collection counts the others.

        name  of the file, for documents without IDs
        """
        documents = collection.documents()
        collection.problems.keep = _REASONS
        for document in documents:
            if collection.numbered:
                document = replace(document, id=f"{name}#{document.id}")
            try:
                if fault := self._declared.fault(document.metadata):
                    raise BadDocument(f"document {document.id!r}: {fault}")
                document_as_json(with_dimensions(document, self._dimensions))
            except BadDocument as error:
                collection.refuse(f"{document.origin or name}: {error.message}")
            else:
                yield document

    async def write(
        self, documents: Iterator[Document], name: str, request: Request, service: IndexService
    ) -> None:
        """Write documents in batches, between which other writes may run; ClientDisconnect."""
        waiting = batches(documents, size=BATCH_DOCUMENTS, characters=BATCH_CHARACTERS)
        while batch := await asyncio.to_thread(next, waiting, None):
            if await request.is_disconnected():
                raise ClientDisconnect
            written = await service.write(name, partial(_written, batch))
            self.added += written.added
            self.generation, self.log_position = written.generation, written.log_position
            for warning in written.warnings:
                self.warnings.add(warning.message, kind=warning.field)


def _written(batch: list[Document], index: Index) -> WriteResult:
    return index.write(batch)


def _previewed(documents: Iterator[Document], count: int) -> tuple[list[FileDocument], str | None]:
    """Return the beginnings of the first documents, and the error that ended them, if any."""
    shown: list[FileDocument] = []
    try:
        for document in islice(documents, count):
            title, text = document.title[:_BEGINNING], document.text[:_BEGINNING]
            metadata = dict(document.metadata)
            shown.append(FileDocument(id=document.id, title=title, text=text, metadata=metadata))
    except CollectionError as error:
        return shown, error.message
    return shown, None
