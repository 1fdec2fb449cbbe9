"""JSON sources: JSON Lines, and one JSON array, one element in memory at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.intake import Intake, TruncatedFile, document_fault, text_fault
from klsa_search.collection.lines import LineRange, lines, open_decompressed, translate_read_errors
from klsa_search.collection.mappings import as_document
from klsa_search.collection.model import Document, Query
from klsa_search.errors import CollectionError


def documents(
    path: Path, intake: Intake, *, may_number: bool = True, line_range: LineRange | None = None
) -> Iterator[Document]:
    """Stream the documents of one file; blank lines are passed over, bad ones refused.

    Where the first object has no id, all are numbered, if they may. A line range is read like a file.
    """
    numbered = None if may_number else False
    for number, line in lines(path, line_range=line_range):
        if not line.isspace():
            origin = f"{path}:{number}"
            try:
                record = _record(line, origin)
            except CollectionError as error:
                intake.refuse(error.message)
                continue
            if numbered is None:
                numbered = intake.columns.id_in(record) is None and intake.may_number(path)
            document = intake.document(record, origin, numbered=numbered)
            if document is not None:
                yield document


def queries(path: Path) -> list[Query]:
    """Return the queries of a file of `_id` or `id` and `text`; CollectionError on a bad line.

    Always strict: a query lost in silence would change every measure.
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
    """Make a document of a line, as `lines` gives it; CollectionError begins with `origin`."""
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


_CHUNK: Final = 2**16
_LONGEST: Final = 2**26  # characters of one element: what is broken is not read to its end
_BLANKS: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder()


def array_documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of one file; `Cut` where it is no JSON, for the rest is unknown."""
    numbered: bool | None = None
    for line, element in _elements(path):
        origin = f"{path}:{line}"
        if not isinstance(element, dict):
            intake.refuse(f"{origin}: a {type(element).__name__}, not a JSON object")
            continue
        if numbered is None:
            numbered = intake.columns.id_in(element) is None and intake.may_number(path)
        document = intake.document(element, origin, numbered=numbered)
        if document is not None:
            yield document


def _elements(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line where it begins, element) for each of the array."""
    line = 1
    with (
        translate_read_errors(path, lambda: line),
        open_decompressed(path) as raw,
        TextIOWrapper(raw, "utf-8-sig", errors="surrogateescape", newline="") as stream,
    ):
        held, first, wanted = "", True, "["
        while True:
            bare = held.lstrip(_BLANKS)
            line += held[: len(held) - len(bare)].count("\n")
            held = bare
            if not held:
                held = stream.read(_CHUNK)
                if not held:
                    raise TruncatedFile(f"{path}:{line}: invalid JSON: the array is cut short")
                continue
            if wanted == "[" and held[0] == "[":
                held, wanted = held[1:], ""
            elif wanted == "," and held[0] in ",]":
                if held[0] == "]":
                    return
                held, first, wanted = held[1:], False, ""
            elif wanted:
                raise TruncatedFile(f"{path}:{line}: invalid JSON (expecting {wanted!r})")
            elif first and held[0] == "]":
                return
            else:
                element, end, held = _element(held, stream, f"{path}:{line}")
                yield line, element
                line += held[:end].count("\n")
                held, wanted = held[end:], ","


def _element(held: str, stream: TextIOWrapper, origin: str) -> tuple[Any, int, str]:
    """The element that begins here, where it ends, and what is held by then.

    As much is read as is held already until it is whole, so that no character is read again more
    than once, on average.
    """
    while True:
        fault = None
        try:
            element, end = _DECODER.raw_decode(held)
        except json.JSONDecodeError as error:
            fault = f"{error.msg} at character {error.pos + 1}"
        except (ValueError, RecursionError) as error:
            raise TruncatedFile(f"{origin}: invalid JSON ({error})") from None
        # A number that ends where the text held does may go on.
        more = ""
        if fault is not None or end == len(held):
            more = stream.read(max(len(held), _CHUNK)) if len(held) < _LONGEST else ""
        if fault is None and not more:
            reason = text_fault(held[:end])
            if reason:
                raise TruncatedFile(f"{origin}: the element {reason}")
            return element, end, held
        if not more:
            raise TruncatedFile(f"{origin}: invalid JSON ({fault})")
        held += more
