"""Removal of Markdown from the texts that snippets show."""

from __future__ import annotations

import re
from typing import Final

_MARK: Final = re.compile(r"[*#`|\[]")
"""Characters that Markdown may give a meaning to; those of `native/snippets.cpp`."""
_HEADING: Final = re.compile(r"#{1,6} (.*?)(?: #+)?")
_STRONG: Final = re.compile(r"(?<!\w)\*\*(?=[^\s*])((?:(?!\*\*).){1,300})(?<=[^\s*])\*\*(?!\w)")
_LINK: Final = re.compile(
    r"(?<![\w\])])!?\[([^\[\]]*)\]\((?:[^\s()]|\([^\s()]*\))*(?: \"[^\"]*\")?(?:\)|…?$)"
)
_DELIMITERS: Final = frozenset("…|: -")
_BAR: Final = re.compile(r"\s*(?<!\\)\|\s*")


def without_markup(passage: str) -> str:
    r"""Return a folded passage as one line, without the marks of Markdown.

    passage  as `folded` in `search.snippets.snippet`, cut anywhere
    Headings, strong text, code and links keep their texts, cells of tables are separated by blanks.
    Marks of list items stay. Cost: 0.3 µs without marks.

    >>> from klsa_search.search.snippets.markup import without_markup
    >>> without_markup("## Paper jam\fOpen the **cover**, see [parts](parts.md).")
    'Paper jam Open the cover, see parts.'
    """
    if not _MARK.search(passage):
        return passage.replace("\n", " ").replace("\f", " ")
    lines = re.split(r"[\n\f]", passage)
    barred = [False, *("|" in line for line in lines), False]
    shown = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("|") or (barred[number] and (barred[number - 1] or barred[number + 1])):
            shown.append(_row(line))
        else:
            heading = _HEADING.fullmatch(line)
            shown.append(heading[1] if heading else line)
    plain = " ".join(filter(None, shown))
    plain = _STRONG.sub(r"\1", _LINK.sub(r"\1", plain))
    return " ".join(plain.replace("`", "").split())


def _row(line: str) -> str:
    """Return the cells of a row of a table; blank for the line below its head."""
    is_delimiter = "--" in line and _DELIMITERS.issuperset(line)
    return "" if is_delimiter else _BAR.sub(" ", line).strip()
