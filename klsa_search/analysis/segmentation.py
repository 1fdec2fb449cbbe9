"""Segmentation of texts into words, or into character pairs in scripts without spaces.

Scripts without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) give overlapping pairs of characters,
each a letter with its marks; a single character is a token itself. Other words are runs of letters,
digits and marks: hyphens, underscores and punctuation separate. An English ending after an
apostrophe (wing's, don't) is part of its word; other apostrophes separate (l'avion, o'neil). For
names with signs (C++, C#, .NET) `names` gives the name of the word that begins there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from typing import Final

from klsa_search.analysis.unicode import APOSTROPHE_LETTERS, APOSTROPHES, IGNORED

APOSTROPHE_PATTERN: Final = f"[{APOSTROPHES}]"
LETTER_PATTERN: Final = rf"[^\W_{APOSTROPHE_LETTERS}]"
_ENDING: Final = rf"(?:{APOSTROPHE_PATTERN}(?:[sStTmMdD]|ll|LL|re|RE|ve|VE)(?!{LETTER_PATTERN}))?"
_ASCII_WORD: Final = re.compile(rf"[^\W_]+{_ENDING}", re.ASCII)
_UNSPACED: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai without digits and signs
    "\u0e81-\u0ece\u0edc-\u0edf"  # Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109f\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17dc\u17dd"  # Khmer
    "\u3005\u3007\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"  # Han
)
UNSPACED_PATTERN: Final = f"[{_UNSPACED}]"
_HAS_UNSPACED: Final = re.compile(UNSPACED_PATTERN)

_NAME: Final = re.compile(
    r"(?<![^\W_])(?:[A-Za-z](?:\+\+(?!\+)|#(?![^\W_]))|(?<!\.)\.(?:net|NET|Net)(?![^\W_]))"
)
_NAME_SIGNS: Final = {"++": 1, "#": 1, ".net": 0, ".NET": 0, ".Net": 0}
"""Signs of names, and the number of letters before them; `str.find` is faster than a pattern."""

Span = tuple[int, int, bool]
"""Start and end of a word or pair, and whether it is a pair."""


def words(text: str) -> list[str] | None:
    """Return the words of an NFKC text in order, or None if it has pairs, which need `spans`."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    if _HAS_UNSPACED.search(text):
        return None
    return _patterns()[0].findall(text)


def spans(text: str) -> Iterator[Span]:
    """Yield the offsets of words and pairs of an NFKC text in order."""
    if text.isascii():
        for match in _ASCII_WORD.finditer(text):
            yield *match.span(), False
        return
    _, either, unit = _patterns()
    for match in either.finditer(text):
        if match.lastindex is None:
            yield *match.span(), False
        else:
            yield from _pairs([found.span() for found in unit.finditer(text, *match.span())])


def names(text: str) -> dict[int, str]:
    """Return names with signs in an NFKC text by the start of their words.

    A name is a letter with ++ or #, or .NET. Cost: a search for a few signs.

    >>> names("C++11, F# and VB.NET on .NET")
    {0: 'C++', 7: 'F#', 25: '.NET'}
    """
    found = {}
    for sign, before in _NAME_SIGNS.items():
        at = text.find(sign)
        while at >= 0:
            if at >= before and (name := _NAME.match(text, at - before)):
                found[at - before + (name[0][0] == ".")] = name[0]
            at = text.find(sign, at + 1)
    return found


def _pairs(units: list[tuple[int, int]]) -> Iterator[Span]:
    """Yield the overlapping pairs of the characters of a run; a single character by itself."""
    if len(units) == 1:
        yield *units[0], True
    for left, right in pairwise(units):
        yield left[0], right[1], True


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    r"""Return patterns of a word, of a word or an unspaced run (group 1), and of one character.

    Compiled at first use, because collecting the marks, which `\w` excludes, takes milliseconds.
    """
    ranges = "".join(f"{chr(first)}-{chr(last)}" for first, last in marks())
    more = f"(?![\\x00-\\x7f])[{ranges}]"  # tests for ASCII first, where most words end
    letter, spaced = LETTER_PATTERN, rf"[^\W_{APOSTROPHE_LETTERS}{_UNSPACED}]"
    word = f"{letter}+(?:(?:{more})+{letter}*)*{_ENDING}"
    spaced_word = f"{spaced}+(?:(?:{more})+{spaced}*)*{_ENDING}"
    unit = f"{UNSPACED_PATTERN}(?:{more})*"
    return re.compile(word), re.compile(f"{spaced_word}|((?:{unit})+)"), re.compile(unit)


@cache
def marks() -> tuple[tuple[int, int], ...]:
    """Return the ranges of marks and ignored characters as first and last code points."""
    ranges: list[list[int]] = []
    # The planes between have no marks.
    for point in chain(range(0x80, 0x20000), range(0xE0100, 0xE01F0)):
        if point in IGNORED or unicodedata.category(chr(point)) in ("Mn", "Mc"):
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return tuple((first, last) for first, last in ranges)
