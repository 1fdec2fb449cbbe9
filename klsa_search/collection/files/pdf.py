"""PDF, read with PDFium, which recovers most damaged files and has one type of exception."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from klsa_search.collection.files.content import (
    Content,
    Section,
    Unreadable,
    heading_line,
    metadata_of,
    normalise_space,
    one_line,
)
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
    dates = ["-".join(date.groups())] if date else []
    metadata = metadata_of(dates, author=_text(info.get("Author")))
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


_LARGE: Final = 1.15  # font height of a heading, at least, relative to that of most of the text
_SAME: Final = 0.94  # font heights with at least this ratio are those of one level
_FAR: Final = 1.3  # distance of paragraphs, at least, relative to that of lines
_LONGEST: Final = 120
_RUNNING: Final = 3  # a line on that many pages is a running title
_LEADER: Final = re.compile(r"(?:\. ?){4}")
_LETTERS: Final = re.compile(r"[^\W\d_]{2}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


class Line(NamedTuple):
    """A line of a page, the height of its font, and the offset of its lower edge; 0 if unknown."""

    text: str
    height: float = 0.0
    bottom: float = 0.0


class Layout(NamedTuple):
    """Layout of a document.

    levels   of headings by height of font
    running  lines that are repeated on pages
    pitch    usual distance of lines
    """

    levels: dict[float, int]
    running: set[str]
    pitch: float

    def level(self, line: Line) -> int:
        """Return the level of a heading; 0 for another line."""
        level = self.levels.get(_rounded(line.height), 0)
        return level if level and _is_short(line) and line.text not in self.running else 0

    def separates(self, upper: Line, lower: Line) -> bool:
        """Return whether a line begins a paragraph below another."""
        return upper.bottom - lower.bottom > _FAR * self.pitch > 0


def layout_of(pages: list[list[Line]]) -> Layout:
    """Return the layout of pages. The font and the distance of most of the text are usual."""
    heights: Counter[float] = Counter()
    pitches: Counter[float] = Counter()
    repeated: Counter[str] = Counter()
    short: set[float] = set()
    for lines in pages:
        for line in lines:
            heights[_rounded(line.height)] += len(line.text)
            if _is_short(line):
                short.add(_rounded(line.height))
        repeated.update({line.text for line in lines})
        for upper, lower in pairwise(lines):
            if upper.bottom > lower.bottom:
                pitches[_rounded(upper.bottom - lower.bottom)] += 1
    usual = max(heights, key=lambda height: heights[height], default=0.0)
    levels: dict[float, int] = {}
    level, largest = 0, float("inf")
    for height in sorted(short, reverse=True):
        if not height >= _LARGE * usual > 0:
            break
        if height < _SAME * largest:
            level, largest = min(level + 1, 6), height
        levels[height] = level
    running = {text for text, count in repeated.items() if count >= _RUNNING}
    pitch = max(pitches, key=lambda pitch: pitches[pitch], default=0.0)
    return Layout(levels, running, pitch)


def page_text(lines: list[Line], layout: Layout) -> str:
    """Return the lines of a page, with headings as lines of Markdown and blank lines between
    paragraphs.
    """
    pieces: list[str] = []
    above: Line | None = None
    level_above = 0
    for line in lines:
        level = layout.level(line)
        if level and level == level_above:
            pieces.append(f" {one_line(line.text)}")
        elif level:
            pieces.append(f"\n\n{heading_line(one_line(line.text), level)}")
        else:
            begins = level_above or (above and layout.separates(above, line))
            pieces.append(("\n\n" if begins else "\n") + line.text)
        above, level_above = line, level
    return "".join(pieces)


def _is_short(line: Line) -> bool:
    """Return whether a line may be a heading: with letters, neither long nor with leaders."""
    return (
        len(line.text) <= _LONGEST
        and bool(_LETTERS.search(line.text))
        and not _LEADER.search(line.text)
    )


def _rounded(size: float) -> float:
    """Return a size in steps of half a point."""
    return round(2 * size) / 2
