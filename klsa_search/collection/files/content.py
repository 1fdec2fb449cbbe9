"""Content of one file in any format, and helpers for the readers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from klsa_search.collection.intake import text_fault

LARGEST: Final = 2**28
"""Limit of the decompressed size of a file in bytes, against decompression bombs."""

_BLANKS: Final = re.compile(r"[^\S\n]+")
_LINE_ENDS: Final = re.compile(r" ?\n[ \n]*")


class Section(NamedTuple):
    """A heading and the text below it; the heading is "" before the first."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of one document, or of one document per section.

    title     blank for the name of the file
    numbered  headings only number the sections, like pages, and are not part of the text
    """

    title: str = ""
    sections: Sequence[Section]
    metadata: Mapping[str, str] = field(default_factory=dict)
    numbered: bool = False

    @property
    def text(self) -> str:
        """Return all headings, each on its own line, and texts; without a repeated title."""
        parts = [
            part
            for number, section in enumerate(self.sections)
            for part in ("" if self._omits_heading(number) else section.heading, section.text)
        ]
        return "\n\n".join(filter(None, parts))

    def _omits_heading(self, number: int) -> bool:
        return self.numbered or (number == 0 and self.sections[0].heading == self.title)


class Unreadable(Exception):
    """A file cannot be read; `kind` is the same for all files with the same fault."""

    def __init__(self, kind: str, detail: object = "", *, line: int = 1) -> None:
        super().__init__(kind)
        self.kind = kind
        self.detail = " ".join(str(detail).split())[:200]
        self.line = line


class SectionBuilder:
    """Builds sections from pieces of text and headings."""

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self._heading = ""
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        """Add a piece of text; line ends are kept."""
        self._pieces.append(text)

    def begin(self, heading: str) -> None:
        """End the current section, unless it is empty, and begin the next."""
        text = normalise_space("".join(self._pieces))
        if text or self._heading:
            self._sections.append(Section(self._heading, text))
        self._heading = normalise_space(heading).replace("\n", " ")
        self._pieces = []

    def sections(self) -> list[Section]:
        """End the last section and return all."""
        self.begin("")
        return self._sections


def normalise_space(text: str) -> str:
    """Return the text with runs of blanks, and of line ends, reduced to one."""
    return _LINE_ENDS.sub("\n", _BLANKS.sub(" ", text)).strip()


def metadata_of(**fields: str | None) -> dict[str, str]:
    """Return metadata without blank values and values that cannot be stored."""
    values = {name: normalise_space(value) for name, value in fields.items() if value}
    return {name: value for name, value in values.items() if value and not text_fault(value)}


def iso_date(text: str | None) -> str | None:
    """Return a date or time if it is in ISO 8601, otherwise None."""
    try:
        datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return text


def check_storable(content: Content) -> Content:
    """Return the content; Unreadable if no document can contain it."""
    for part in (content.title, *(text for section in content.sections for text in section)):
        fault = text_fault(part)
        if fault:
            raise Unreadable("contains data that is not text", f"a part of it {fault}")
    return content
