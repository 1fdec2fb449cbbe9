"""What is read of one file, whatever its kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from klsa_search.collection.intake import text_fault

LARGEST: Final = 2**28
"""Bytes of what a file is unpacked to, at most: archives may be made to burst memory."""

_BLANKS: Final = re.compile(r"[^\S\n]+")
_LINE_ENDS: Final = re.compile(r" ?\n[ \n]*")


class Section(NamedTuple):
    """A heading, "" for what comes before the first, and the text below it."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What becomes a document, or with sections one for each; a blank title is left to the file.

    numbered  headings say which section it is, and are not of the text
    """

    title: str = ""
    sections: Sequence[Section]
    metadata: Mapping[str, str] = field(default_factory=dict)
    numbered: bool = False

    @property
    def text(self) -> str:
        """All of it, headings on lines of their own; one that is the title stands there alone."""
        parts = [
            part
            for number, section in enumerate(self.sections)
            for part in (
                "" if self._is_told(number) else section.heading,
                section.text,
            )
        ]
        return "\n\n".join(filter(None, parts))

    def _is_told(self, number: int) -> bool:
        """Return whether the heading of a section is stored elsewhere."""
        return self.numbered or (number == 0 and self.sections[0].heading == self.title)


class Unreadable(Exception):
    """A file that cannot be read; `kind` is the same for all that fail alike."""

    def __init__(self, kind: str, detail: object = "", *, line: int = 1) -> None:
        super().__init__(kind)
        self.kind = kind
        self.detail = " ".join(str(detail).split())[:200]
        self.line = line


class SectionBuilder:
    """Sections in the making: text is added piece by piece, a heading begins the next."""

    def __init__(self) -> None:
        self._sections: list[Section] = []
        self._heading = ""
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        """Add a piece of text; a line end in it stays one."""
        self._pieces.append(text)

    def begin(self, heading: str) -> None:
        """End the section, unless there is nothing of it, and begin one."""
        text = normalise_space("".join(self._pieces))
        if text or self._heading:
            self._sections.append(Section(self._heading, text))
        self._heading = normalise_space(heading).replace("\n", " ")
        self._pieces = []

    def sections(self) -> list[Section]:
        """All sections; the last one ends here."""
        self.begin("")
        return self._sections


def normalise_space(text: str) -> str:
    """Blanks in a row become one, and so do line ends."""
    return _LINE_ENDS.sub("\n", _BLANKS.sub(" ", text)).strip()


def metadata_of(**facts: str | None) -> dict[str, str]:
    """Metadata of what is known; what cannot be kept, or says nothing, is left out."""
    tidied = {name: normalise_space(value) for name, value in facts.items() if value}
    return {name: value for name, value in tidied.items() if value and not text_fault(value)}


def iso_date(text: str | None) -> str | None:
    """Check a date or time as ISO 8601 writes it; None where it is none."""
    try:
        datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return text


def check_storable(content: Content) -> Content:
    """Refuse what no document can hold."""
    for part in (content.title, *(text for section in content.sections for text in section)):
        fault = text_fault(part)
        if fault:
            raise Unreadable("contains data that is not text", f"a part of it {fault}")
    return content
