"""Segmentation of texts into words, or into character pairs in scripts without word boundaries.

Scripts without spaces (Han, kana, Thai, Lao, Khmer, Myanmar), and Hangul, whose words have
particles, give overlapping pairs of characters, each a letter with its marks; a single character is
a token itself. Other words are runs of letters, digits and marks: hyphens, underscores and
punctuation separate, and so does the zero-width non-joiner that Persian writes within words. An
English ending after an apostrophe (wing's, don't) is part of its word; other apostrophes separate
(l'avion, o'neil), but those and quotes within a Hebrew word, where they are geresh and gershayim.
Each emoji is a word, with its variation, and a flag is one. For names with signs (C++, C#, .NET)
`names` gives the name of the word that begins there. `ascii_characters` and `all_characters` are
the same rules as tables, for native code.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import chain, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search._native import Characters
from klsa_search.analysis.unicode import (
    APOSTROPHE_LETTERS,
    APOSTROPHES,
    DOUBLE_QUOTES,
    IGNORED,
    QUOTE_IN_HEBREW,
    leads_with_mark,
    nfkc,
)

NON_JOINER: Final = "\u200c"
"""The zero-width non-joiner: a mark, but after Arabic letters and their marks it separates."""
_SEPARATING: Final = f"(?<=[\u0600-\u06ff]){NON_JOINER}"

_APOSTROPHE_PATTERN: Final = f"[{APOSTROPHES}]"
LETTER_PATTERN: Final = rf"[^\W_{APOSTROPHE_LETTERS}]"
_ENDING: Final = rf"(?:{_APOSTROPHE_PATTERN}(?:[sStTmMdD]|ll|LL|re|RE|ve|VE)(?!{LETTER_PATTERN}))?"
_ASCII_WORD: Final = re.compile(rf"[^\W_]+{_ENDING}", re.ASCII)
_WITHOUT_SPACES: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai without digits and signs
    "\u0e81-\u0ece\u0edc-\u0edf"  # Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109f\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17dc\u17dd"  # Khmer
    "\u3005\u3007\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"  # Han
)
WITHOUT_SPACES_PATTERN: Final = f"[{_WITHOUT_SPACES}]"
_UNSPACED: Final = f"{_WITHOUT_SPACES}\uac00-\ud7a3"  # with syllables of Hangul
UNSPACED_PATTERN: Final = f"[{_UNSPACED}]"
_HAS_UNSPACED: Final = re.compile(UNSPACED_PATTERN)

_FLAG_PATTERN: Final = "[\U0001f1e6-\U0001f1ff]"  # half of a flag
EMOJI_PATTERN: Final = (
    "[\u231a\u231b\u23e9-\u23f3\u23f8-\u23fa\u2600-\u2604\u260e\u2611\u2614\u2615\u2618\u261d\u2620"
    "\u2622\u2623\u2626\u262a\u262e\u262f\u2638-\u263a\u2640\u2642\u2648-\u2653\u265f\u2660\u2663"
    "\u2665\u2666\u2668\u267b\u267e\u267f\u2692-\u2697\u2699\u269b\u269c\u26a0\u26a1\u26a7\u26aa\u26ab"
    "\u26b0\u26b1\u26bd\u26be\u26c4\u26c5\u26c8\u26ce\u26cf\u26d1\u26d3\u26d4\u26e9\u26ea\u26f0-\u26f5"
    "\u26f7-\u26fa\u26fd\u2702\u2705\u2708-\u270d\u270f\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734"
    "\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763\u2764\u2795-\u2797\u27a1\u27b0\u27bf\u2b1b\u2b1c"
    "\u2b50\u2b55\U0001f000-\U0001f0ff\U0001f300-\U0001f3fa\U0001f400-\U0001faff]"
)

_NAME: Final = re.compile(
    r"(?<![^\W_])[A-Za-z](?:\+\+(?!\+)|#(?![^\W_]))"
    r"|(?<!\.)\.(?:net|NET|Net)(?!\.?[^\W_])"  # not that of java.net.URL
)
_NAME_SIGNS: Final = {"++": 1, "#": 1, ".net": 0, ".NET": 0, ".Net": 0}
"""Signs of names, and the number of letters before them; `str.find` is faster than a pattern."""

Span = tuple[int, int, bool]  # start and end of a word or pair, and whether it is a pair


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
            yield from _pairs([word.span() for word in unit.finditer(text, *match.span())])


def names(text: str) -> dict[int, str]:
    """Return names with signs in an NFKC text by the start of their words.

    A name is a letter with ++ or #, or .NET, also that of ASP.NET. Cost: a search for a few signs.

    >>> names("C++11, F# and VB.NET on .NET")
    {0: 'C++', 7: 'F#', 17: '.NET', 25: '.NET'}
    """
    matches = {}
    for sign, before in _NAME_SIGNS.items():
        at = text.find(sign)
        while at >= 0:
            if at >= before and (name := _NAME.match(text, at - before)):
                matches[at - before + (name[0][0] == ".")] = name[0]
            at = text.find(sign, at + 1)
    return matches


def characters(text: str) -> list[str]:
    """Return the characters of an NFKC text, each with its marks, if all are indexed by pairs.

    An empty list for any other text.

    >>> characters("番犬"), characters("犬"), characters("dog")
    (['番', '犬'], ['犬'], [])
    """
    if text.isascii() or not _HAS_UNSPACED.match(text):
        return []
    unit = _patterns()[2]
    matches = unit.findall(text)
    return matches if sum(map(len, matches)) == len(text) else []


def _pairs(units: list[tuple[int, int]]) -> Iterator[Span]:
    """Yield the overlapping pairs of the characters of a run; a single character by itself."""
    if len(units) == 1:
        yield *units[0], True
    for left, right in pairwise(units):
        yield left[0], right[1], True


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    r"""Return patterns of a word, of a word or an unspaced run (group 1), and of its characters.

    Compiled at first use, because collecting the marks, which `\w` excludes, takes milliseconds.
    """
    ranges = "".join(f"{chr(first)}-{chr(last)}" for first, last in marks())
    # Tests for ASCII first, where most words end.
    more = f"(?![\\x00-\\x7f])(?!{_SEPARATING})[{ranges}]"
    letter, spaced = LETTER_PATTERN, rf"[^\W_{APOSTROPHE_LETTERS}{_UNSPACED}]"
    inside = f"(?:{more})+|{QUOTE_IN_HEBREW}"
    word = f"{letter}+(?:(?:{inside}){letter}*)*{_ENDING}"
    spaced_word = f"{spaced}+(?:(?:{inside}){spaced}*)*{_ENDING}"
    unit = f"{UNSPACED_PATTERN}(?:{more})*"
    emoji = f"(?:{EMOJI_PATTERN}|{_FLAG_PATTERN}{{1,2}})(?:{more})*"
    return (
        re.compile(f"{word}|{emoji}"),
        re.compile(f"{spaced_word}|((?:{unit})+)|{emoji}"),
        re.compile(unit),
    )


@cache
def marks() -> tuple[tuple[int, int], ...]:
    """Return the ranges of marks and ignored characters as first and last code points."""
    ranges: list[list[int]] = []
    # The planes between have no marks.
    for point in chain(range(0x80, 0x20000), range(0xE0020, 0xE01F0)):
        if point in IGNORED or unicodedata.category(chr(point)) in ("Mn", "Mc"):
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    return tuple((first, last) for first, last in ranges)


SEPARATOR: Final = 0
LETTER: Final = 1  # or digit, of a script with spaces
MARK: Final = 2  # belongs to the preceding character
SPACE: Final = 3  # separates; runs are folded to one blank
UNSPACED: Final = 4  # letter of a script without spaces
UNSPACED_MARK: Final = 5  # belongs to the preceding character, or begins one
APOSTROPHE: Final = 6  # separates, unless an English ending follows or within a Hebrew word
EMOJI: Final = 7  # a word
FLAG: Final = 8  # half of an emoji
JAMO: Final = 9  # NFKC may compose it and its neighbours to a letter of a script without spaces
QUOTE: Final = 10  # separates, unless within a Hebrew word
JOINER: Final = 11  # a mark that separates after Arabic
# Bits that are added to a class:
CHANGED: Final = 16  # NFKC replaces it
REORDERED: Final = 32  # a mark that NFKC may move to the left

_POINTS: Final = 0xE0200
# Other planes have only separators so far.
_ASSIGNED: Final = (*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, _POINTS))
_LINE_END: Final = "\n"  # separates forms: NFKC never composes it


@cache
def ascii_characters() -> Characters:
    """Return the tables of ASCII."""
    nothing = np.zeros(0, np.uint32)
    classes = _classes("".join(map(chr, range(128))))
    return Characters(classes, nothing, np.zeros(1, np.int32), nothing)


@cache
def all_characters() -> Characters:
    """Return the tables of Unicode. Cost: 0.1 s and 1 MB, once."""
    text = "".join(map(chr, _ASSIGNED))
    classes = np.zeros(_POINTS, np.uint8)
    classes[list(_ASSIGNED)] = _classes(text)
    for first, last in marks():
        run = classes[first : last + 1]
        run[:] = np.where(run == UNSPACED, UNSPACED_MARK, MARK)
    classes[ord(NON_JOINER)] = JOINER
    normal = nfkc(_LINE_END.join(text.replace(_LINE_END, " ")))
    changes = [
        (character, form)
        for character, form in zip(text, normal.split(_LINE_END), strict=True)
        if form != character and character != _LINE_END
    ]
    changed = np.array([ord(character) for character, _ in changes], np.uint32)
    classes[changed] |= CHANGED
    candidates = chain(changed.tolist(), *(range(first, last + 1) for first, last in marks()))
    classes[[point for point in candidates if leads_with_mark(chr(point))]] |= REORDERED
    starts = np.cumsum([0, *(len(form) for _, form in changes)]).astype(np.int32)
    forms = [ord(character) for character in chain.from_iterable(form for _, form in changes)]
    return Characters(classes, changed, starts, np.array(forms, np.uint32))


def _classes(text: str) -> npt.NDArray[np.uint8]:
    """Return the classes of the characters of a text, except marks."""
    classes = np.zeros(len(text), np.uint8)
    for pattern, kind in (
        (LETTER_PATTERN, LETTER),
        (UNSPACED_PATTERN, UNSPACED),
        (EMOJI_PATTERN, EMOJI),
        (_FLAG_PATTERN, FLAG),
        ("[\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb]", JAMO),
        (r"\s", SPACE),
        (f"[{DOUBLE_QUOTES}]", QUOTE),
    ):
        for run in re.finditer(f"(?:{pattern})+", text):
            classes[slice(*run.span())] = kind
    for apostrophe in re.finditer(_APOSTROPHE_PATTERN, text):
        classes[apostrophe.start()] = APOSTROPHE
    return classes
