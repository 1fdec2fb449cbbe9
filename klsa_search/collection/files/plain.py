"""Plain text, source code, subtitles, and reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import dropwhile, groupby, takewhile
from pathlib import Path, PurePath
from textwrap import dedent
from typing import Final

from klsa_search.collection.encodings import decoded_lines
from klsa_search.collection.files.content import (
    LARGEST,
    Content,
    Section,
    SectionBuilder,
    Unreadable,
)
from klsa_search.collection.folder import uncompressed_name
from klsa_search.collection.model import text_fault
from klsa_search.collection.text_cleaning import join_divided_words

_TITLES: Final = {
    ".adoc": re.compile(r"^= +(\S.*)", re.MULTILINE),
    ".org": re.compile(r"^#\+title: *(\S.*)", re.MULTILINE | re.IGNORECASE),
    ".tex": re.compile(r"^[^%\n]*\\title\{([^{}\\]+)\}", re.MULTILINE),
}
"""The title of a document in AsciiDoc, Org and TeX, by suffix."""


_NO_CUE: Final = re.compile(r"(?:\A|(?<=\n\n))(?:WEBVTT|NOTE|STYLE|REGION)\b.*(?:\n.+)*")
"""Blocks of WebVTT that are no subtitles."""
_CUE: Final = re.compile(
    r"(?:(?:\A|(?<=\n\n)).+\n)?(?<![^\n])\d+(?::\d+)+[\d.,]*[ \t]*-->[ \t]*\d.*"
)
"""Name or number of a subtitle, and its times."""
_CUE_MARK: Final = re.compile(r"</?[a-zA-Z][^<>]*>|<\d[\d:.]*>|\{\\[^{}]*\}")


def read(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read a file as one document."""
    text, notes = text_of(path, encoding)
    line = _TITLES[path.suffix].search(text) if path.suffix in _TITLES else None
    sections = [Section("", join_divided_words(text))]
    yield Content(title=line[1].strip() if line else "", sections=sections, notes=notes)


def read_code(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read a file of source code as one document, with the file name as title."""
    text, notes = text_of(path, encoding)
    yield Content(title=path.name, sections=[Section("", text)], notes=notes)


def read_subtitles(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read SubRip or WebVTT as one document: the spoken text, without times, marks and notes."""
    text, notes = text_of(path, encoding)
    text = "\n".join(map(str.strip, text.splitlines()))
    if PurePath(uncompressed_name(path)).suffix == ".vtt":  # in SubRip they may be spoken
        text = _NO_CUE.sub("", text)
    text = _CUE.sub("", text)
    lines = (unescape(_CUE_MARK.sub("", line)).strip() for line in text.splitlines())
    # Captions that scroll repeat a line in the next cue.
    spoken = "\n".join(line for line, _ in groupby(filter(None, lines)))
    yield Content(sections=[Section("", spoken)], notes=notes)


def text_of(path: Path, encoding: str | None) -> tuple[str, list[str]]:
    """Return the text of a file, and notes about its encoding; see `decoded_lines`.

    Unreadable names the line that is not text.
    """
    parts, left = [], LARGEST
    notes: list[str] = []
    for number, line in decoded_lines(path, encoding, notes.append):
        left -= len(line)
        if left < 0:
            raise Unreadable("is too large", f"more than {LARGEST:,} characters", line=number)
        fault = text_fault(line)
        if fault:
            raise Unreadable("contains data that is not text", f"the line {fault}", line=number)
        parts.append(line)
    return "".join(parts).strip(), notes


_RULE: Final = re.compile(r"""([!-/:-@[-`{-~])\1{2,}\s*""")
_ROLE: Final = re.compile(r":[\w:+.-]+:`~?([^`<]*?)(?:\s*<[^`>]*>)?`")
_LITERAL: Final = re.compile(
    r"\s*\.\. (?:code|code-block|sourcecode|parsed-literal)::.*|(?!\s*\.\. ).*::\s*"
)
_OPTION: Final = re.compile(r"\s*:[\w-]+:.*")
_TARGET: Final = re.compile(r"\.\. _[^:]+:.*")
_DIRECTIVE: Final = re.compile(r"\s*\.\. (?P<name>[\w:+-]+)::(?P<argument>.*)")
_HIDDEN: Final = frozenset(
    ["contents", "highlight", "include", "index", "literalinclude", "raw", "toctree"]
)
_PICTURES: Final = frozenset(["figure", "image"])


def read_rst(path: Path, encoding: str | None) -> Iterator[Content]:
    """Read reStructuredText as one document, without the markup of roles.

    Its title is a heading at the beginning. docutils takes roles and directives of Sphinx for
    errors.
    """
    text, notes = text_of(path, encoding)
    lines = text.splitlines()
    builder, title, number, begun = SectionBuilder(), "", 0, False
    levels: list[str] = []  # underlines, and overlines, in the order of their appearance
    while number < len(lines):
        line = lines[number]
        heading, taken = _heading(lines, number)
        if heading:
            title = title or ("" if begun else heading)
            style = f"{lines[number + taken - 1][0]}{taken}"
            if style not in levels:
                levels.append(style)
            builder.begin(heading, min(levels.index(style) + 1, 6))
        elif _LITERAL.fullmatch(line):
            if not line.lstrip().startswith(".. "):
                builder.add(_plain(line).rstrip().removesuffix(":") + "\n")
            taken = _indented(lines, number)
            builder.add_code(_code(lines[number + 1 : number + taken]))
        elif directive := _DIRECTIVE.fullmatch(line):
            if directive["name"] in _HIDDEN:
                taken = _indented(lines, number)
            elif directive["name"] not in _PICTURES:
                builder.add(_plain(directive["argument"].strip()) + "\n")
            taken += sum(1 for _ in takewhile(_OPTION.fullmatch, lines[number + taken :]))
        elif begun or not _OPTION.fullmatch(line):  # of the whole document, as Sphinx reads them
            if not _TARGET.match(line):
                builder.add(_plain(line) + "\n")
        else:
            line = ""
        begun = begun or bool(heading) or bool(line.strip())
        number += taken
    yield Content(title=title, sections=builder.sections(), notes=notes)


def _indented(lines: list[str], number: int) -> int:
    """Return the number of lines of a block: its first, and those below that are indented more."""
    margin = len(lines[number]) - len(lines[number].lstrip())
    end = number + 1
    while end < len(lines) and (
        not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > margin
    ):
        end += 1
    return end - number


def _code(lines: list[str]) -> str:
    """Return lines of code without options and margin."""
    kept = dropwhile(lambda line: not line.strip() or _OPTION.fullmatch(line), lines)
    return dedent("\n".join(kept))


def _heading(lines: list[str], number: int) -> tuple[str, int]:
    """Return the heading that begins at a line, or "", and its number of lines."""
    first, second, third = (*lines[number : number + 3], "", "")[:3]
    if _RULE.fullmatch(first) and second.strip() and third.rstrip() == first.rstrip():
        return _plain(second.strip()), 3
    if (
        first[:1].strip()
        and not _RULE.fullmatch(first)
        and _RULE.fullmatch(second)
        and len(second.rstrip()) >= len(first.rstrip())
    ):
        return _plain(first.strip()), 2
    return "", 1


def _plain(line: str) -> str:
    return _ROLE.sub(r"\1", line).replace("``", "")
