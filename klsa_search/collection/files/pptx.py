"""PowerPoint presentations, read with the standard library."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree.ElementTree import Element

from klsa_search.collection.files.archives import Archive, open_archive
from klsa_search.collection.files.content import (
    CELL,
    ITEM,
    Content,
    Section,
    SectionBuilder,
    heading_line,
    one_line,
)

_A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_REFERENCE: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PRESENTATION: Final = "ppt/presentation.xml"
_TITLES: Final = ("title", "ctrTitle")
_FOOTERS: Final = ("dt", "ftr", "hdr", "sldImg", "sldNum")


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document with one section per slide, which ends with its notes."""
    with open_archive(path) as archive:
        metadata = archive.properties()
        slides = _targets(archive, _PRESENTATION)
        names = [
            slides.get(node.get(_REFERENCE, ""), ("", ""))[1]
            for node in archive.tree(_PRESENTATION).iter(f"{_P}sldId")
        ]
        sections = [
            Section(f"slide {number}", _slide(archive, name))
            for number, name in enumerate(names, start=1)
        ]
    yield Content(
        title=metadata.pop("title", ""), sections=sections, metadata=metadata, numbered=True
    )


def _targets(archive: Archive, part: str) -> dict[str, tuple[str, str]]:
    """Return the kinds and names of the parts that a part refers to, by their ids."""
    folder, name = posixpath.split(part)
    tree = archive.optional_tree(f"{folder}/_rels/{name}.rels")
    return {
        node.get("Id", ""): (
            node.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, node.get("Target", "")))[1:],
        )
        for node in (tree if tree is not None else ())
    }


def _slide(archive: Archive, name: str) -> str:
    """Return the text of a slide, with its title as a heading, and of its notes."""
    titles: list[str] = []
    builder = SectionBuilder()
    _add(archive.tree(name), builder, titles)
    for kind, notes in _targets(archive, name).values():
        tree = archive.optional_tree(notes) if kind == "notesSlide" else None
        if tree is not None:
            _add(tree, builder, [])
    texts = [section.text for section in builder.sections()]
    return "\n\n".join(filter(None, [heading_line(one_line(" ".join(titles)), 1), *texts]))


def _add(slide: Element, builder: SectionBuilder, titles: list[str]) -> None:
    """Add the text of the shapes and tables of a slide, and that of its title to `titles`."""
    for node in slide.iter():
        if node.tag == f"{_P}sp":
            placeholder = node.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
            kind = placeholder.get("type", "body") if placeholder is not None else ""
            texts = [_text(paragraph) for paragraph in node.iterfind(f"{_P}txBody/{_A}p")]
            if kind in _TITLES:
                titles += texts
            elif kind not in _FOOTERS:
                builder.add("\n\n")
                begin = ITEM if kind == "body" and len(texts) > 1 else "\n"
                builder.add("".join(f"{begin}{text}\n" for text in texts))
        elif node.tag == f"{_A}tr":
            cells = [one_line(_text(cell)) for cell in node.iterfind(f"{_A}tc")]
            builder.add(f"{CELL.join(cells)}\n")


def _text(node: Element) -> str:
    """Return the text of a paragraph, or of all in a cell of a table."""
    pieces = []
    for part in node.iter():
        if part.tag == f"{_A}t":
            pieces.append(part.text or "")
        elif part.tag in (f"{_A}br", f"{_A}p"):
            pieces.append("\n")
    return "".join(pieces).strip()
