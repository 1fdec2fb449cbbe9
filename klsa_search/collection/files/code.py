"""Source code: text, with the file name as title."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klsa_search.collection.files.content import Content, Section
from klsa_search.collection.files.plain import text_of


def read(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read a file as one document."""
    text, notes = text_of(path, encoding)
    yield Content(title=path.name, sections=[Section("", text)], notes=notes)
