"""What a document is called in a list."""

from __future__ import annotations

from typing import Final

from klsa_search.collection import Document
from klsa_search.search.index import Index
from klsa_search.search.snippet import snippet

_LENGTH: Final = 80


def title_of(index: Index, document: Document) -> str:
    """Title of a document, or the beginning of its text where it has none."""
    return document.title or snippet(document.text, (), index.analyzer, length=_LENGTH)
