"""Identifiers of program code: `getUserName`, `HTTPServerError`, `parseJSON2Map`.

A question has their parts as words of their own. An index can therefore search these as one more
part of a document, in which each word counts once and which no snippet shows. In texts other than
code, where names such as LibreOffice are no identifiers, pairs of the parts of longer ones are
searched instead: a query *user name* is joined to `UserName`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

MAX_IDENTIFIER: Final = 40
"""Characters of an identifier, at most; longer words are hashes and encoded data."""

MAX_PARTS: Final = 6
"""Parts of an identifier, at most."""

CODE: Final = 0.04
"""Names of code for each word, from which identifiers are searched by their parts. They are 0.39 in
functions of Python, 0.12 in its docstrings and 0.05 in the guides of AWS, which gain; at most 0.033
in the help of LibreOffice, which loses in Korean; and below 0.003 in other test collections.
"""

BORDER: Final = re.compile(
    r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
)
"""Places where letters meet digits, and where capitals begin a part."""

_WORD: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")  # not TVs
_LONG_CAMEL: Final = re.compile(
    r"[A-Z](?:(?<=[a-z][A-Z])(?:[a-z]+[A-Z\d]|[A-Z]*\d|[A-Z]+[a-z])|(?<=[A-Z][A-Z])[a-z]+[A-Z])"
)
"""Matches within a word in camel case of three parts or more; begins with a class for speed."""
_IN_CODE: Final = re.compile(r"[^\W_]_[^\W_]|[^\W_]\(")


def parts_of_identifiers(text: str) -> str:
    """Return the parts of the identifiers of a text that are no words of it, each once, by blanks.

    Cost: 0.3 µs a word.

    >>> parts_of_identifiers("call getUserName and setUserName2, user")
    'get Name set 2'
    """
    return _derived(_WORD.findall(text), least=2, together=1)


def pairs_in_identifiers(text: str) -> str:
    """Return the pairs of parts of identifiers of three parts or more, each once, by blanks.

    Only of words in camel case: with pairs of D2XS2, the help of LibreOffice in Korean loses .2%.
    Cost: 1 ns a character, if a text has no such identifier.

    >>> pairs_in_identifiers("call getUserName on iPhone")
    'getUser UserName'
    """
    if not _LONG_CAMEL.search(text):
        return ""
    return _derived(_WORD.findall(text), least=3, together=2, camel=True)


READERS: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {"parts": parts_of_identifiers, "pairs": pairs_in_identifiers}
)
"""What is derived of the identifiers of a text, by the value of the setting `identifiers`."""


def _derived(words: Sequence[str], *, least: int, together: int, camel: bool = False) -> str:
    """Return so many adjacent parts together, of identifiers of at least so many parts.

    camel  only of words in camel case
    """
    present = {word.lower() for word in words}
    parts = []
    for word in dict.fromkeys(words):
        if len(word) > MAX_IDENTIFIER or (camel and not _LONG_CAMEL.search(word)):
            continue
        borders = [0, *(border.start() for border in BORDER.finditer(word)), len(word)]
        if not least < len(borders) <= MAX_PARTS + 1:
            continue
        for first, after in zip(borders, borders[together:], strict=False):
            part = word[first:after]
            if part.lower() not in present:
                present.add(part.lower())
                parts.append(part)
    return " ".join(parts)


def are_code(texts: Iterable[str]) -> bool:
    """Return whether texts are code or about code: whether names of code are frequent in them.

    Words in camel case count once; underscores within words and brackets right behind them, which
    prose has less often, twice. Cost: 1 µs a word.

    >>> are_code(["call getUserName before logout"]), are_code(["call the user before lunch"])
    (True, False)
    >>> are_code(["TVs and PCs in the room"])
    False
    """
    words = names = 0
    for text in texts:
        of_text = _WORD.findall(text)
        words += len(of_text)
        names += sum(_CAMEL.search(word) is not None for word in of_text)
        names += 2 * len(_IN_CODE.findall(text))
    return names >= max(CODE * words, 1)
