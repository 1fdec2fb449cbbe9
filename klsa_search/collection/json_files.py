"""JSON Lines, JSON arrays, and objects around a list, one element in memory at a time."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.extended_json import without_types
from klsa_search.collection.intake import Intake, TruncatedFile, document_fault, text_fault
from klsa_search.collection.lines import head, lines, open_decompressed, translate_read_errors
from klsa_search.collection.mappings import (
    COMMON_NAMES,
    ID_NAMES,
    PLAIN,
    TEXT_NAMES,
    Columns,
    as_document,
)
from klsa_search.collection.model import Document, Topic
from klsa_search.collection.nested import has_path, path_names
from klsa_search.errors import CollectionError


def documents(path: Path, intake: Intake, *, may_number: bool = True) -> Iterator[Document]:
    """Stream the documents of one file; blank lines are skipped, invalid ones refused.

    If the first object has no id, all are numbered, if allowed; if it has no title and text, names
    as in `Columns.completed` are used for objects without. Requests of Elasticsearch's bulk API are
    read as their documents.
    """
    records = _documents_of_requests(_records(path, intake), path, intake)
    yield from _documents(records, path, intake, may_number=may_number)


def _documents(
    records: Iterable[tuple[str, Mapping[str, Any]]],
    path: Path,
    intake: Intake,
    *,
    may_number: bool,
) -> Iterator[Document]:
    """Yield the documents of records with their origins; the first decides about names and IDs."""
    columns, numbered, begun = None, False, not may_number
    for origin, record in records:
        if not begun:
            columns, numbered = intake.begin(path, path_names(record))
            begun = True
        document = intake.document(record, origin, columns, numbered=numbered)
        if document is not None:
            yield document


def _records(path: Path, intake: Intake) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the object of each line that is not blank, with its origin."""
    for number, line in lines(path):
        if not line.isspace():
            origin = f"{path}:{number}"
            try:
                yield origin, _record(line, origin)
            except CollectionError as error:
                intake.refuse(error.message)


_WRITES: Final = ("create", "index")
_OTHER_REQUESTS: Final = ("delete", "update")


def _documents_of_requests(
    records: Iterator[tuple[str, dict[str, Any]]], path: Path, intake: Intake
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the documents of bulk requests with their IDs, and other records as they are."""
    for origin, record in records:
        name, request = next(iter(record.items()), ("", None))
        if (
            len(record) > 1
            or not isinstance(request, dict)
            or not all(key.startswith("_") for key in request)
        ):
            yield origin, record
        elif name in _WRITES and (following := next(records, None)) is not None:
            intake.note_once(path, "read as bulk requests of Elasticsearch")
            id_ = {"_id": request["_id"]} if "_id" in request else {}
            yield following[0], {**id_, **following[1]}
        elif name in _OTHER_REQUESTS:
            if name == "update":
                next(records, None)  # what it changes
            intake.note_once(path, f"left out {name} requests, which have no whole document")
        else:
            yield origin, record


def queries(path: Path) -> list[Topic]:
    """Return the queries of a file of `_id` or `id` and `text`; CollectionError for a bad line.

    Always strict: a skipped query would change every measure.
    """
    found: dict[str, Topic] = {}
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
        found[document.id] = Topic(id=document.id, text=document.text)
    return list(found.values())


def document_of(line: str, origin: str) -> Document:
    """Return the document of a line; CollectionError begins with `origin`."""
    return as_document(_record(line, origin), origin)


def _record(line: str, origin: str) -> dict[str, Any]:
    fault = text_fault(line)
    if fault:
        raise CollectionError(f"{origin}: the line {fault}")
    try:
        record = DECODER.decode(line)
    except json.JSONDecodeError as error:
        raise CollectionError(
            f"{origin}: invalid JSON ({error.msg.removesuffix(' at')} at column "
            f"{error.pos + 1})"
            f"{_remedy(line, error.pos)}"
        ) from None
    except RepeatedName as error:
        raise CollectionError(f"{origin}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CollectionError(f"{origin}: invalid JSON ({error})") from None
    if not isinstance(record, dict):
        raise CollectionError(f"{origin}: a {type(record).__name__}, not a JSON object")
    return without_types(record) if _TYPED in line else record


_TYPED: Final = '"$'
"""In the text of a value that may have types of MongoDB."""

ARRAY_START: Final = re.compile(r"\[\s*(?:[{\"]|\]\s*\Z)")
"""Matches the beginning of an array of objects or texts, or an empty one."""
CHUNK: Final = 2**16
_LONGEST: Final = 2**28  # characters of one value; an invalid one is not read to its end
_BLANKS: Final = " \t\r\n\ufeff"


class RepeatedName(ValueError):
    """A name occurs twice in a JSON object, of which Python's decoder keeps the last value."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise RepeatedName(
            f"the name {counts.most_common(1)[0][0]!r} is given twice in an object; give it once, "
            "with a list for several values"
        )
    return record


_LENIENT: Final = json.JSONDecoder(
    parse_constant=lambda name: None if name == "NaN" else float(name)
)
DECODER: Final = json.JSONDecoder(parse_constant=_LENIENT.parse_constant, object_pairs_hook=_object)
"""Reads NaN, as Python and pandas write a missing number, as null; RepeatedName."""
_LISTS_SHOWN: Final = 3


def json_format(path: Path) -> str | None:
    """Return json or jsonl for a file that begins with an object or an array, else None.

    json is an array, an object of several lines, or one that encloses a list of documents.
    """
    start = head(path).lstrip(_BLANKS)
    if ARRAY_START.match(start):
        return "json"
    if not start.startswith("{"):
        return None
    try:
        first, end = _LENIENT.raw_decode(start)
    except json.JSONDecodeError as error:
        line, _, rest = start.partition("\n")
        # An object that goes on in the second line, rather than a faulty line.
        goes_on = error.pos >= len(line.rstrip()) and rest.lstrip()[:1] in ('"', "}", "/")
        return "json" if goes_on else "jsonl"
    except (ValueError, RecursionError):
        return "jsonl"
    alone = not start[end:].strip() and not _is_document(first)
    encloses = alone and (any(True for _ in _lists(first)) or _by_id(first) is not None)
    return "json" if encloses or "\n" in start[:end].strip() else "jsonl"


def json_documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of one file; TruncatedFile where it is not valid JSON.

    The file is an array of objects or texts, objects or arrays of objects one after another, or one
    object around a list of documents, which may be nested deeper; or an object with a document for
    each ID.
    """
    start = head(path, CHUNK).lstrip(_BLANKS)
    rows = elements(path) if start.startswith("[") else _enclosed(path, intake)
    yield from _documents(_objects(rows, path, intake), path, intake, may_number=True)


def _objects(
    rows: Iterable[tuple[int, Any]], path: Path, intake: Intake
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield rows with their origins, a text as an object with a text; others are refused."""
    for line, row in rows:
        origin = f"{path}:{line}"
        record = {"text": row} if isinstance(row, str) else row
        if isinstance(record, dict):
            yield origin, record
        elif isinstance(row, RepeatedName):
            intake.refuse(f"{origin}: {row}")
        else:
            intake.refuse(f"{origin}: a {type(row).__name__}, not a JSON object")


def _is_document(record: Mapping[str, Any], columns: Columns = PLAIN) -> bool:
    """Return whether an object has a title or text itself, under any name."""
    if any(has_path(record, name) for name in columns.names()):
        return True
    names = [name for name, value in record.items() if not isinstance(value, dict)]
    if _has_text(record):
        return True
    # A board has a title, too, but its cards are the documents.
    if any(_has_texts(rows) for _, rows in _lists(record)):
        return False
    return not columns.lacks(names) or bool(columns.common("title", names))


def _enclosed(path: Path, intake: Intake) -> Iterator[tuple[int, Any]]:
    """Yield the objects of a file, or the documents in its only one, each with its line."""
    objects = _values(path)
    first = next(objects, None)
    if first is None:
        return
    second = next(objects, None)
    alone = _is_document(first[1], intake.columns) and (
        intake.takes_objects or not intake.columns.lacks(first[1])
    )
    if second is not None or alone:
        yield first
        if second is not None:
            yield second
            yield from objects
        return
    line, whole = first
    lists = dict(_lists(whole))
    with_texts = {name: rows for name, rows in lists.items() if _has_texts(rows)}
    if len(lists) > 1 and len(with_texts) == 1:
        others = ", ".join(repr(name) for name in lists if name not in with_texts)
        intake.note(path, f"the lists {others} are not read")
        lists = with_texts
    if len(lists) > 1:
        names = ", ".join(repr(name) for name in list(lists)[:_LISTS_SHOWN])
        raise CollectionError(
            f"{path}: an object with {len(lists):,} lists of objects: {names}; write one of them "
            f"to a file, as with: jq -c '.{next(iter(with_texts or lists))}[]' {path.name} > "
            "documents.jsonl"
        )
    by_id = None if lists else _by_id(whole)
    if lists:
        name, rows = next(iter(lists.items()))
        intake.note(path, f"read the list {name!r} of an object")
    elif by_id is not None:
        rows = by_id
        intake.note(path, "read as an object with a document for each ID")
    elif intake.takes_objects:
        rows = [whole]
    else:
        raise CollectionError(f"{path}: no array or lines of objects")
    for row in rows:
        yield line, row


def _has_texts(rows: list[Any]) -> bool:
    """Return whether the first object of a list, or an object in it, has a text."""
    inner = [value for value in rows[0].values() if isinstance(value, dict)]
    return any(_has_text(record) for record in [rows[0], *inner])


def _has_text(record: Mapping[str, Any]) -> bool:
    names = [name for name, value in record.items() if not isinstance(value, dict)]
    return bool(set(TEXT_NAMES).intersection(names) or PLAIN.common("text", names))


def _lists(whole: Mapping[str, Any], outer: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of objects in an object, with their paths; not those in lists."""
    for name, value in whole.items():
        if isinstance(value, dict):
            yield from _lists(value, f"{outer}{name}.")
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            yield f"{outer}{name}", value


def _by_id(whole: Mapping[str, Any]) -> list[Any] | None:
    """Return the rows of an object of texts or objects by ID; None if it is something else."""
    while len(whole) == 1 and all(isinstance(value, dict) for value in whole.values()):
        (inner,) = whole.values()
        if _is_document(inner):
            break
        whole = inner
    if whole and all(isinstance(row, dict) and _is_document(row) for row in whole.values()):
        return [{"id": id_, **row} for id_, row in whole.items()]
    if len(whole) > 1 and not _names_id(whole) and all(isinstance(v, str) for v in whole.values()):
        return [{"id": id_, "text": row} for id_, row in whole.items()]
    return None


def _names_id(record: Mapping[str, Any]) -> bool:
    return not {*ID_NAMES, *COMMON_NAMES["id"]}.isdisjoint(record)


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number of its first line, object) for each object of a file of several."""
    line = 1
    with (
        translate_read_errors(path, lambda: line),
        open_decompressed(path) as raw,
        TextIOWrapper(raw, "utf-8-sig", errors="surrogateescape", newline="") as stream,
    ):
        buffer = ""
        while True:
            stripped = buffer.lstrip(_BLANKS)
            line += buffer[: len(buffer) - len(stripped)].count("\n")
            buffer = stripped
            if not buffer:
                buffer = stream.read(CHUNK)
                if not buffer:
                    return
                continue
            if buffer[0] != "{":
                raise TruncatedFile(f"{path}:{line}: invalid JSON (expecting '{{')")
            element, end, buffer = _element(buffer, stream, f"{path}:{line}")
            if isinstance(element, RepeatedName):
                raise TruncatedFile(f"{path}:{line}: {element}")
            yield line, element
            line += buffer[:end].count("\n")
            buffer = buffer[end:]


def elements(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number of its first line, element) for each element of the array."""
    line = 1
    with (
        translate_read_errors(path, lambda: line),
        open_decompressed(path) as raw,
        TextIOWrapper(raw, "utf-8-sig", errors="surrogateescape", newline="") as stream,
    ):
        buffer, first, expected, ended, of_texts = "", True, "[", False, False
        while True:
            stripped = buffer.lstrip(_BLANKS)
            line += buffer[: len(buffer) - len(stripped)].count("\n")
            buffer = stripped
            if not buffer:
                buffer = stream.read(CHUNK)
                if not buffer:
                    if ended:
                        return
                    raise TruncatedFile(f"{path}:{line}: invalid JSON: the array is cut short")
                continue
            if ended and of_texts:
                raise TruncatedFile(
                    f"{path}:{line}: another array of texts; write one array, or an object with "
                    "id and text in each line"
                )
            if expected == "[" and buffer[0] == "[":
                buffer, expected, first, ended = buffer[1:], "", True, False
            elif expected == "," and buffer[0] in ",]":
                ended, first = buffer[0] == "]", False
                buffer, expected = buffer[1:], "[" if ended else ""
            elif expected:
                raise TruncatedFile(f"{path}:{line}: invalid JSON (expecting {expected!r})")
            elif first and buffer[0] == "]":
                buffer, expected, ended = buffer[1:], "[", True
            elif buffer[0] == "]":
                raise TruncatedFile(
                    f"{path}:{line}: invalid JSON (expecting a value); remove the comma before ']'"
                )
            else:
                element, end, buffer = _element(buffer, stream, f"{path}:{line}")
                of_texts = isinstance(element, str)
                yield line, element
                line += buffer[:end].count("\n")
                buffer, expected = buffer[end:], ","


def _element(buffer: str, stream: TextIOWrapper, origin: str) -> tuple[Any, int, str]:
    """Return the element at the start of the buffer, its end, and the buffer as far as read.

    An element with a name that is given twice is a RepeatedName.

    The buffer doubles until the element is complete, so parsing it is linear in its length.
    """
    while True:
        fault, remedy = None, ""
        try:
            element, end = DECODER.raw_decode(buffer)
        except RepeatedName as repeated:
            element, (_, end) = repeated, _LENIENT.raw_decode(buffer)
        except json.JSONDecodeError as error:
            fault = f"{error.msg.removesuffix(' at')} at character {error.pos + 1}"
            remedy = _remedy(buffer, error.pos)
        except (ValueError, RecursionError) as error:
            raise TruncatedFile(f"{origin}: invalid JSON ({error})") from None
        # A number at the end of the buffer may continue.
        more = ""
        if fault is not None or end == len(buffer):
            more = stream.read(max(len(buffer), CHUNK)) if len(buffer) < _LONGEST else ""
        if fault is None and not more:
            reason = text_fault(buffer[:end])
            if reason:
                raise TruncatedFile(f"{origin}: the element {reason}")
            is_typed = _TYPED in buffer[:end]
            return without_types(element) if is_typed else element, end, buffer
        if not more:
            raise TruncatedFile(f"{origin}: invalid JSON ({fault}){remedy}")
        buffer += more


def _remedy(text: str, at: int) -> str:
    """Return what to do about a fault at a character, as the end of a message; "" if unknown."""
    before, after = text[:at].rstrip(), text[at:].lstrip()
    if after[:1] in ("}", "]") and before.endswith(","):
        return f"; remove the comma before {after[0]!r}"
    if after.startswith(("//", "/*", "#")):
        return "; remove the comment: JSON has none"
    if after.startswith("'"):
        return "; use double quotes instead of single quotes"
    return ""
