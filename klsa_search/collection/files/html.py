"""HTML, and EPUB books, whose chapters are HTML.

lxml is the only parser tried that damaged or deep pages do not slow down.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from klsa_search.collection.encodings import decoded
from klsa_search.collection.files.archives import open_archive
from klsa_search.collection.files.content import (
    CELL,
    ITEM,
    Content,
    Section,
    SectionBuilder,
    Unreadable,
    metadata_of,
    one_line,
)
from klsa_search.collection.lines import UTF8_BOM, read_decompressed
from klsa_search.core.wording import words

_CHARSET: Final = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_INLINE: Final = words(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp "
    "small span strike strong sub sup time tt u var wbr"
)
_HIDDEN: Final = frozenset(["head", "nav", "noscript", "script", "style", "svg", "template"])
_HEADINGS: Final = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_PARAGRAPHS: Final = words(
    "address article aside blockquote details dl fieldset figure footer form header hr main ol "
    "p section table ul"
)
_CELLS: Final = frozenset(["td", "th"])
_ITEMS: Final = frozenset(["dd", "dt", "li"])
_BEGINS: Final = {"li": f"\n{ITEM}", "td": CELL, "th": CELL}
_BLOCKS: Final = ("div", "p", "pre", "table", *_CELLS, *_ITEMS, *_HEADINGS)
_DATES: Final = ("date", "article:published_time", "dc.date", "dcterms.created", "pubdate")


def read(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read a page as one document, without its scripts and its navigation."""
    yield content_of(_page_of(read_decompressed(path), encoding))


def _page_of(data: bytes, encoding: str | None = None) -> str:
    """Return the text of a page, decoded like browsers do, which accept any bytes.

    By its byte-order mark, else by its declared encoding, else by the named encoding, else as
    UTF-8, else by that detected, or Windows-1252.
    """
    declared = _CHARSET.search(data[:2048])
    mark = "utf-8" if data.startswith(UTF8_BOM) else None
    return decoded(data, mark, declared and declared[1].decode("ascii"), encoding, "utf-8")


def content_of(page: str) -> Content:
    """Return the visible content of a page; Unreadable if it is nested too deep for the parser."""
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    data = page.replace("\0", "").encode("utf-8", "replace")
    root = etree.fromstring(data, parser) if data.strip() else None
    if root is None:
        return Content(sections=[])
    refuse_deep(parser.error_log)
    builder = SectionBuilder()
    first = _add_visible(root, builder, etree)
    meta = {
        (node.get("name") or node.get("property") or "").lower(): node.get("content")
        for node in root.iter("meta")
    }
    title = root.find(".//title")
    named = one_line("".join(title.itertext())) if title is not None else ""
    return Content(
        title=named or first,
        sections=builder.sections(),
        metadata=metadata_of(
            map(meta.get, _DATES),
            author=meta.get("author"),
            language=root.get("lang") or root.get("xml:lang"),
        ),
    )


def refuse_deep(errors: Iterable[Any]) -> None:
    """Raise Unreadable if elements are nested deeper than lxml reads, by its errors."""
    if any(
        entry.type_name == "ERR_RESOURCE_LIMIT" or "depth" in entry.message.lower()
        for entry in errors
    ):
        raise Unreadable("is nested too deep")


def _add_visible(root: Any, builder: SectionBuilder, etree: Any) -> str:
    """Add the visible text and return the first heading."""
    walk = etree.iterwalk(root, events=("start", "end"))
    heading: list[str] | None = None
    first = ""
    in_line = False  # whether in a cell of at most one block, which is written on one line
    separator = ""  # what was added since the last text
    for event, node in walk:
        tag, text = node.tag, node.text if event == "start" else node.tail
        add = builder.add if heading is None else heading.append
        if event == "start" and tag in _HIDDEN:
            walk.skip_subtree()
            text = None
        elif event == "start" and tag == "pre" and heading is None:
            walk.skip_subtree()
            builder.add_code(_preformatted(node))
            text = None
        elif tag in _HEADINGS:
            if event == "start" and heading is None:
                heading = []
            elif event == "end" and heading is not None:
                title = one_line("".join(heading))
                builder.begin(title, int(tag[1]))
                first, heading = first or title, None
            add, separator = (builder.add if heading is None else heading.append), ""
        elif tag == "br":
            add("\n" if event == "start" and not in_line else " ")
        elif event == "start" and tag in _BEGINS:
            blocks = islice(node.iterdescendants(*_BLOCKS), 2)
            in_line = tag != "li" and len(list(blocks)) <= 1
            add(_BEGINS[tag])
        elif tag in _CELLS:
            in_line = False
        elif tag not in _INLINE:
            wanted = " " if in_line else _separator(node)
            add(wanted.removeprefix(separator))
            separator = max(separator, wanted, key=len)
        if event == "start" and tag == "img":
            text = node.get("alt")
        if text:
            # Outside of <pre> a line end is a space.
            add(re.sub(r"\s+", " ", text))
            separator = "" if text.strip() else separator
    if heading is not None:
        builder.begin("".join(heading))
    return first


def _separator(block: Any) -> str:
    """Return what separates a block from the text before it and after it."""
    parent = block.getparent()
    nested = parent is not None and parent.tag in _ITEMS
    return "\n\n" if block.tag in _PARAGRAPHS and not nested else "\n"


def _preformatted(block: Any) -> str:
    for line_break in block.iter("br"):
        line_break.tail = f"\n{line_break.tail or ''}"
    return "".join(block.itertext())


_PAGES: Final = ("application/xhtml+xml", "text/html")
_DUBLIN_CORE: Final = "{http://purl.org/dc/elements/1.1/}"


def read_epub(path: Path) -> Iterator[Content]:
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
                sections += content_of(_page_of(archive.data(name))).sections
    if not any(section.text for section in sections):
        raise Unreadable("contains no text", "no chapter of it has any")

    def value(name: str) -> str | None:
        return next(
            (node.text for node in package.iter(f"{_DUBLIN_CORE}{name}") if node.text), None
        )

    yield Content(
        title=one_line(value("title") or ""),
        sections=sections,
        metadata=metadata_of([value("date")], author=value("creator"), language=value("language")),
    )
