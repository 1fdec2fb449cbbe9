"""Plain text, and source code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from klsa_search.collection.encodings import decoded_lines
from klsa_search.collection.files.content import LARGEST, Content, Section, Unreadable
from klsa_search.collection.intake import text_fault
from klsa_search.collection.line_ends import join_divided_words

_TITLES: Final = {
    ".adoc": re.compile(r"^= +(\S.*)", re.MULTILINE),
    ".org": re.compile(r"^#\+title: *(\S.*)", re.MULTILINE | re.IGNORECASE),
}
"""Line of the title of a document in AsciiDoc and Org, by suffix."""


def read(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read a file as one document."""
    text, notes = text_of(path, encoding)
    line = _TITLES[path.suffix].search(text) if path.suffix in _TITLES else None
    sections = [Section("", join_divided_words(text))]
    yield Content(title=line[1].strip() if line else "", sections=sections, notes=notes)


def read_code(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read a file of source code as one document, with the file name as title."""
    text, notes = text_of(path, encoding)
    yield Content(title=path.name, sections=[Section("", text)], notes=notes)


def text_of(path: Path, encoding: str | None) -> tuple[str, list[str]]:
    """Return the text of a file, and notes about its encoding; see `decoded_lines`.

    Unreadable names the line that is not text.
    """
    parts, left = [], LARGEST
    notes: list[str] = []
    for number, line in decoded_lines(path, encoding, notes.append):
        left -= len(line)
        if left < 0:
            raise Unreadable("is too large", f"more than {LARGEST:,} characters", line=number)
        fault = text_fault(line)
        if fault:
            raise Unreadable("contains data that is not text", f"the line {fault}", line=number)
        parts.append(line)
    return "".join(parts).strip(), notes
