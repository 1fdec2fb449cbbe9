"""Markdown: what is seen of it, by markdown-it; front matter has title, date and so on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from klsa_search.collection.files.content import Content, SectionBuilder, iso_date, metadata_of
from klsa_search.collection.files.plain import text_of

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT: Final = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_FACT: Final = re.compile(r"^(\w+)[ \t]*:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_BREAKS: Final = {"softbreak", "hardbreak"}


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document; its title is that of the front matter, or the first heading."""
    from markdown_it import MarkdownIt

    text = text_of(path).replace("\r\n", "\n")
    front = _FRONT.match(text)
    facts = {}
    if front:
        facts = {name.lower(): value.strip("\"'") for name, value in _FACT.findall(front[1])}
        text = text[front.end() :]
    gathering, title = SectionBuilder(), facts.get("title", "")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for number, token in enumerate(tokens):
        if token.type == "inline":
            seen = _seen(token)
            if tokens[number - 1].type == "heading_open":
                gathering.begin(seen)
                # A heading further down is of what stands there.
                title = title or (seen if number == 1 else "")
            else:
                gathering.add(seen)
        elif token.type in ("fence", "code_block"):
            gathering.add(f"{token.content}\n")
        elif token.type == "html_block":
            gathering.add(f"{_without_tags(token.content)}\n")
        elif token.nesting < 1 and token.block:
            gathering.add(" " if token.type in ("td_close", "th_close") else "\n")
    yield Content(
        title=title,
        sections=gathering.sections(),
        metadata=metadata_of(
            author=facts.get("author"),
            date=iso_date(facts.get("date")),
            language=facts.get("lang") or facts.get("language"),
        ),
    )


def _seen(inline: Token) -> str:
    return "".join(
        "\n" if child.type in _BREAKS else "" if child.type == "html_inline" else child.content
        for child in inline.children or ()
    )


def _without_tags(block: str) -> str:
    return re.sub(r"<!--.*?(?:-->|\Z)|<[^>]*>", " ", block, flags=re.DOTALL)
