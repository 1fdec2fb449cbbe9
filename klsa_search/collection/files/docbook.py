"""DocBook, read with lxml, which reads pages without the entities of a missing DTD."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from klsa_search.collection.files.content import (
    CELL,
    ITEM,
    Content,
    SectionBuilder,
    metadata_of,
    one_line,
)
from klsa_search.collection.files.html import refuse_deep
from klsa_search.collection.lines import read_decompressed
from klsa_search.core.installation import require
from klsa_search.core.wording import words

_SECTIONS: Final = words(
    "appendix article book chapter colophon dedication glossary part preface refentry refsect1 "
    "refsect2 refsect3 refsection reference sect1 sect2 sect3 sect4 sect5 section set "
    "simplesect topic"
)
_CODE: Final = words("literallayout programlisting screen synopsis cmdsynopsis funcsynopsis")
_HIDDEN: Final = words("comment index indexterm remark toc")
_INFO: Final = re.compile(r"\w*info\Z")
_BEGINS: Final = {"listitem": ITEM, "member": ITEM, "row": "\n", "step": ITEM, "tr": "\n"}
_CELLS: Final = frozenset(["entry", "td", "th"])
_BLOCKS: Final = frozenset(["para", "refname", "refpurpose", "simpara", "term", "title"])


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document; titles of chapters and sections begin sections."""
    require("files")
    from lxml import etree

    parser = etree.XMLParser(
        recover=True,
        resolve_entities="internal",
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    root = etree.fromstring(read_decompressed(path), parser)
    refuse_deep(parser.error_log)
    if root is None:
        yield Content(sections=[])
        return
    builder = SectionBuilder()
    _add(root, builder, 1)
    title = _title_element(root)
    yield Content(
        title="" if title is None else _inner(title),
        sections=builder.sections(),
        metadata=_metadata(root),
    )


def _add(node: Any, builder: SectionBuilder, level: int) -> None:
    """Add an element and what is in it; `level` is that of a section that begins here."""
    name = _name(node)
    if name in _CODE:
        builder.add_code("".join(node.itertext()))
    elif name in _CELLS:
        builder.add(f"{CELL}{one_line(' '.join(node.itertext()))}")
    elif name and name not in _HIDDEN and not _INFO.match(name):
        is_section = name in _SECTIONS
        title = _title_element(node) if is_section else None
        if title is not None:
            builder.begin(_inner(title), min(level, 6))
        elif name in _BLOCKS or is_section:
            builder.add("\n\n")
        builder.add(_BEGINS.get(name, "") + _spaced(node.text))
        for child in node:
            if child is not title:
                _add(child, builder, level + is_section)
            builder.add(_spaced(child.tail))


def _title_element(section: Any) -> Any:
    """Return the title of a section, which may be among its properties; None without one."""
    for child in section:
        name = _name(child)
        if name in ("title", "refnamediv"):
            return child if name == "title" else child.find("{*}refname")
        if _INFO.match(name) and (title := child.find("{*}title")) is not None:
            return title
    return None


def _metadata(root: Any) -> dict[str, str]:
    info = next((child for child in root if _INFO.match(_name(child))), None)
    if info is None:
        return {}
    author, date = info.find(".//{*}author"), info.find("{*}pubdate")
    return metadata_of(
        [None if date is None else date.text],
        author=None if author is None else " ".join(author.itertext()),
        language=root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang"),
    )


def _inner(node: Any) -> str:
    return one_line("".join(node.itertext()))


def _spaced(text: str | None) -> str:
    """Return a text whose line ends are blanks, as they are outside of code."""
    return re.sub(r"\s+", " ", text or "")


def _name(node: Any) -> str:
    """Return the name of an element without its namespace; "" for an entity."""
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""
