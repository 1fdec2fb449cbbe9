"""Content of one file in any format, and helpers for the readers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from klsa_search.collection.model import text_fault

LARGEST: Final = 2**28
"""Limit of the decompressed size of a file in bytes, against decompression bombs."""

ITEM: Final = "\x02"  # begins a list item, in text that is added to a `SectionBuilder`
CELL: Final = "\x01"  # begins a cell of a table row, in text that is added to a `SectionBuilder`
PAGE_END: Final = "\n\f"  # between the pages of a text
_BLANKS: Final = re.compile(r"[^\S\n]+")
_LINE_END: Final = re.compile(r" ?\n ?")
_PARAGRAPH_END: Final = re.compile(r"\n{3,}")
_ITEM_BEGIN: Final = re.compile(rf"\n*{ITEM}[\s{CELL}]*(?=[^\s{ITEM}])")
_CELL_BEGIN: Final = re.compile(rf"(?<=[^\s{ITEM}{CELL}]) ?{CELL}[ {CELL}]*(?=[^\s{ITEM}{CELL}])")
_FENCES: Final = re.compile(r"`{3,}")


class Section(NamedTuple):
    """A heading and the text below it; the heading is "" before the first.

    level  of the heading, from 1 to 6
    """

    heading: str
    text: str
    level: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of one document, or of one document per section.

    title     blank for the name of the file
    numbered  headings only number the sections, like pages, and are not part of the text
    notes     what was detected in the file, such as its encoding
    """

    title: str = ""
    sections: Sequence[Section]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    numbered: bool = False
    notes: Sequence[str] = ()

    @property
    def text(self) -> str:
        """Return headings as lines of Markdown, and texts; without a repeated title.

        Numbered sections are separated by form feeds.
        """
        if self.numbered:
            return PAGE_END.join(section.text for section in self.sections).rstrip()
        parts = [
            part
            for number, (heading, text, level) in enumerate(self.sections)
            for part in (
                "" if number == 0 and heading == self.title else heading_line(heading, level),
                text,
            )
        ]
        return "\n\n".join(filter(None, parts))


class Unreadable(Exception):
    """A file cannot be read; `kind` is the same for all files with the same fault."""

    def __init__(self, kind: str, detail: object = "", *, line: int = 1) -> None:
        super().__init__(kind)
        self.kind = kind
        self.detail = " ".join(str(detail).split())[:200]
        self.line = line


class SectionBuilder:
    """Builds sections from pieces of text, code and headings."""

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self._heading, self._level = "", 1
        self._blocks: list[str] = []
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        """Add a piece of text; line ends and blank lines are kept."""
        self._pieces.append(text)

    def add_code(self, code: str) -> None:
        """Add lines of code, between fences; all their blanks are kept."""
        lines = code.expandtabs().strip("\n").rstrip()
        if lines.strip():
            self._end_block()
            fence = max([*_FENCES.findall(lines), "``"], key=len) + "`"
            self._blocks.append(f"{fence}\n{lines}\n{fence}")

    def begin(self, heading: str, level: int = 1) -> None:
        """End the current section, unless it is empty, and begin the next."""
        self._end_block()
        if self._blocks or self._heading:
            text = "\n\n".join(self._blocks)
            self._sections.append(Section(self._heading, text, self._level))
        self._heading, self._level = one_line(heading), level
        self._blocks = []

    def _end_block(self) -> None:
        text = normalise_space("".join(self._pieces))
        self._pieces = []
        if ITEM in text or CELL in text:  # on lines of their own
            text = _CELL_BEGIN.sub(" | ", _ITEM_BEGIN.sub("\n- ", text))
            text = normalise_space(text.replace(ITEM, "").replace(CELL, ""))
        if text:
            self._blocks.append(text)

    def sections(self) -> list[Section]:
        """End the last section and return all."""
        self.begin("")
        return self._sections


def heading_line(heading: str, level: int) -> str:
    """Return a heading as a line of Markdown; "" for none."""
    return f"{'#' * level} {heading}" if heading else ""


def one_line(text: str) -> str:
    """Return the text with runs of blanks and line ends reduced to one blank."""
    return " ".join(text.split())


def normalise_space(text: str) -> str:
    """Return the text with runs of blanks, and of blank lines, reduced to one."""
    lines = _LINE_END.sub("\n", _BLANKS.sub(" ", text))
    return _PARAGRAPH_END.sub("\n\n", lines).strip()


def metadata_of(dates: Iterable[str | None], **fields: str | None) -> dict[str, str]:
    """Return metadata in one line each, without values that are blank or cannot be stored.

    dates  of which the first in ISO 8601 is the date
    """
    fields["date"] = next(filter(_is_iso_date, dates), None)
    values = {name: one_line(value) for name, value in fields.items() if value}
    return {name: value for name, value in values.items() if value and not text_fault(value)}


def _is_iso_date(text: str | None) -> bool:
    try:
        datetime.fromisoformat(text or "")
    except ValueError:
        return False
    return True


def check_storable(content: Content) -> Content:
    """Return the content; Unreadable if no document can contain it."""
    for part in (content.title, *(text for section in content.sections for text in section[:2])):
        fault = text_fault(part)
        if fault:
            raise Unreadable("contains data that is not text", f"a part of it {fault}")
    return content
