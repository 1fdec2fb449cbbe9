"""EPUB books: archives with one HTML page per chapter."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from klsa_search.collection.files.archives import open_archive
from klsa_search.collection.files.content import (
    Content,
    Section,
    Unreadable,
    iso_date,
    metadata_of,
    one_line,
)
from klsa_search.collection.files.html import content_of, decoded

_PAGES: Final = ("application/xhtml+xml", "text/html")
_DUBLIN_CORE: Final = "{http://purl.org/dc/elements/1.1/}"


def read(path: Path) -> Iterator[Content]:
    """Read a book as one document."""
    with open_archive(path) as archive:
        package_path = next(
            (
                node.get("full-path", "")
                for node in archive.tree("META-INF/container.xml").iter()
                if node.tag.endswith("}rootfile")
            ),
            "",
        )
        package = archive.tree(package_path)
        items = {
            node.get("id"): node
            for node in package.iter()
            if node.tag.endswith("}item") and node.get("media-type") in _PAGES
        }
        sections: list[Section] = []
        for node in package.iter():
            item = items.get(node.get("idref")) if node.tag.endswith("}itemref") else None
            if item is not None:
                name = posixpath.normpath(
                    posixpath.join(posixpath.dirname(package_path), unquote(item.get("href", "")))
                )
                sections += content_of(decoded(archive.data(name))).sections
    if not any(section.text for section in sections):
        raise Unreadable("contains no text", "no chapter of it has any")

    def value(name: str) -> str | None:
        return next(
            (node.text for node in package.iter(f"{_DUBLIN_CORE}{name}") if node.text), None
        )

    yield Content(
        title=one_line(value("title") or ""),
        sections=sections,
        metadata=metadata_of(
            author=value("creator"), date=iso_date(value("date")), language=value("language")
        ),
    )
