"""PDF, read with PDFium, which recovers most damaged files and has one type of exception."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from klsa_search.collection.files.content import (
    Content,
    Section,
    Unreadable,
    iso_date,
    metadata_of,
    normalise_space,
    one_line,
)
from klsa_search.collection.files.pdf_layout import Line, layout_of, page_text
from klsa_search.collection.lines import read_decompressed

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage

_DATE: Final = re.compile(r"D:(\d{4})(\d\d)(\d\d)")
_LINE_END: Final = "\r\n"
_VISIBLE: Final = 0.99
_PASSWORD: Final = "password"  # noqa: S105 - a word of messages


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document with one section per page, and headings by the size of fonts."""
    data = read_decompressed(path)
    title, pages, metadata = _read(data)
    layout = layout_of(pages)
    sections = [
        Section(f"page {number}", _text(page_text(lines, layout)))
        for number, lines in enumerate(pages, start=1)
    ]
    if not any(section.text for section in sections):
        raise Unreadable("contains no text", f"pages, perhaps of pictures alone: {len(sections)}")
    yield Content(title=title, sections=sections, metadata=metadata, numbered=True)


def _read(data: bytes) -> tuple[str, list[list[Line]], dict[str, str]]:
    import pypdfium2

    try:
        with pypdfium2.PdfDocument(data) as document:
            info = document.get_metadata_dict()
            pages = []
            for number in range(len(document)):
                page = document[number]
                text = page.get_textpage()
                pages.append(_lines(text))
                text.close()
                page.close()
    except pypdfium2.PdfiumError as error:
        locked = _PASSWORD in str(error).lower()
        raise Unreadable("needs a password" if locked else "is damaged", error) from None
    date = _DATE.match(info.get("CreationDate", ""))
    metadata = metadata_of(
        author=_text(info.get("Author")), date=iso_date("-".join(date.groups()) if date else "")
    )
    return one_line(_text(info.get("Title"))), pages, metadata


def _lines(page: PdfTextPage) -> list[Line]:
    """Return the lines of a page.

    Sizes are unknown if PDFium adds or leaves out characters, or if some text is off the page, but
    not if only the ends of lines are.
    """
    text, placed = page.get_text_bounded(), page.get_text_range()
    is_visible = len(_text(text)) >= _VISIBLE * len(_text(placed))
    if not is_visible or len(placed) != page.count_chars():
        return [Line(line) for line in text.split(_LINE_END)]
    lines, at = [], 0
    for line in placed.split(_LINE_END):
        if line.strip():
            first, last = at + len(line) - len(line.lstrip()), at + len(line.rstrip()) - 1
            boxes = [page.get_charbox(number, loose=True) for number in (first, last)]
            height = min(top - bottom for _, bottom, _, top in boxes)
            lines.append(Line(line, height, boxes[0][1]))
        at += len(line) + len(_LINE_END)
    return lines


def _text(text: str | None) -> str:
    """Return the text without non-characters and hyphens at line ends (U+FFFE of PDFium)."""
    kept = re.sub(r"[￾\x02]\r?\n?", "", text or "")
    return normalise_space(re.sub(r"[\0￿\ud800-\udfff]", "", kept))
