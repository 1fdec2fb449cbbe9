"""Words that are divided by a hyphen at the end of a line."""

from __future__ import annotations

import re
from typing import Final

_DIVIDED: Final = re.compile(
    r"(?<![^\W\d_])([^\W\d_]{2,}+)[-‐\xad]\r?\n[ \t]*+([^\W\d_]\S*+)[ \t]*+\n?"
)
_HYPHENATED: Final = re.compile(r"(?<![^\W\d_])([^\W\d_]+)-(?=([^\W\d_]+))")
_HAS_DIVIDED: Final = re.compile(r"[-‐\xad]\r?\n")
_PASSES: Final = 4  # a word may be divided more than once


def join_divided_words(text: str) -> str:
    r"""Return a text with the words joined that a hyphen at the end of a line divides.

    The line then ends after the word. A part that begins with a capital is left alone, and the
    hyphen of a word that the text elsewhere has with it is kept.

    >>> join_divided_words("infor-\nmation about well-\nknown (well-known) things")
    'information\nabout well-known\n(well-known) things'
    """
    if not _HAS_DIVIDED.search(text):
        return text
    hyphenated = set(_HYPHENATED.findall(text.casefold()))

    def join(divided: re.Match[str]) -> str:
        first, second = divided.groups()
        if not second[0].islower():
            return divided[0]
        word = re.match(r"[^\W\d_]*", second)
        hyphen = "-" if word and (first.casefold(), word[0].casefold()) in hyphenated else ""
        return f"{first}{hyphen}{second}\n"

    for _ in range(_PASSES):
        text, before = _DIVIDED.sub(join, text), text
        if text == before:
            break
    return text
