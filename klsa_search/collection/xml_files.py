"""XML: feeds, exports and dumps, in which an element is repeated for each document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Final
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from klsa_search.collection.columns import USUAL_NAMES
from klsa_search.collection.intake import Intake
from klsa_search.collection.lines import head_bytes, open_decompressed, translate_read_errors
from klsa_search.collection.model import Document, TruncatedFile
from klsa_search.errors import CollectionError

_CHUNK: Final = 2**16
_SAMPLE: Final = 2**21  # bytes at the start of a file that decide which element is a document
_NAMED: Final = frozenset(
    ["arr", "bool", "date", "double", "field", "float", "int", "long", "str", "text"]
)
"""Elements of Solr, whose attribute `name` is the name of the field."""
_SINGLE: Final = frozenset(["doc", "document", "entry", "item", "page", "record", "row"])
"""Elements that are a document even if there is only one."""

_SPACE: Final = "{http://www.w3.org/XML/1998/namespace}space"
_XHTML: Final = "{http://www.w3.org/1999/xhtml}"

_DECLARED: Final = re.compile(rb"""<\?xml\b[^>]*?\bencoding\s*=\s*["']([\w.:-]+)""")
_LONGEST_DECLARATION: Final = 256
_OF_EXPAT: Final = (b"utf-8", b"utf-16", b"iso-8859-1", b"us-ascii")

_Path = tuple[str, ...]


def documents(path: Path, intake: Intake) -> Iterator[Document]:
    """Stream the documents of one file; TruncatedFile where it is not valid XML.

    A document is the element with attributes or elements as its fields that is repeated and has
    most of the text. Memory: one document.
    """
    record = _record_path(path)
    if record is None:
        raise CollectionError(
            f"{path}: no element is repeated with fields in it; convert the file to JSON lines or "
            "CSV, or read it as a page with --format text"
        )
    intake.note(path, f"read each <{record[-1]}> as a document")
    elements = (element for at, element in _ended(path, None, record) if at == record)
    records = (
        (f"{path}, <{record[-1]}> {number}", _lowered(_fields(element)))
        for number, element in enumerate(elements, start=1)
    )
    yield from intake.documents(path, records, needs_text=True)


def _lowered(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with the names of documents in lower case."""
    return {
        name.lower() if name.lower() in USUAL_NAMES else name: value
        for name, value in fields.items()
    }


def _record_path(path: Path) -> _Path | None:
    """Return the path of the elements that are documents, by the start of a file, or None."""
    counts: Counter[_Path] = Counter()
    sizes: Counter[_Path] = Counter()
    fault = None
    try:
        for at, element in _ended(path, _SAMPLE):
            if at[-1] not in _NAMED and _is_record(element):
                counts[at] += 1
                sizes[at] += sum(map(len, element.itertext()))
                sizes[at] += sum(map(len, element.attrib.values()))
    except TruncatedFile as error:  # the documents before are read all the same
        fault = error
    repeated = [at for at, count in counts.items() if count > 1 or at[-1].lower() in _SINGLE]
    if fault and not repeated:
        raise fault
    return max(repeated, key=lambda at: (sizes[at], -len(at)), default=None)


def _is_record(element: Element) -> bool:
    """Return whether an element consists of fields: no text stands between its elements."""
    if len(element) == 0:
        return len(element.attrib) > 1 and not _has_text(element.text)
    return not _is_mixed(element)


def _is_mixed(element: Element) -> bool:
    """Return whether an element is a text with elements in it, such as a page of a feed."""
    return _has_text(element.text) or any(
        _has_text(child.tail) or child.tag.startswith(_XHTML) for child in element
    )


def _has_text(text: str | None) -> bool:
    return bool(text and not text.isspace())


def _ended(
    path: Path, size: int | None, record: _Path | None = None
) -> Iterator[tuple[_Path, Element]]:
    """Yield each element with its path, at its end.

    size    of bytes to read, at most
    record  path of the elements that are used: after them, and others outside, memory is freed
    """
    # Expat loads no external entities, and limits how much internal ones may expand.
    parser: XMLPullParser[Any] = XMLPullParser(("start", "end"))
    open_elements: list[Element] = []
    at: _Path = ()
    with translate_read_errors(path), open_decompressed(path) as raw:
        stream, read = _decoded(raw, path), 0
        while size is None or read < size:
            try:
                if chunk := stream.read(_CHUNK):
                    parser.feed(chunk)
                else:
                    parser.close()
                events: list[Any] = list(parser.read_events())
            except ParseError as error:
                raise TruncatedFile(f"{path}: invalid XML ({error}); correct it") from None
            except (LookupError, ValueError) as error:
                raise TruncatedFile(
                    f"{path}: cannot be decoded ({error}); convert it to UTF-8"
                ) from None
            for event, element in events:
                if event == "start":
                    open_elements.append(element)
                    at = (*at, _local(element.tag))
                    continue
                yield at, element
                open_elements.pop()
                is_inside = record is None or (at != record and at[: len(record)] == record)
                if open_elements and not is_inside:
                    open_elements[-1].clear()
                at = at[:-1]
            if not chunk:
                return
            read += len(chunk)


def _decoded(stream: IO[bytes], path: Path) -> IO[bytes] | TextIOWrapper:
    """Return a stream of text if Expat does not know the declared encoding, else of bytes."""
    declared = _DECLARED.match(head_bytes(path, _LONGEST_DECLARATION))
    if declared is None or declared[1].lower() in _OF_EXPAT:
        return stream
    try:
        return TextIOWrapper(stream, declared[1].decode("ascii"), newline="")
    except LookupError as error:
        raise TruncatedFile(f"{path}: cannot be decoded ({error}); convert it to UTF-8") from None


def _fields(element: Element) -> dict[str, Any]:
    """Return the attributes and elements of an element by name."""
    fields: dict[str, Any] = _attributes(element)
    for child in element:
        name, attributes = _local(child.tag), _attributes(child)
        if name in _NAMED and "name" in attributes:
            name = attributes.pop("name")
            if _local(child.tag) == "arr":
                for member in child:
                    _add(fields, name, "".join(member.itertext()).strip())
                continue
        has_fields = len(child) > 0 and not _is_mixed(child)
        if has_fields or (attributes and not _has_text("".join(child.itertext()))):
            _add(fields, name, _fields(child))
            continue
        _add(fields, name, "".join(child.itertext()).strip())
        for attribute, value in attributes.items():
            _add(fields, f"{name}.{attribute}", value)
    return fields


def _attributes(element: Element) -> dict[str, str]:
    """Return the attributes of an element, without that which says that blanks count."""
    return {_local(name): value for name, value in element.attrib.items() if name != _SPACE}


def _add(fields: dict[str, Any], name: str, value: Any) -> None:
    """Add a value; those of the same name become a list."""
    if name not in fields:
        fields[name] = value
    elif isinstance(fields[name], list):
        fields[name].append(value)
    else:
        fields[name] = [fields[name], value]


def _local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition("}")[2]
