"""Detection of the language of a collection: by script, and by py3langid within a script.

Hangul, kana, Han and most other scripts say the language by themselves. Texts in Latin, Cyrillic,
Arabic and Devanagari letters are classified in pieces, which vote by length and confidence.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from klsa_search.analysis.languages import AUTO, CODES, NONE

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

MAX_CHARACTERS: Final = 2_000  # characters of a text that are read
MIN_CHARACTERS: Final = 60
"""Letters that must agree on a language, times the confidence in it: with fewer, names and codes
are taken for another language than that of the text."""

MIN_SHARE: Final = 0.1  # share of the texts from which a further language is one of a collection
_MIN_WORDS: Final = 6  # distinct ones: a line that is repeated tells no more than once
_LEAST_IN_SCRIPT: Final = 10  # of a script that says the language
_CLEAR: Final = 0.5  # share of the text from which one language is that of a collection
_SURE: Final = 0.98  # confidence in the language of a text that counts for a further one
_SHORTEST: Final = 15  # letters; shorter texts are left out
_ENOUGH: Final = 500  # characters of a text that tell its language
_LONG_PIECE: Final = 200  # characters; shorter texts are joined
_WIDE: Final = 2  # letters of other scripts that a letter of Han, kana and Hangul counts as

_LATIN, _CYRILLIC, _ARABIC, _DEVANAGARI = "latin script", "cyrillic", "arabic script", "devanagari"
_HAN, _KANA = "chinese", "japanese"
_CLASSIFIED: Final = frozenset({_LATIN, _CYRILLIC, _ARABIC, _DEVANAGARI})
# First code points of ranges, with the script or language of their letters.
_RANGES: Final = (
    (0x0, _LATIN), (0x370, "greek"), (0x400, _CYRILLIC), (0x530, "armenian"), (0x590, "hebrew"),
    (0x600, _ARABIC), (0x700, NONE), (0x750, _ARABIC), (0x780, NONE), (0x8A0, _ARABIC),
    (0x900, _DEVANAGARI), (0x980, "bengali"), (0xA00, NONE), (0xA80, "gujarati"), (0xB00, NONE),
    (0xB80, "tamil"), (0xC00, NONE), (0xE00, "thai"), (0xE80, NONE), (0x1100, "korean"),
    (0x1200, NONE), (0x1E00, _LATIN), (0x1F00, "greek"), (0x2000, NONE), (0x2C60, _LATIN),
    (0x2C80, NONE), (0x3041, _KANA), (0x3100, NONE), (0x3130, "korean"), (0x3190, NONE),
    (0x31F0, _KANA), (0x3200, NONE), (0x3400, _HAN), (0xA000, NONE), (0xAC00, "korean"),
    (0xD7A4, NONE), (0xF900, _HAN), (0xFB00, _LATIN), (0xFB13, "armenian"), (0xFB1D, "hebrew"),
    (0xFB50, _ARABIC), (0xFE00, NONE), (0xFE70, _ARABIC), (0xFF00, _LATIN), (0xFF66, _KANA),
    (0xFFA0, NONE), (0x20000, _HAN), (0x32400, NONE),
)  # fmt: skip
_SCRIPTS: Final = {
    **dict.fromkeys(["bulgarian", "russian", "serbian", "ukrainian"], _CYRILLIC),
    **dict.fromkeys(["arabic", "persian", "urdu"], _ARABIC),
    **dict.fromkeys(["hindi", "marathi", "nepali"], _DEVANAGARI),
    **dict.fromkeys([name for _, name in _RANGES if name not in (_LATIN, NONE)], ""),
}  # of languages that are not written in Latin letters, "" if the script is named like them
_STARTS: Final = [start for start, _ in _RANGES]
_KANA_OF_JAPANESE: Final = 0.05  # of kana and Han

# Codes of the library for languages with rules of another name, and of frequent languages without
# rules, which would be taken for their neighbours.
_SAME: Final = {"bs": "croatian", "nn": "norwegian", "sr": "serbian", "ne": "nepali"}
_WITHOUT_RULES: Final = (
    "az", "be", "cy", "fo", "is", "kk", "ky", "lb", "mk", "mn", "mt", "ps", "sq", "tg", "tk", "tt",
    "ug", "uz",
)  # fmt: skip
_NO_LANGUAGE: Final = "zxx"  # code, numbers


class DetectedLanguage(NamedTuple):
    """Result of a detection.

    language  name of the language; `none` for one without rules, `auto` for too little text
    share     of the text that is in this language
    """

    language: str
    share: float


def detect_language(texts: Iterable[str]) -> DetectedLanguage:
    """Return the language of most of the text, by length.

    Cost: 0.7 s once for Latin, Cyrillic, Arabic and Devanagari, and 0.2 ms per text.

    >>> detect_language(["Die Pumpe verliert Kühlmittel, sobald der Motor warm ist."] * 2)
    DetectedLanguage(language='german', share=1.0)
    >>> detect_language(["학교에서 공부했다"]).language, detect_language(["Pumpe"]).language
    ('korean', 'auto')
    """
    votes: dict[str, float] = defaultdict(float)
    in_script: dict[str, list[str]] = defaultdict(list)
    for text in (text[:MAX_CHARACTERS] for text in texts):
        script, letters = _script_of(text)
        if script in _CLASSIFIED:
            in_script[script].append(text)
        else:
            votes[script] += letters
    for piece in chain.from_iterable(map(_pieces, in_script.values())):
        _classify(piece, votes, Counter())
    language = max(sorted(votes), key=votes.__getitem__, default=AUTO)
    by_script = {name for _, name in _RANGES} - _CLASSIFIED
    least = _LEAST_IN_SCRIPT if language in by_script else MIN_CHARACTERS
    if votes[language] < least:
        return DetectedLanguage(AUTO, 0.0)
    return DetectedLanguage(language, round(votes[language] / sum(votes.values()), 2))


def detect_languages(texts: Sequence[str]) -> list[DetectedLanguage]:
    """Return the languages of a collection: that of most of the text, and others of many texts.

    A further language needs at least two texts, and a share of `MIN_SHARE` of all; a single one,
    half of the text, which names of people and products do not give to any. Short texts that
    seem to be in one language are joined, and detected together. If there are several languages,
    the share of each is its part of the text; the commonest is first.
    Cost: twice `detect_language`.

    >>> german = "Die Pumpe verliert Kühlmittel, sobald der Motor warm ist."
    >>> english = "The coolant leaks from the pump as soon as the engine is warm."
    >>> [found.language for found in detect_languages([english, german, german] * 2)]
    ['german', 'english']
    """
    first = detect_language(texts)
    votes: dict[str, float] = defaultdict(float)
    number: Counter[str] = Counter()
    alike: dict[str, list[str]] = defaultdict(list)
    for text in (text[:_ENOUGH] for text in texts):
        script, letters = _script_of(text)
        if script not in _CLASSIFIED and letters >= _LEAST_IN_SCRIPT:
            votes[script] += letters
            number[script] += 1
        elif letters >= MIN_CHARACTERS:
            _classify([text], votes, number)
        elif letters >= _SHORTEST:
            alike[_identifier().classify(text)[0]].append(text)
    for piece in chain.from_iterable(map(_pieces, alike.values())):
        _classify(piece, votes, number)
    several = [
        language
        for language in sorted(votes, key=lambda language: (-votes[language], language))
        if language not in (NONE, AUTO)
        and (language == first.language or number[language] >= max(2, MIN_SHARE * number.total()))
    ]
    if first.language in (NONE, AUTO) or len(several) < 2:
        return [first if first.share >= _CLEAR else DetectedLanguage(AUTO, 0.0)]
    total = sum(votes.values())
    return [DetectedLanguage(name, round(votes[name] / total, 2)) for name in several]


def _pieces(texts: Iterable[str]) -> Iterator[list[str]]:
    """Divide texts into pieces of at least `_LONG_PIECE` characters, but for the last."""
    piece: list[str] = []
    for text in texts:
        piece.append(text)
        if sum(map(len, piece)) >= _LONG_PIECE:
            yield piece
            piece = []
    if piece:
        yield piece


def language_among(text: str, languages: Sequence[str]) -> str:
    """Return which of some languages a text is in: the first if its letters do not tell.

    Cost: 0.1 ms if several of them have the script of the text, and 0.7 s once for the model.

    >>> language_among("насос", ["english", "russian"])
    'russian'
    >>> language_among("Die Pumpe verliert Kühlmittel", ["english", "german"])
    'german'
    """
    text = text[:_ENOUGH]
    script, letters = _script_of(text)
    if not letters:
        return languages[0]
    in_script = [name for name in languages if _SCRIPTS.get(name, _LATIN) == script]
    if script not in _CLASSIFIED:
        in_script = [name for name in languages if name == script]
    if len(in_script) < 2:
        return in_script[0] if in_script else languages[0]
    ranked = (_names()[code] for code, _ in _identifier().rank(text))
    return next((name for name in ranked if name in in_script), languages[0])


def release_model() -> None:
    """Free the memory of the model, 85 MB; the next detection loads it again."""
    _identifier.cache_clear()


def _script_of(text: str) -> tuple[str, int]:
    """Return the script of most letters of a text, or its language, and the number of letters."""
    letters: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if character.isalpha():
            script = _RANGES[bisect_right(_STARTS, ord(character)) - 1][1]
            letters[script] += count * (_WIDE if script in (_HAN, _KANA, "korean") else 1)
    if letters[_KANA] >= _KANA_OF_JAPANESE * (letters[_KANA] + letters[_HAN]):
        letters[_KANA] += letters.pop(_HAN, 0)
    script = max(sorted(letters), key=letters.__getitem__, default=NONE)
    return script, letters[script]


def _classify(piece: list[str], votes: dict[str, float], number: Counter[str]) -> None:
    """Add the votes of texts in one script, without those in no language; count the sure ones."""
    text = "\n".join(piece)
    letters = sum(map(str.isalpha, text))
    if letters < MIN_CHARACTERS or len(set(text.split())) < _MIN_WORDS:
        return
    code, confidence = _identifier().classify(text[:MAX_CHARACTERS])
    if code != _NO_LANGUAGE:
        votes[_names()[code]] += letters * float(confidence)
        number[_names()[code]] += len(piece) * (confidence >= _SURE)


@cache
def _names() -> dict[str, str]:
    """Return the languages that can be detected, by their code in py3langid."""
    names = {code: name for name, code in CODES.items()}
    return {**dict.fromkeys([*_WITHOUT_RULES, _NO_LANGUAGE], NONE), **_SAME, **names}


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages([code for code in identifier.labels if code in _names()])
    return identifier
