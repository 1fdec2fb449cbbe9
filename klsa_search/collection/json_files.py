"""JSON Lines, JSON arrays, and objects around a list, one element in memory at a time."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.intake import Intake
from klsa_search.collection.json_layouts import Layout, layout_of
from klsa_search.collection.json_values import without_types
from klsa_search.collection.lines import head, lines, open_text, translate_read_errors
from klsa_search.collection.mappings import as_document
from klsa_search.collection.model import Document, TruncatedFile, text_fault
from klsa_search.errors import CollectionError


def documents(path: Path, intake: Intake, *, may_number: bool = True) -> Iterator[Document]:
    """Stream the documents of one file; blank lines are skipped, invalid ones refused.

    may_number  whether all are numbered if the first has no ID
    Requests of Elasticsearch's bulk API are read as their documents.
    """
    records = _documents_of_requests(_records(path, intake), path, intake)
    yield from intake.documents(path, records, has_ids=not may_number)


def _records(path: Path, intake: Intake) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the object of each line that is not blank, with its origin."""
    for number, line in lines(path):
        if not line.isspace():
            origin = f"{path}:{number}"
            try:
                yield origin, object_of(line, origin)
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
            intake.note(path, "read as bulk requests of Elasticsearch")
            id_ = {"_id": request["_id"]} if "_id" in request else {}
            yield following[0], {**id_, **following[1]}
        elif name in _OTHER_REQUESTS:
            if name == "update":
                next(records, None)  # what it changes
            intake.note(path, f"left out {name} requests, which have no whole document")
        else:
            yield origin, record


def document_of(line: str, origin: str) -> Document:
    """Return the document of a line; CollectionError begins with `origin`."""
    return as_document(object_of(line, origin), origin)


def object_of(line: str, origin: str) -> dict[str, Any]:
    """Return the object of a line; CollectionError begins with `origin`."""
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
        raise CollectionError(f"{origin}: invalid JSON ({_limit(error)})") from None
    if not isinstance(record, dict):
        raise CollectionError(f"{origin}: a {type(record).__name__}, not a JSON object")
    return without_types(record) if _TYPED in line else record


def _limit(error: ValueError | RecursionError) -> str:
    """Return which limit of Python's decoder a value exceeds, and what to do."""
    if isinstance(error, RecursionError):
        return "objects are nested too deeply; flatten them"
    return "a whole number has too many digits; write it as a text, in quotes"


_TYPED: Final = '"$'  # in the text of a value that may have types of MongoDB
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


def json_format(path: Path) -> str | None:
    """Return json or jsonl for a file that begins with an object or an array, else None.

    json is an array, an object of several lines, or one that encloses a list of documents.
    """
    start = head(path).lstrip(_BLANKS)
    if ARRAY_START.match(start):
        return "json"
    if not start.startswith("{") or start.startswith("{\\"):  # as RTF begins
        return None
    size = CHUNK
    while "\n" not in start and size < _LONGEST:  # to the end of a long first line
        size *= 2
        longer = head(path, size).lstrip(_BLANKS)
        if len(longer) == len(start):
            break
        start = longer
    try:
        first, end = _LENIENT.raw_decode(start)
    except json.JSONDecodeError as error:
        line, _, rest = start.partition("\n")
        # An object that goes on in the second line, rather than a faulty line.
        goes_on = error.pos >= len(line.rstrip()) and rest.lstrip()[:1] in ('"', "}", "/")
        return "json" if goes_on else "jsonl"
    except (ValueError, RecursionError):
        return "jsonl"
    following, is_alone = start[end:].partition("\n")[0].strip(), not start[end:].strip()
    if "\n" in start[:end].strip() or following.startswith("{"):
        return "json"
    layout = layout_of(first) if is_alone else None
    return "json" if layout and layout.notes else "jsonl"


def json_documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of one file; TruncatedFile where it is not valid JSON.

    The file is an array of objects or texts, objects or arrays of objects one after another, or one
    object, see `layout_of`.
    """
    is_array = head(path, CHUNK).lstrip(_BLANKS).startswith("[")
    rows = elements(path) if is_array else _values(path)
    first = [] if is_array else list(islice(rows, 2))
    if len(first) == 1:
        rows = _enclosed(*first[0], path, intake)
    elif intake.options.records:
        raise CollectionError(
            f"{path}: is no single object with lists; leave out records", field="records"
        )
    else:
        rows = chain(first, rows)
    yield from intake.documents(path, _objects(rows, path, intake))


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
            intake.refuse(
                f"{origin}: a {type(row).__name__}, not a JSON object; write names and values, as "
                '{"id": ..., "text": ...}'
            )


def _enclosed(
    line: int, content: dict[str, Any], path: Path, intake: Intake
) -> Iterator[tuple[int, Any]]:
    """Yield the documents of the only object of a file, which begins at a line."""
    records = intake.options.records
    try:
        layout = layout_of(
            content, intake.columns, takes_objects=intake.takes_objects, records=records
        )
    except CollectionError as error:
        raise CollectionError(f"{path}: {error.message}", field=error.field) from None
    if layout is None and not intake.takes_objects:
        raise CollectionError(f"{path}: no array or lines of objects")
    layout = layout or Layout([content], [])
    for note in layout.notes:
        intake.note(path, note)
    yield from ((line, row) for row in layout.rows)


class _Values:
    """The values in a stream of JSON, read one after another.

    line  number of the line that is read
    """

    def __init__(self, stream: TextIOWrapper, path: Path) -> None:
        self._stream, self._path, self._buffer = stream, path, ""
        self.line = 1

    def peek(self) -> str:
        """Return the next character that is not blank; "" at the end of the file."""
        while True:
            stripped = self._buffer.lstrip(_BLANKS)
            self.line += self._buffer[: len(self._buffer) - len(stripped)].count("\n")
            self._buffer = stripped or self._stream.read(CHUNK)
            if stripped or not self._buffer:
                return self._buffer[:1]

    def skip(self, expected: str) -> str:
        """Read one of these characters, and return it."""
        character = self.peek()
        if not character:
            raise self.fault(": the array is cut short")
        if character not in expected:
            raise self.fault(f" (expecting {expected[0]!r})")
        self._buffer = self._buffer[1:]
        return character

    def next(self) -> tuple[int, Any]:
        """Read a value; return the number of its first line, and the value.

        One with a name that is given twice is a RepeatedName. The buffer doubles until the value is
        complete, so parsing it is linear in its length.
        """
        begin = self.line
        while True:
            fault, remedy, more = "", "", ""
            try:
                value, end = DECODER.raw_decode(self._buffer)
            except RepeatedName as repeated:
                value, (_, end) = repeated, _LENIENT.raw_decode(self._buffer)
            except json.JSONDecodeError as error:
                fault = f" ({error.msg.removesuffix(' at')} at character {error.pos + 1})"
                remedy = _remedy(self._buffer, error.pos)
                if error.msg.startswith("Unterminated") or error.pos >= len(self._buffer.rstrip()):
                    remedy = "; the file ends within a value: fetch or export it again"
            except (ValueError, RecursionError) as error:
                raise self.fault(f" ({_limit(error)})") from None
            # A number at the end of the buffer may continue.
            if (fault or end == len(self._buffer)) and len(self._buffer) < _LONGEST:
                more = self._stream.read(max(len(self._buffer), CHUNK))
            if more:
                self._buffer += more
                continue
            if fault:
                raise self.fault(f"{fault}{remedy}")
            text, self._buffer = self._buffer[:end], self._buffer[end:]
            if reason := text_fault(text):
                raise TruncatedFile(f"{self._path}:{begin}: the element {reason}; correct it")
            self.line += text.count("\n")
            return begin, without_types(value) if _TYPED in text else value

    def fault(self, fact: str) -> TruncatedFile:
        """Return the error of invalid JSON."""
        return TruncatedFile(f"{self._path}:{self.line}: invalid JSON{fact}")


@contextmanager
def _open_values(path: Path) -> Iterator[_Values]:
    line = 1
    with translate_read_errors(path, lambda: line), open_text(path) as stream:
        values = _Values(stream, path)
        try:
            yield values
        finally:
            line = values.line


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number of its first line, object) for each object of a file of several."""
    with _open_values(path) as values:
        while character := values.peek():
            if character != "{":
                raise values.fault(" (expecting an object); write an array or lines of objects")
            line, value = values.next()
            if isinstance(value, RepeatedName):
                raise TruncatedFile(f"{path}:{line}: {value}")
            yield line, value


def elements(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number of its first line, element) for each element of the arrays of a file."""
    with _open_values(path) as values:
        of_texts = False
        while values.peek():
            if of_texts:
                raise TruncatedFile(
                    f"{path}:{values.line}: another array of texts; write one array, or an object "
                    "with id and text in each line"
                )
            values.skip("[")
            if values.peek() == "]":
                values.skip("]")
                continue
            following = ","
            while following == ",":
                if (character := values.peek()) == "]":
                    raise values.fault(" (expecting a value); remove the comma before ']'")
                if not character:
                    raise values.fault(": the array is cut short")
                line, value = values.next()
                of_texts = isinstance(value, str)
                yield line, value
                following = values.skip(",]")


def _remedy(text: str, at: int) -> str:
    """Return what to do about a fault at a character, as the end of a message; "" if unknown."""
    before, after = text[:at].rstrip(), text[at:].lstrip()
    if after[:1] in ("}", "]") and before.endswith(","):
        return f"; remove the comma before {after[0]!r}"
    if after.startswith(",") and before.endswith("}"):
        return "; remove the comma after the object: a line has no other"
    if after.startswith(("//", "/*", "#")):
        return "; remove the comment: JSON has none"
    if after.startswith("'"):
        return "; use double quotes instead of single quotes"
    if after.startswith("{") and before.endswith("}"):
        return "; write each object in a line of its own"
    return ""
