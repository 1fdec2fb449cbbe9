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
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
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
UNCHANGED: Final = re.compile(f"[{_INERT}]+(?![^{_INERT}])")
# Soft hyphen, joiners, byte-order mark.
_INVISIBLE: Final = dict.fromkeys([0xAD, 0x34F, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
_VARIATIONS: Final = dict.fromkeys([*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
_ENCLOSING: Final = dict.fromkeys([*range(0x20DD, 0x20E1), *range(0x20E2, 0x20E5)])
_OF_EMOJI: Final = dict.fromkeys([*range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080)])  # skin, tags
IGNORED: Final = {**_INVISIBLE, **_VARIATIONS, **_ENCLOSING, **_OF_EMOJI}
"""Code points that belong to the preceding character and are not in terms, for `str.translate`."""

# Marks that most texts leave out: points and accents of Hebrew, vowel signs and marks of recitation
# of Arabic with tatweel, and the hamza of the Persian ezafe (NFKC has composed that of a letter),
# points of Syriac and Samaritan, nukta and Vedic accents.
_OPTIONAL: Final = "".join(
    chr(point)
    for first, last in (
        (0x591, 0x5BD), (0x5BF, 0x5BF), (0x5C1, 0x5C2), (0x5C4, 0x5C5), (0x5C7, 0x5C7),
        (0x610, 0x61A), (0x640, 0x640), (0x64B, 0x65F), (0x670, 0x670),
        (0x6D6, 0x6DC), (0x6DF, 0x6E4), (0x6E7, 0x6E8), (0x6EA, 0x6ED),
        (0x898, 0x89F), (0x8CA, 0x8E1), (0x8E3, 0x8FF),
        (0x711, 0x711), (0x730, 0x74A), (0x816, 0x819), (0x81B, 0x823), (0x825, 0x82D),
        (0x93C, 0x93C), (0x951, 0x954), (0x1CD0, 0x1CD2), (0x1CD4, 0x1CE8), (0x1CED, 0x1CED),
        (0x1CF4, 0x1CF4),
    )
    for point in range(first, last + 1)
)  # fmt: skip
APOSTROPHES: Final = "'\u2018\u2019\u201b\u2032\u02b9\u02bb-\u02bd\u02c8\u055a\u05f3\ua78b\ua78c"
"""Characters typed as apostrophes, as ranges of a pattern."""
APOSTROPHE_LETTERS: Final = "\u02b9\u02bb-\u02bd\u02c8\ua78b\ua78c"
"""Those that Unicode takes for letters."""
DOUBLE_QUOTES: Final = '"\u201c\u201d\u05f4'  # characters typed as double quotes
_HEBREW: Final = "[\u0591-\u05c7\u05d0-\u05f2]"
QUOTE_IN_HEBREW: Final = f"(?<={_HEBREW})(?:[{APOSTROPHES}]{{1,2}}|[{DOUBLE_QUOTES}])(?={_HEBREW})"
"""Pattern of gershayim or geresh within a word, as any keyboard types them."""

# Letters that readers of a script take for the same, each before what stands for it.
_SAME: Final = (
    "\u05f0\u05d5\u05d5 \u05f1\u05d5\u05d9 \u05f2\u05d9\u05d9 "  # ligatures of Yiddish
    "\u0671\u0627 "  # the alef of recitation
    "\u0649\u064a \u06cc\u064a \u06a9\u0643 "  # yeh and kaf of other keyboards
    "\u06c0\u0647 \u06c1\u0647 \u06c2\u0647 "  # heh of Urdu, and with the hamza of the ezafe
    "\u0901\u0902 "  # signs of nasal vowels
    "\u09ce\u09a4\u09cd \u0d7a\u0d23\u0d4d \u0d7b\u0d28\u0d4d \u0d7c\u0d30\u0d4d "
    "\u0d7d\u0d32\u0d4d \u0d7e\u0d33\u0d4d \u0d7f\u0d15\u0d4d "  # final consonants
    "ևեվ "  # the Armenian ligature, of which capitals are ԵՎ or ԵՒ
    "ሃሀ ሓሀ ኃሀ ኣአ ዓአ "
    "ヶケ ヵカ 臺台 裏裡 爲為 衆眾 綫線 峯峰 羣群 啓啟 麪麵 牀床 祕秘"
)
# First letters of series of seven that sound alike in Ethiopic.
_ALIKE: Final = ("ሐሀ", "ኀሀ", "ሠሰ", "ዐአ", "ፀጸ")
_WRITTEN_AS: Final = {
    **IGNORED,
    **dict.fromkeys(map(ord, _OPTIONAL)),
    **{ord(one) + form: chr(ord(other) + form) for one, other in _ALIKE for form in range(7)},
    **{ord(same[0]): same[1:] for same in _SAME.split()},
}
HAMZAS: Final = str.maketrans("أإآؤئة", "اااويه")
"""Arabic letters and those that are typed for them; the stemmer of Arabic needs them apart."""


def _on_first_vowel(diphthong: re.Match[str]) -> str:
    marked = unicodedata.normalize("NFD", diphthong[0])
    return unicodedata.normalize("NFC", marked[0] + marked[2:] + marked[1])


_TONES: Final = "àáảãạèéẻẽẹỳýỷỹỵ"
_BY_RULE: Final = re.compile(
    f"[{APOSTROPHES}{DOUBLE_QUOTES}\u03bc\u0300\u0301\u0582\u0552\u094d\u0e4d\u0ecd{_TONES}{_TONES.upper()}]"
    r"|[^\D0-9]"
)
"""Characters that only some rule changes: most words have none."""

_RULES: Final[Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]]] = (
    (re.compile(QUOTE_IN_HEBREW), ""),
    (re.compile("\u03bc(?=[A-Za-z])"), "u"),  # micro: 10uF
    (re.compile("[Եե][Ււ]"), "եվ"),  # as classical Armenian writes it
    (re.compile("(?<=[\u0400-\u052f])[\u0300\u0301]"), ""),  # stress marks of Cyrillic
    # A nasal before a consonant of its class, in Devanagari: पम्प, पंप.
    (re.compile("ङ्(?=[क-घ])|ञ्(?=[च-झ])|ण्(?=[ट-ढ])|न्(?=[त-ध])|म्(?=[प-भ])"), "ं"),
    # Thai and Lao type the am and the tone of a syllable in any order.
    (re.compile("([\u0e4d\u0ecd])([\u0e32\u0eb2]?)([\u0e48-\u0e4b\u0ec8-\u0ecb])"), r"\3\1\2"),
    # Vietnamese writes the tone of an open diphthong on either vowel.
    (re.compile(r"(?:o[àáảãạèéẻẽẹ]|u[ỳýỷỹỵ])\Z", re.IGNORECASE), _on_first_vowel),
    (re.compile(f"[{APOSTROPHES}]"), "'"),
    (re.compile(r"[^\D0-9]"), lambda digit: str(unicodedata.decimal(digit[0]))),
)


def bare(word: str) -> str:
    """Return a word as most texts write it.

    Without ignored characters, optional marks, gershayim and stress marks of Cyrillic; with the
    apostrophe and decimal digits of ASCII, and one of the letters and marks that are used alike.

    >>> bare("شَمْس"), bare("за\u0301мок"), bare("комп’ютер"), bare("٤٢"), bare("पम्प")
    ('شمس', 'замок', "комп'ютер", '42', 'पंप')
    >>> bare("צה״ל"), bare("臺灣"), bare("hoà")
    ('צהל', '台灣', 'hòa')
    """
    if word.isascii():
        return word
    word = word.translate(_WRITTEN_AS)
    if _BY_RULE.search(word) is None:
        return word
    for pattern, written in _RULES:
        word = pattern.sub(written, word)
    return word


# Letters whose accents can be folded: Latin, Greek and Cyrillic, after decomposition.
_ACCENTED: Final = re.compile(
    "([A-Za-z\u00aa-\u02af\u0370-\u052f\u1d00-\u1dbf\u1e00-\u1fff\u2c60-\u2c7f\ua720-\ua7ff])"
    "[\u0300-\u036f\u0483-\u0487\u1ab0-\u1aff\u1dc0-\u1dff\ufe20-\ufe2f]+"
)


_APART: Final = re.compile("([\u2120\u2122])|([\u00bc-\u00be\u2150-\u215f\u2189])")


def nfkc(text: str) -> str:
    """Return the NFKC form of a text, fast if it is normalised already.

    Signs of trade marks are blanks, and fractions do not join the number before them.

    >>> nfkc("Lego™ ﬁts 1½ cm²")
    'Lego  fits 1 1⁄2 cm2'
    """
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", _APART.sub(lambda sign: f" {sign[2] or ''}", text))


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
            if plain := UNCHANGED.match(original, at):
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
    end, form = at + 1, nfkc(text[at])
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
    """Return a word with plain letters for accented Latin, Greek and Cyrillic ones.

    Latin letters that do not decompose become those that are typed for them. Marks of other scripts
    stay.

    >>> fold_accents("Łódź"), fold_accents("smørrebrød"), fold_accents("þæt")
    ('Lodz', 'smorrebrod', 'thaet')
    """
    if word.isascii():
        return word
    plain = _ACCENTED.sub(r"\1", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", plain).translate(_plain_letters())


_WITHOUT_DOTS: Final = str.maketrans({"å": "aa", "ä": "ae", "ö": "oe", "ø": "oe", "ü": "ue"})
_PAIR: Final = re.compile("(?<=a)a|(?<=[aou])e")


def in_pairs(word: str) -> str:
    """Return a folded word with the pairs of letters that are typed for å, ä, ö, ø and ü.

    >>> in_pairs("ålborg"), in_pairs("køge")
    ('aalborg', 'koege')
    """
    return word.translate(_WITHOUT_DOTS)


def without_pairs(word: str) -> str:
    """Return a folded word with one plain letter for each pair that may stand for a marked one.

    >>> without_pairs("aalborg"), without_pairs("smoerrebroed")
    ('alborg', 'smorrebrod')
    """
    return _PAIR.sub("", word)


def may_have_accents(word: str) -> bool:
    """Return whether `fold_accents` may change a word in NFKC. Cost: 0.1 µs.

    >>> may_have_accents("Łódź"), may_have_accents("вода"), may_have_accents("飛機")
    (True, False, False)
    """
    return not word.isascii() and _letters_to_fold().search(word) is not None


@cache
def _letters_to_fold() -> re.Pattern[str]:
    """Return a pattern of letters and marks that are folded."""
    blocks = (0x80, 0x530), (0x1AB0, 0x2000), (0x2C60, 0x2C80), (0xA640, 0xA800), (0xFE20, 0xFE30)
    letters = (f"a{chr(point)}" for first, last in blocks for point in range(first, last))
    return re.compile(f"[{''.join(word[1] for word in letters if fold_accents(word) != word)}]")


_NAMED: Final = re.compile("LATIN (SMALL|CAPITAL) LETTER ([A-Z]) WITH ")  # stroke, hook, tail
_TYPED: Final = {"æ": "ae", "œ": "oe", "ı": "i", "ð": "d", "þ": "th", "ŋ": "n", "ĸ": "k", "ȷ": "j"}


@cache
def _plain_letters() -> dict[int, str]:
    """Return what Latin letters that do not decompose are folded to, by code point."""
    table = {ord(letter): plain for letter, plain in _TYPED.items()}
    table |= {
        ord(letter.upper()): plain.capitalize()
        for letter, plain in _TYPED.items()
        if letter.upper() > "\x7f"
    }
    for point in chain(range(0x80, 0x2B0), range(0x1D00, 0x1DC0), range(0x2C60, 0xA7FF)):
        character = chr(point)
        named = _NAMED.match(unicodedata.name(character, ""))
        if named and not unicodedata.decomposition(character):
            table[point] = named[2].lower() if named[1] == "SMALL" else named[2]
    return table


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
