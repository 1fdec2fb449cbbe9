"""HTML, read with lxml, the only parser tried that damaged or deep pages do not slow down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.files.content import (
    Content,
    SectionBuilder,
    Unreadable,
    iso_date,
    metadata_of,
    normalise_space,
)
from klsa_search.collection.lines import read_decompressed

_BOMS: Final = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_CHARSET: Final = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_INLINE: Final = frozenset(
    re.findall(
        r"\w+",
        "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp "
        "small span strike strong sub sup time tt u var wbr",
    )
)
_HIDDEN: Final = frozenset(["head", "nav", "noscript", "script", "style", "svg", "template"])
_HEADINGS: Final = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])
_CELLS: Final = frozenset(["td", "th"])
_DATES: Final = ("date", "article:published_time", "dc.date", "dcterms.created", "pubdate")


def read(path: Path) -> Iterator[Content]:
    """Read a page as one document, without its scripts and its navigation."""
    yield content_of(decoded(read_decompressed(path)))


def decoded(data: bytes) -> str:
    """Return the text of a page, decoded like browsers do, which accept any bytes.

    By its byte-order mark, else by its declared encoding, else as UTF-8, else as Windows-1252.
    """
    marked = next((name for mark, name in _BOMS.items() if data.startswith(mark)), None)
    declared = _CHARSET.search(data[:2048])
    for encoding in (marked, declared and declared[1].decode("ascii"), "utf-8"):
        try:
            if encoding:
                return data.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            continue
    return data.decode("windows-1252", "replace")


def content_of(page: str) -> Content:
    """Return the visible content of a page; Unreadable if it is nested too deep for the parser."""
    from lxml import etree

    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    data = page.replace("\0", "").encode("utf-8", "replace")
    root = etree.fromstring(data, parser) if data.strip() else None
    if root is None:
        return Content(sections=[])
    if any(
        entry.type_name == "ERR_RESOURCE_LIMIT" or "depth" in entry.message.lower()
        for entry in parser.error_log
    ):
        raise Unreadable("is nested too deep")
    builder = SectionBuilder()
    first = _add_visible(root, builder, etree)
    meta = {
        (node.get("name") or node.get("property") or "").lower(): node.get("content")
        for node in root.iter("meta")
    }
    title = root.find(".//title")
    named = normalise_space("".join(title.itertext())) if title is not None else ""
    return Content(
        title=named.replace("\n", " ") or first,
        sections=builder.sections(),
        metadata=metadata_of(
            author=meta.get("author"),
            date=next(filter(None, (iso_date(meta.get(name)) for name in _DATES)), None),
            language=root.get("lang") or root.get("xml:lang"),
        ),
    )


def _add_visible(root: Any, builder: SectionBuilder, etree: Any) -> str:
    """Add the visible text and return the first heading."""
    walk = etree.iterwalk(root, events=("start", "end"))
    heading: list[str] | None = None
    first = ""
    for event, node in walk:
        tag, text = node.tag, node.text if event == "start" else node.tail
        if event == "start" and tag in _HIDDEN:
            walk.skip_subtree()
            text = None
        elif tag in _HEADINGS:
            if event == "start" and heading is None:
                heading = []
            elif event == "end" and heading is not None:
                title = normalise_space("".join(heading)).replace("\n", " ")
                builder.begin(title)
                first, heading = first or title, None
        elif tag not in _INLINE:
            (builder.add if heading is None else heading.append)(" " if tag in _CELLS else "\n")
        if event == "start" and tag == "img":
            text = node.get("alt")
        if text:
            # Outside of <pre> a line end is a space.
            plain = text if tag == "pre" and event == "start" else re.sub(r"\s+", " ", text)
            (builder.add if heading is None else heading.append)(plain)
    if heading is not None:
        builder.begin("".join(heading))
    return first
