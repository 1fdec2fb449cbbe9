"""OpenDocument texts of LibreOffice, read with the standard library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from klsa_search.collection.files.archives import Archive, open_archive
from klsa_search.collection.files.content import (
    CELL,
    ITEM,
    Content,
    SectionBuilder,
    iso_date,
    metadata_of,
    one_line,
)

_PREFIX: Final = "{urn:oasis:names:tc:opendocument:xmlns:"
_TEXT: Final = f"{_PREFIX}text:1.0}}"
_TABLE: Final = f"{_PREFIX}table:1.0}}"
_OFFICE: Final = f"{_PREFIX}office:1.0}}"
_HIDDEN: Final = {
    f"{_OFFICE}annotation",
    f"{_TEXT}note-citation",
    f"{_TEXT}table-of-content",
    f"{_TEXT}tracked-changes",
}
_BREAKS: Final = {f"{_TEXT}line-break": "\n", f"{_TEXT}s": " ", f"{_TEXT}tab": " "}
_PARAGRAPHS: Final = (f"{_TEXT}p", f"{_TEXT}h")


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document; headings begin sections."""
    with open_archive(path) as archive:
        metadata = _metadata(archive)
        builder, titles = SectionBuilder(), [metadata.pop("title", "")]
        _add(archive.tree("content.xml"), builder, titles)
    title = next(filter(None, titles), "")
    yield Content(title=title, sections=builder.sections(), metadata=metadata)


def _metadata(archive: Archive) -> dict[str, str]:
    """Return the properties of a document as metadata, and its `title`."""
    meta = archive.optional_tree("meta.xml")
    nodes = () if meta is None else meta.iter()
    properties = {node.tag.rpartition("}")[2]: node.text for node in nodes}
    return metadata_of(
        title=one_line(properties.get("title") or ""),
        author=properties.get("initial-creator") or properties.get("creator"),
        date=iso_date(properties.get("creation-date")) or iso_date(properties.get("date")),
        language=properties.get("language"),
    )


def _add(node: Element, builder: SectionBuilder, titles: list[str], begin: str = "\n\n") -> None:
    """Add the paragraphs, lists and tables in an element, and its headings to `titles`."""
    for child in node:
        if child.tag == f"{_TEXT}h":
            titles.append(one_line(_text(child)))
            level = child.get(f"{_TEXT}outline-level", "")
            builder.begin(titles[-1], min(int(level), 6) if level.isdecimal() else 1)
        elif child.tag == f"{_TEXT}p":
            builder.add(begin + _text(child))
            begin = "\n\n"
        elif child.tag == f"{_TEXT}list-item":
            _add(child, builder, titles, ITEM)
        elif child.tag == f"{_TABLE}table-row":
            cells = [one_line(_text(cell)) for cell in child.iterfind(f"{_TABLE}table-cell")]
            builder.add(f"\n{CELL.join(cells)}\n")
        elif child.tag not in _HIDDEN:
            if child.tag == f"{_TABLE}table":
                builder.add("\n\n")
            _add(child, builder, titles, begin)


def _text(node: Element) -> str:
    """Return the visible text of an element; paragraphs in it begin lines."""
    pieces = [node.text or ""]
    for child in node:
        if child.tag not in _HIDDEN:
            line = "\n" if child.tag in _PARAGRAPHS else ""
            pieces += [line, _BREAKS.get(child.tag) or _text(child), line]
        pieces.append(child.tail or "")
    return "".join(pieces)
