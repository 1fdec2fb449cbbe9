"""Texts of the searched fields of a document, and what is derived of program code in them.

A question has the parts of identifiers such as `getUserName`, `HTTPServerError` and `parseJSON2Map`
as words of their own. An index can therefore search these as one more part of a document, in which
each word counts once and which no snippet shows. It also has the summaries of docstrings again, or
of a text without any: first sentences say what code is for, and questions are about that. In texts
other than code, where names such as LibreOffice are no identifiers, pairs of the parts of longer
ones are searched instead: a query *user name* is joined to `UserName`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from klsa_search.collection.field_paths import value_at
from klsa_search.collection.model import Document
from klsa_search.core.field_weights import SearchedFields


def field_text(value: object) -> str:
    """Return the text of a metadata value.

    A string is itself, null and a missing value are empty, numbers and booleans are as JSON writes
    them. The values of a list or of an object follow each other on lines of their own.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return json.dumps(value)
    return "\n".join(filter(None, map(field_text, value)))


def searched_texts(document: Document, fields: SearchedFields) -> list[str]:
    """Return the text of each part of a document that is indexed, "" if it is not searched."""
    title, text = document.title, document.text
    if len(fields.names) == 2 and all(fields.weights):
        return [title, text]
    title, text = title if fields.weights[0] else "", text if fields.weights[-1] else ""
    metadata_texts = [field_text(value_at(document.metadata, name)) for name in fields.others]
    if fields.derived is not None:
        metadata_texts.append(READERS[fields.derived](f"{title}\n{text}"))
    return [title, *metadata_texts, text]


class AnalysedTexts(NamedTuple):
    """What the analysis needs of documents.

    parts      the text of each part, document by document
    languages  what a field says of the language of each document, "" without one; may be left out
               for an analyser of one language
    """

    parts: list[str]
    languages: Sequence[str] = ()


def analysed_texts(
    documents: Sequence[Document], fields: SearchedFields, language_field: str | None
) -> AnalysedTexts:
    """Return the texts of the parts of documents, and the languages that a field states."""
    parts = [text for document in documents for text in searched_texts(document, fields)]
    return AnalysedTexts(
        parts, [language_stated(document, language_field) for document in documents]
    )


def language_stated(document: Document, field: str | None) -> str:
    """Return what a field says of the language of a document, "" without one."""
    return "" if field is None else field_text(value_at(document.metadata, field))


MAX_IDENTIFIER: Final = 40
"""Characters of an identifier, at most; longer words are hashes and encoded data."""

MAX_PARTS: Final = 6  # parts of an identifier, at most
CODE: Final = 0.04
"""Names of code for each word, from which identifiers are searched by their parts. They are 0.39 in
functions of Python, 0.12 in its docstrings and 0.05 in the guides of AWS, which gain; at most 0.033
in the help of LibreOffice, which loses in Korean; and below 0.003 in other test collections.
"""

SOURCE: Final = 0.25
"""The same for code itself: 95% of functions without docstrings have more, of docstrings less."""

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
_STRING: Final = re.compile(
    r"""\\.|\#[^\n]*|"(?!"")(?:[^"\\\n]|\\.)*+"|'(?!'')(?:[^'\\\n]|\\.)*+'"""
    r"""|(?P<first>^[^\S\n]*[rRuUbBfF]{0,2})?(?P<quotes>\"{3}|'{3})"""
    r"""(?P<content>(?:[^"'\\]++|\\.|(?!(?P=quotes))["'])*+)(?P=quotes)""",
    re.DOTALL | re.MULTILINE,
)
"""Matches escapes, comments and strings: quotes in one do not begin another. `first` is None unless
nothing is before the string on its line, as before docstrings.
"""
_BREAK: Final = "x" * 256
"""A word that is too long for a term, so that no phrase crosses it: see `LONGEST_WORD`."""
_SUMMARY: Final = re.compile(r"\s*+(?s:.{,400}?)(?=(?<=[.?!])\s|\n[^\S\n]*\n|\Z)")
"""Matches the first sentence of a text, which ends with its paragraph; longer ones are none."""
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


def parts_and_summaries(text: str) -> str:
    r"""Return the parts of the identifiers of a text, and the summaries of its docstrings.

    text  a title, and the rest from the next line on, which is the docstring if it has none and is
          not code itself
    Cost: 0.3 µs a word.

    >>> parts_and_summaries("\n'''Return a text. Or None.''' def readFile(path):").split()[-3:]
    ['Return', 'a', 'text.']
    """
    strings = _STRING.finditer(text)
    docstrings = [string["content"] for string in strings if string["first"] is not None]
    if not docstrings:
        _, _, rest = text.partition("\n")
        docstrings = [rest] * (not are_code([rest[:1000]], least=SOURCE))
    summaries = map(_SUMMARY.match, docstrings)
    return f"\n{_BREAK}\n".join(
        [parts_of_identifiers(text), *(summary[0] for summary in summaries if summary)]
    )


READERS: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {"parts": parts_and_summaries, "pairs": pairs_in_identifiers}
)
"""What is derived of a text, by the value of the setting `identifiers`."""


def _derived(words: Sequence[str], *, least: int, together: int, camel: bool = False) -> str:
    """Return so many adjacent parts together, of identifiers of at least so many parts.

    camel  only of words in camel case
    """
    present = {word.lower() for word in words}
    parts = []
    for word in dict.fromkeys(words):
        if word.isalpha() and word[1:].islower():
            continue  # most words have no border
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


def are_code(texts: Iterable[str], least: float = CODE) -> bool:
    """Return whether texts are code or about code: whether names of code are frequent in them.

    least  names for each word
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
    return names >= max(least * words, 1)
