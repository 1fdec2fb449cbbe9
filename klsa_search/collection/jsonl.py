"""JSON lines: one object a line, for documents (and BEIR's queries)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from klsa_search.collection.intake import Intake, document_fault, text_fault
from klsa_search.collection.lines import Stretch, lines
from klsa_search.collection.model import Document, Query
from klsa_search.collection.record import as_document
from klsa_search.errors import CollectionError


def documents(
    path: Path, intake: Intake, *, may_number: bool = True, stretch: Stretch | None = None
) -> Iterator[Document]:
    """Stream the documents of one file; blank lines are passed over, bad ones refused.

    Where the first object has no id, all are numbered, if they may. A stretch is read like a file.
    """
    numbered = None if may_number else False
    for number, line in lines(path, stretch=stretch):
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
