"""Markdown, read with markdown-it; front matter gives title, date and other metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from klsa_search.collection.files.content import (
    CELL,
    ITEM,
    Content,
    SectionBuilder,
    iso_date,
    metadata_of,
)
from klsa_search.collection.files.plain import text_of

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT: Final = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_FIELD: Final = re.compile(r"^(\w+)[ \t]*:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_BREAKS: Final = {"softbreak", "hardbreak"}
_BEGINS: Final = {"list_item_open": ITEM, "td_open": CELL, "th_open": CELL}
_LINES: Final = {"tr_close", "list_item_close"}
_PARTS: Final = {"td_close", "th_close", "thead_close", "tbody_close"}


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document; its title is in the front matter or the first heading."""
    from markdown_it import MarkdownIt

    text = text_of(path).replace("\r\n", "\n")
    front = _FRONT.match(text)
    fields = {}
    if front:
        fields = {name.lower(): value.strip("\"'") for name, value in _FIELD.findall(front[1])}
        text = text[front.end() :]
    builder, title = SectionBuilder(), fields.get("title", "")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for number, token in enumerate(tokens):
        if token.type == "inline":
            visible = _visible(token)
            if tokens[number - 1].type == "heading_open":
                builder.begin(visible, int(tokens[number - 1].tag[1:]))
                # Only a heading at the beginning is the title of the document.
                title = title or (visible if number == 1 else "")
            else:
                builder.add(visible)
        elif token.type in ("fence", "code_block"):
            builder.add_code(token.content)
        elif token.type == "html_block":
            builder.add(f"{_without_tags(token.content)}\n\n")
        elif token.type in _BEGINS:
            builder.add(_BEGINS[token.type])
        elif token.type in _LINES or (token.type == "paragraph_close" and token.hidden):
            builder.add("\n")
        elif token.nesting < 1 and token.block and token.type not in _PARTS:
            builder.add("\n\n")
    yield Content(
        title=title,
        sections=builder.sections(),
        metadata=metadata_of(
            author=fields.get("author"),
            date=iso_date(fields.get("date")),
            language=fields.get("lang") or fields.get("language"),
        ),
    )


def _visible(inline: Token) -> str:
    return "".join(
        "\n" if child.type in _BREAKS else "" if child.type == "html_inline" else child.content
        for child in inline.children or ()
    )


def _without_tags(block: str) -> str:
    return re.sub(r"<!--.*?(?:-->|\Z)|<[^>]*>", " ", block, flags=re.DOTALL)
