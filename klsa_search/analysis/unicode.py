"""Unicode normalisation (NFKC with offsets), and accent folding by language.

NFKC unifies spellings (full-width, ligatures, circled digits, letter and accent) and changes
lengths; `Alignment` maps offsets back to the original.

A marked letter of the alphabet of a language (Swedish å ä ö, Spanish ñ, Polish ł ż; by the
collations of CLDR) is not folded. Folding precedes stemming, so that spellings with and without
accents share a stem; accents of endings that the stemmer needs are restored.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

# Characters that NFKC does not change and that never compose with the preceding one: ASCII, Latin,
# Cyrillic, quotes and dashes, kana, Han, Hangul syllables. A following mark may change one, so a
# run ends before a character followed by anything else.
_INERT: Final = (
    "\x00-\x7f\u00c0-\u0131\u0134-\u013e\u0141-\u0148\u014a-\u017e\u0180-\u01c3"
    "\u01cd-\u01f0\u01f4-\u024f\u0400-\u0482\u048a-\u052f\u2012-\u2016\u2018-\u2023"
    "\u3041-\u3096\u30a1-\u30fa\u3400-\u9fff\uac00-\ud7a3"
)
_PLAIN: Final = re.compile(f"[{_INERT}]+(?![^{_INERT}])")
# Soft hyphen, joiners, byte-order mark.
_INVISIBLE: Final = dict.fromkeys([0xAD, 0x34F, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
_VARIATIONS: Final = dict.fromkeys([*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
_ENCLOSING: Final = dict.fromkeys([*range(0x20DD, 0x20E1), *range(0x20E2, 0x20E5)])
IGNORED: Final = {**_INVISIBLE, **_VARIATIONS, **_ENCLOSING}
"""Code points of a word that are removed from its term, as a table for `str.translate`."""

# Letters whose accents can be folded: Latin, Greek and Cyrillic, after decomposition.
_ACCENTED: Final = re.compile(
    "([A-Za-z\u00aa-\u02af\u0370-\u052f\u1d00-\u1dbf\u1e00-\u1fff\u2c60-\u2c7f\ua720-\ua7ff])"
    "[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\ufe20-\ufe2f]+"
)


def nfkc(text: str) -> str:
    """Return the NFKC form of a text, fast if it is normalised already."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", text)


class Alignment:
    """NFKC form of a text, with the range of the original that each character came from.

    `text` equals `nfkc(original)`. A range is the shortest run of the original that normalises
    independently, so `original[start(i):end(i)]` always yields at least `text[i]`.
    Cost: none if the text is normalised; else O(n) time and 16 bytes per character.
    """

    __slots__ = ("_ends", "_starts", "text")

    def __init__(self, original: str) -> None:
        self.text = original
        self._starts: array[int] | None = None
        self._ends: array[int] | None = None
        if not original.isascii() and not unicodedata.is_normalized("NFKC", original):
            self._align(original)

    def start(self, index: int) -> int:
        """Return the offset in the original at which the range of character `index` begins."""
        return index if self._starts is None else self._starts[index]

    def end(self, index: int) -> int:
        """Return the offset in the original after the range of character `index`."""
        return index + 1 if self._ends is None else self._ends[index]

    def _align(self, original: str) -> None:
        starts, ends = array("q"), array("q")
        out: list[str] = []
        at, length = 0, len(original)
        while at < length:
            if plain := _PLAIN.match(original, at):
                stop = plain.end()
                out.append(plain.group())
                starts.extend(range(at, stop))
                ends.extend(range(at + 1, stop + 1))
            else:
                stop, form = _piece(original, at)
                out.append(form)
                starts.extend([at] * len(form))
                ends.extend([stop] * len(form))
            at = stop
        self.text, self._starts, self._ends = "".join(out), starts, ends


def _piece(text: str, at: int) -> tuple[int, str]:
    """Return end and NFKC form of the shortest run from `at` on that normalises independently."""
    end, form = at + 1, unicodedata.normalize("NFKC", text[at])
    while end < len(text):
        marks = end
        while end < len(text) and leads_with_mark(text[end]):
            end += 1
        form = unicodedata.normalize("NFKC", form + text[marks:end])
        # A starter composes only with the adjacent preceding character.
        following = text[end : end + 1]
        joined = unicodedata.normalize("NFKC", form[-1] + following)
        if joined == form[-1] + unicodedata.normalize("NFKC", following):
            break
        form = form[:-1] + joined
        end += 1
    return end, form


def leads_with_mark(character: str) -> bool:
    """Return whether NFKC may move the character to the left."""
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0


def fold_accents(word: str) -> str:
    """Return a word without the accents of Latin, Greek and Cyrillic letters.

    Marks of other scripts and letters without decomposition (ø, ł, đ) stay.
    """
    if word.isascii():
        return word
    bare = _ACCENTED.sub(r"\1", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare)


class Accents(NamedTuple):
    """Accent folding of a language.

    kept     marked letters that are not folded
    endings  endings that the language's stemmer needs accented, without → with accents, the longest
             first
    """

    kept: str = ""
    endings: Mapping[str, str] = MappingProxyType({})

    def folded(self, word: str) -> str:
        """Return a word, which is in NFC, with accents folded.

        >>> Accents("ñ").folded("españolísimo")
        'españolisimo'
        """
        if not self.kept:
            return fold_accents(word)
        return "".join(
            part if part in self.kept else fold_accents(part)
            for part in re.split(f"([{self.kept}])", word)
        )

    def restored(self, word: str) -> str:
        """Return a folded word with the accents of its ending.

        >>> ACCENTS["french"].restored("utilisees")
        'utilisées'
        """
        for bare, written in self.endings.items():
            if len(word) > len(bare) + 1 and word.endswith(bare):
                return word.removesuffix(bare) + written
        return word


_FRENCH: Final = {
    "erent": "èrent",
    "eres": "ères",
    "ites": "ités",
    "ees": "ées",
    "ere": "ère",
    "ite": "ité",
    "ee": "ée",
}
_PORTUGUESE: Final = {"coes": "ções", "cao": "ção", "oes": "ões", "aos": "ãos", "ao": "ão"}
_CATALAN: Final = {"cio": "ció", "sio": "sió"}

ACCENTS: Final[Mapping[str, Accents]] = MappingProxyType(
    {
        **dict.fromkeys(
            ["afrikaans", "dutch", "english", "german", "greek", "italian", "latin"], Accents()
        ),
        "catalan": Accents(endings=MappingProxyType(_CATALAN)),
        "french": Accents(endings=MappingProxyType(_FRENCH)),
        "galician": Accents("ñ"),
        "portuguese": Accents(endings=MappingProxyType(_PORTUGUESE)),
        "spanish": Accents("ñ"),
    }
)
"""Languages with accent folding; others have none."""
