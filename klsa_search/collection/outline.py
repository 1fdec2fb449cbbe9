"""Structure of a text: headings, pages and code, as Markdown and form feeds mark them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_LINE: Final = (
    r"(?: {0,3}(#{1,6})[ \t]+(\S[^\n\f]{0,200}?)(?:[ \t]+#+)?[ \t\r]*(?=[\n\f]|\Z)"  # heading
    r"|[ \t]*(`{3,}|~{3,})([^\n\f]*))"  # fence of code
)
_FIRST_LINE: Final = re.compile(_LINE)
_NEXT_LINE: Final = re.compile(rf"[\n\f]{_LINE}")
_BLANKS: Final = re.compile(r"\s*")
_BLANKS_BEFORE: Final = 32
_COMMENT: Final = re.compile(r"\n {0,3}#[ \t]")
PAGE: Final = 7
"""Strength of the boundary between pages; those of headings are 1 to 6, and 1 is the strongest."""


class Heading(NamedTuple):
    """A heading: its level, title, and the offsets of its line and of the text below."""

    level: int
    title: str
    begin: int
    below: int


class Outline(NamedTuple):
    """Structure of a text.

    boundaries  strengths of the beginnings of sections and pages, by offset in order
    below       offsets of the text below headings
    code        offsets where code begins and ends, alternately
    """

    headings: list[Heading]
    boundaries: dict[int, int]
    below: set[int]
    code: list[int]


def outline_of(text: str) -> Outline:
    """Return the structure of a text."""
    headings: list[Heading] = []
    boundaries: dict[int, int] = {}
    code: list[int] = []
    fence = ""
    at = text.find("\f")
    while at >= 0:
        at = after_blanks(text, at)
        boundaries[at] = PAGE
        at = text.find("\f", at)
    line_end = -1
    for line in _marked_lines(text):
        marks, title, opened, info = line.groups()
        begin = line.start() + (line[0][0] in "\n\f")
        if marks and not fence:
            if _is_heading(text, len(marks), begin, line.end(), line_end):
                headings.append(Heading(len(marks), title, begin, after_blanks(text, line.end())))
                boundaries[begin] = len(marks)
                line_end = line.end()
        elif opened and not fence:
            if "`" not in info:
                fence = opened
                code.append(begin)
        elif opened and opened.startswith(fence) and not info.strip():
            fence = ""
            code.append(line.end())
    if fence:
        code.append(len(text))
    boundaries.pop(0, None)
    boundaries.pop(len(text), None)
    below = {heading.below for heading in headings}
    return Outline(headings, dict(sorted(boundaries.items())), below, code)


def _marked_lines(text: str) -> Iterator[re.Match[str]]:
    first = _FIRST_LINE.match(text)
    if first:
        yield first
    yield from _NEXT_LINE.finditer(text, first.end() if first else 0)


def _is_heading(text: str, level: int, begin: int, end: int, previous_end: int) -> bool:
    """Return whether a line with marks is a heading, rather than a comment in code without fences.

    A comment has one mark, and follows or precedes a line of code or of the same comment.
    """
    if level > 1:
        return True
    if _COMMENT.match(text, end):
        return False
    before = text[max(0, begin - _BLANKS_BEFORE) : max(0, begin - 1)].rstrip(" \t\r")
    return (
        begin == previous_end + 1
        or text[begin - 1 : begin] == "\f"
        or not before
        or before[-1] in "\n\f"
    )


def after_blanks(text: str, at: int) -> int:
    """Return the offset of the next character that is not blank."""
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def extended_path(path: dict[int, str], heading: Heading) -> dict[int, str]:
    """Return the titles by level below a heading, after those above it."""
    return {
        **{level: title for level, title in path.items() if level < heading.level},
        heading.level: heading.title,
    }
