"""Writes of streams of documents, one as JSON in each line, and the status of each line."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TypeVar

from fastapi import Request, Response
from pydantic_core import to_json

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import checked_vectors, with_dimensions
from klsa_search.errors import BadDocument, DocumentNotFound, KlsaError, QueryError
from klsa_search.search.batches import (
    BATCH_DOCUMENTS,
    Changes,
    WriteResult,
    declared_of,
    patched_documents,
)
from klsa_search.search.index import Index
from klsa_search.service.index_service import IndexService
from klsa_search.service.middleware.bodies import LINES
from klsa_search.service.schemas.documents import (
    Line,
    LineAnswer,
    changes_of_line,
    document_of_line,
    lines_of,
)
from klsa_search.service.schemas.errors import Failure, shown_message
from klsa_search.storage.columns.declared import FieldWarning

T = TypeVar("T")

MAX_LINES = 100_000  # maximum lines of a stream; the status of each is in memory until the response
_BATCH_BYTES = 2**23  # bytes of lines after which a batch is written

StatusesOf = Callable[[Index, Sequence[Line]], Iterator[bytes]]
"""Writes lines to an index, and yields the status of each."""


async def write_lines(
    name: str,
    request: Request,
    service: IndexService,
    statuses: StatusesOf,
) -> Response:
    """Write a stream in batches; the response starts when all was read, as most clients expect.

    If a batch cannot be written, the last status is that of its first line.
    """
    # Of an alias, which may be moved between batches.
    name = service.resolve("write", name) or name
    written: list[bytes] = []
    batch: list[Line] = []
    size, count, last = 0, 0, 0

    async def write() -> None:
        written.append(await service.write(name, lambda index: b"".join(statuses(index, batch))))
        batch.clear()

    try:
        async for line in lines_of(request.stream()):
            count, last = count + 1, line.number
            if count > MAX_LINES:
                if batch:
                    await write()
                batch.append(line)
                raise QueryError(f"more than {MAX_LINES:,} lines; send the rest in another request")
            batch.append(line)
            size += len(line.content or b"")
            if len(batch) == BATCH_DOCUMENTS or size > _BATCH_BYTES:
                await write()
                size = 0
        if batch or not written:
            await write()
    except KlsaError as error:
        if not written:
            raise
        error.message = shown_message(error.message, service.open_indexes.home)
        written.append(_refused(batch[0].number if batch else last + 1, error))
    return Response(b"".join(written), media_type=LINES)


def add_lines(index: Index, lines: Sequence[Line]) -> Iterator[bytes]:
    """Write the valid documents of some lines, and yield the status of each line."""
    declared = declared_of(index.settings, index.fields)
    dimensions = {space.name: space.dimension for space in index.vector_spaces}

    def document_of(line: Line) -> Document | None:
        document = document_of_line(line)
        if document is not None:
            if fault := declared.fault(document.metadata):
                raise BadDocument(f"line {line.number}: document {document.id!r}: {fault}")
            document = with_dimensions(checked_vectors(document), dimensions)
        return document

    valid, refused = _valid(lines, document_of)
    written = index.write(list(valid.values()))
    first = written.log_position - len(valid) + 1
    positions = dict(zip(valid, itertools.count(first), strict=False))
    return _statuses(lines, valid, refused, written, positions)


def patch_lines(index: Index, lines: Sequence[Line]) -> Iterator[bytes]:
    """Merge the valid changes of some lines into documents, and yield the status of each line."""

    def changes_of(line: Line) -> Changes | None:
        changes = changes_of_line(line)
        if changes is not None:
            (document,) = patched_documents([changes], present, declared, index.manifest.vectors)
            patched[document.id] = document
        return changes

    def present(id_: str) -> Document:
        """Return a document with the changes of earlier lines."""
        return patched.get(id_) or index.document(id_)

    patched: dict[str, Document] = {}

    declared = declared_of(index.settings, index.fields)
    valid, refused = _valid(lines, changes_of)
    written = index.patch_many([changes.fields for changes in valid.values()])
    positions = dict.fromkeys(valid, written.log_position)
    return _statuses(lines, valid, refused, written, positions)


def _valid(
    lines: Sequence[Line], item_of: Callable[[Line], T | None]
) -> tuple[dict[int, T], dict[int, KlsaError]]:
    """Return the items of lines, without blank ones, and why others are refused, by number."""
    valid: dict[int, T] = {}
    refused: dict[int, KlsaError] = {}
    for line in lines:
        try:
            item = item_of(line)
        except (BadDocument, DocumentNotFound) as error:
            refused[line.number] = error
        else:
            if item is not None:
                valid[line.number] = item
    return valid, refused


def _statuses(
    lines: Sequence[Line],
    valid: Mapping[int, Document | Changes],
    refused: Mapping[int, KlsaError],
    written: WriteResult,
    positions: Mapping[int, int],
) -> Iterator[bytes]:
    """Yield the status of each line.

    valid, refused, positions  by number of the line; positions of what was written in the log
    """
    warnings: dict[str, list[FieldWarning]] = {}
    for warning in written.warnings:
        warnings.setdefault(warning.id, []).append(warning)
    for number in (line.number for line in lines):
        if number in refused:
            yield _refused(number, refused[number])
        elif number in valid:
            id_ = valid[number].id
            yield _encoded(
                LineAnswer(
                    line=number,
                    ok=True,
                    id=id_,
                    generation=written.generation,
                    log_position=positions[number],
                    warnings=list(map(asdict, warnings.get(id_, ()))) or None,
                )
            )


def _refused(number: int, error: KlsaError) -> bytes:
    failure = Failure(code=error.code, message=error.message, field=error.field)
    answer = LineAnswer(line=number, ok=False, error=failure.model_dump(exclude_defaults=True))
    return _encoded(answer)


def _encoded(status: LineAnswer) -> bytes:
    return to_json(status, exclude_none=True) + b"\n"
