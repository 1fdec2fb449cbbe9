"""reStructuredText: its text and headings, without the markup of roles.

docutils is not used because roles and directives of Sphinx are errors to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from klsa_search.collection.files.content import Content, SectionBuilder
from klsa_search.collection.files.plain import text_of

_LINE: Final = re.compile(r"""([!-/:-@[-`{-~])\1{2,}\s*""")
_ROLE: Final = re.compile(r":[\w:+.-]+:`~?([^`<]*?)(?:\s*<[^`>]*>)?`")
_TARGET: Final = re.compile(r"\.\. (?:_[^:]+:|highlight::|contents::|index::).*")


def read(path: Path) -> Iterator[Content]:
    """Read a file as one document; its title is a heading at the beginning."""
    lines = text_of(path).splitlines()
    builder, title, number, begun = SectionBuilder(), "", 0, False
    while number < len(lines):
        heading, taken = _heading(lines, number)
        if heading:
            title = title or ("" if begun else heading)
            builder.begin(heading)
        elif not _TARGET.match(lines[number]):
            builder.add(_plain(lines[number]) + "\n")
        begun = begun or bool(heading) or bool(lines[number].strip())
        number += taken
    yield Content(title=title, sections=builder.sections())


def _heading(lines: list[str], number: int) -> tuple[str, int]:
    """Return the heading that begins at a line, or "", and its number of lines."""
    first, second, third = (*lines[number : number + 3], "", "")[:3]
    if _LINE.fullmatch(first) and second.strip() and third.rstrip() == first.rstrip():
        return _plain(second.strip()), 3
    if (
        first[:1].strip()
        and not _LINE.fullmatch(first)
        and _LINE.fullmatch(second)
        and len(second.rstrip()) >= len(first.rstrip())
    ):
        return _plain(first.strip()), 2
    return "", 1


def _plain(line: str) -> str:
    return _ROLE.sub(r"\1", line).replace("``", "")
