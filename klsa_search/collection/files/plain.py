"""Plain text in UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klsa_search.collection.files.content import LARGEST, Content, Section, Unreadable
from klsa_search.collection.intake import text_fault
from klsa_search.collection.line_ends import join_divided_words
from klsa_search.collection.lines import lines


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document."""
    yield Content(sections=[Section("", join_divided_words(text_of(path)))])


def text_of(path: Path) -> str:
    """Return the text of a file; Unreadable names the line that is not text."""
    parts, left = [], LARGEST
    for number, line in lines(path):
        left -= len(line)
        if left < 0:
            raise Unreadable("is too large", f"more than {LARGEST:,} characters", line=number)
        fault = text_fault(line)
        if fault:
            raise Unreadable("contains data that is not text", f"the line {fault}", line=number)
        parts.append(line)
    return "".join(parts).strip()
