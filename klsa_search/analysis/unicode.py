"""Unicode normalisation (NFKC with offsets), case folding, and accents by language.

NFKC makes one character of many spellings (full-width, ligatures, circled digits, letter and
accent) and changes lengths while doing so; offsets into the original need the way back.

Where a language counts a marked letter among those of its alphabet (Swedish å ä ö, Spanish ñ,
Polish ł ż), it is another letter and stays; what is one is taken from the collations of CLDR.
Folding comes before stemming, so that a word has one stem however it is typed; stemmers that know
endings by their accents get these back.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

# Characters that NFKC leaves alone and that never join the one before: ASCII, Latin, Cyrillic,
# quotes and dashes, kana, Han, Hangul syllables. A mark after them may change them, so a run of
# them ends before the character that something else follows.
_INERT: Final = (
    "\x00-\x7f\u00c0-\u0131\u0134-\u013e\u0141-\u0148\u014a-\u017e\u0180-\u01c3"
    "\u01cd-\u01f0\u01f4-\u024f\u0400-\u0482\u048a-\u052f\u2012-\u2016\u2018-\u2023"
    "\u3041-\u3096\u30a1-\u30fa\u3400-\u9fff\uac00-\ud7a3"
)
_PLAIN: Final = re.compile(f"[{_INERT}]+(?![^{_INERT}])")
# Soft hyphen, joiners, byte order mark: they say how a word is set, not what it is.
_INVISIBLE: Final = dict.fromkeys([0xAD, 0x34F, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
_VARIATIONS: Final = dict.fromkeys([*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
_ENCLOSING: Final = dict.fromkeys([*range(0x20DD, 0x20E1), *range(0x20E2, 0x20E5)])
IGNORED: Final = {**_INVISIBLE, **_VARIATIONS, **_ENCLOSING}
"""Code points that are part of a word and no part of its term, as a table for `str.translate`."""

# Letters whose accents may go: Latin, Greek and Cyrillic, after decomposition.
_ACCENTED: Final = re.compile(
    "([A-Za-z\u00aa-\u02af\u0370-\u052f\u1d00-\u1dbf\u1e00-\u1fff\u2c60-\u2c7f\ua720-\ua7ff])"
    "[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\ufe20-\ufe2f]+"
)


def nfkc(text: str) -> str:
    """NFKC of a text; the text itself, at the price of a look, where nothing changes."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", text)


class Alignment:
    """NFKC of a text, and for each of its characters the piece of the original it came from.

    `text` equals `nfkc(original)`. A piece is the shortest run of the original that normalises on
    its own, so `original[start(i):end(i)]` always yields at least `text[i]`.
    Cost: none where nothing changes; else O(n) time and 16 bytes a character.
    """

    __slots__ = ("_ends", "_starts", "text")

    def __init__(self, original: str) -> None:
        self.text = original
        self._starts: array[int] | None = None
        self._ends: array[int] | None = None
        if not original.isascii() and not unicodedata.is_normalized("NFKC", original):
            self._align(original)

    def start(self, index: int) -> int:
        """Offset in the original where the piece of character `index` begins."""
        return index if self._starts is None else self._starts[index]

    def end(self, index: int) -> int:
        """Offset in the original just after the piece of character `index`."""
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
    """End and NFKC of the shortest run from `at` on that normalises on its own."""
    end, form = at + 1, unicodedata.normalize("NFKC", text[at])
    while end < len(text):
        marks = end
        while end < len(text) and leads_with_mark(text[end]):
            end += 1
        form = unicodedata.normalize("NFKC", form + text[marks:end])
        # A starter joins what is before it only where it composes with the character next to it.
        following = text[end : end + 1]
        joined = unicodedata.normalize("NFKC", form[-1] + following)
        if joined == form[-1] + unicodedata.normalize("NFKC", following):
            break
        form = form[:-1] + joined
        end += 1
    return end, form


def leads_with_mark(character: str) -> bool:
    """Whether NFKC may move the character before the one on its left."""
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) != 0


def fold_accents(word: str) -> str:
    """Take the accents off Latin, Greek and Cyrillic letters; marks of other scripts stay.

    Letters that are letters of their own (ø, ł, đ) stay as well.
    """
    if word.isascii():
        return word
    bare = _ACCENTED.sub(r"\1", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare)


class Accents(NamedTuple):
    """Accents that go.

    kept     marked letters that are letters of their own
    endings  of words as they are without accents, and with: those that the language's stemmer has
             to see, the longest first
    """

    kept: str = ""
    endings: Mapping[str, str] = MappingProxyType({})

    def folded(self, word: str) -> str:
        """Take them off a word, which is in NFC.

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
        """Give a word without accents those of its ending back.

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
"""Languages whose accents go; those of others stay."""
