"""JSON Lines, and JSON arrays of objects, one element in memory at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.intake import Intake, TruncatedFile, document_fault, text_fault
from klsa_search.collection.lines import lines, open_decompressed, translate_read_errors
from klsa_search.collection.mappings import as_document
from klsa_search.collection.model import Document, Query
from klsa_search.errors import CollectionError


def documents(path: Path, intake: Intake, *, may_number: bool = True) -> Iterator[Document]:
    """Stream the documents of one file; blank lines are skipped, invalid ones refused.

    If the first object has no id, all are numbered, if allowed; if it has no title and text, names
    as in `Columns.completed` are used for objects without.
    """
    columns, numbered, begun = None, False, not may_number
    for number, line in lines(path):
        if not line.isspace():
            origin = f"{path}:{number}"
            try:
                record = _record(line, origin)
            except CollectionError as error:
                intake.refuse(error.message)
                continue
            if not begun:
                columns, numbered = intake.begin(path, list(record))
                begun = True
            document = intake.document(record, origin, columns, numbered=numbered)
            if document is not None:
                yield document


def queries(path: Path) -> list[Query]:
    """Return the queries of a file of `_id` or `id` and `text`; CollectionError for a bad line.

    Always strict: a skipped query would change every measure.
    """
    found: dict[str, Query] = {}
    for number, line in lines(path):
        if line.isspace():
            continue
        document = document_of(line, f"{path}:{number}")
        fault = document_fault(document)
        if fault and document.id.strip():
            raise CollectionError(f"{path}:{number}: {fault}; correct the line")
        if not document.id.strip() or document.id in found:
            fact = f"{document.id!r} is used before" if document.id.strip() else "is blank"
            raise CollectionError(f"{path}:{number}: the query id {fact}; correct the line")
        found[document.id] = Query(id=document.id, text=document.text)
    return list(found.values())


def document_of(line: str, origin: str) -> Document:
    """Return the document of a line; CollectionError begins with `origin`."""
    return as_document(_record(line, origin), origin)


def _record(line: str, origin: str) -> dict[str, Any]:
    fault = text_fault(line)
    if fault:
        raise CollectionError(f"{origin}: the line {fault}")
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise CollectionError(
            f"{origin}: invalid JSON ({error.msg} at column {error.pos + 1})"
        ) from None
    except (ValueError, RecursionError) as error:
        raise CollectionError(f"{origin}: invalid JSON ({error})") from None
    if not isinstance(record, dict):
        raise CollectionError(f"{origin}: a {type(record).__name__}, not a JSON object")
    return record


ARRAY_START: Final = re.compile(r"\[\s*(?:\{|\]\s*\Z)")
"""Matches the beginning of an array of objects, or an empty one."""
_CHUNK: Final = 2**16
_LONGEST: Final = 2**26  # characters of one element; an invalid one is not read to its end
_BLANKS: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder()


def array_documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of one file; TruncatedFile where it is not valid JSON."""
    columns, numbered, begun = None, False, False
    for line, element in _elements(path):
        origin = f"{path}:{line}"
        if not isinstance(element, dict):
            intake.refuse(f"{origin}: a {type(element).__name__}, not a JSON object")
            continue
        if not begun:
            columns, numbered = intake.begin(path, list(element))
            begun = True
        document = intake.document(element, origin, columns, numbered=numbered)
        if document is not None:
            yield document


def _elements(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number of its first line, element) for each element of the array."""
    line = 1
    with (
        translate_read_errors(path, lambda: line),
        open_decompressed(path) as raw,
        TextIOWrapper(raw, "utf-8-sig", errors="surrogateescape", newline="") as stream,
    ):
        buffer, first, expected = "", True, "["
        while True:
            stripped = buffer.lstrip(_BLANKS)
            line += buffer[: len(buffer) - len(stripped)].count("\n")
            buffer = stripped
            if not buffer:
                buffer = stream.read(_CHUNK)
                if not buffer:
                    raise TruncatedFile(f"{path}:{line}: invalid JSON: the array is cut short")
                continue
            if expected == "[" and buffer[0] == "[":
                buffer, expected = buffer[1:], ""
            elif expected == "," and buffer[0] in ",]":
                if buffer[0] == "]":
                    return
                buffer, first, expected = buffer[1:], False, ""
            elif expected:
                raise TruncatedFile(f"{path}:{line}: invalid JSON (expecting {expected!r})")
            elif first and buffer[0] == "]":
                return
            else:
                element, end, buffer = _element(buffer, stream, f"{path}:{line}")
                yield line, element
                line += buffer[:end].count("\n")
                buffer, expected = buffer[end:], ","


def _element(buffer: str, stream: TextIOWrapper, origin: str) -> tuple[Any, int, str]:
    """Return the element at the start of the buffer, its end, and the buffer as far as read.

    The buffer doubles until the element is complete, so parsing it is linear in its length.
    """
    while True:
        fault = None
        try:
            element, end = _DECODER.raw_decode(buffer)
        except json.JSONDecodeError as error:
            fault = f"{error.msg} at character {error.pos + 1}"
        except (ValueError, RecursionError) as error:
            raise TruncatedFile(f"{origin}: invalid JSON ({error})") from None
        # A number at the end of the buffer may continue.
        more = ""
        if fault is not None or end == len(buffer):
            more = stream.read(max(len(buffer), _CHUNK)) if len(buffer) < _LONGEST else ""
        if fault is None and not more:
            reason = text_fault(buffer[:end])
            if reason:
                raise TruncatedFile(f"{origin}: the element {reason}")
            return element, end, buffer
        if not more:
            raise TruncatedFile(f"{origin}: invalid JSON ({fault})")
        buffer += more
