"""Languages: Snowball stemmers, stop lists, and the two spellings of English.

Stemmers are those of PyStemmer, long stop lists those of stopwordsiso without the content words in
`data/english_kept.txt`. The only short list is `data/english_short.txt`.

Stemmers keep *colour* and *color* apart, and most verbs in -ise and -ize, so English words are
spelt in one way before they are stemmed, in documents and in queries. The rules are patterns by
which classes of words differ; a word of neither class may be changed as well, but always alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from importlib.resources import files
from typing import Final

import Stemmer
import stopwordsiso

from klsa_search.errors import SettingsError

NONE: Final = "none"  # language without stop words; stemmer that changes nothing
AUTO: Final = "auto"
"""Stemmer of the language: Porter's for English. Language to be detected, English until then."""

ENGLISH: Final = "english"

CODES: Final = {
    "afrikaans": "af", "arabic": "ar", "armenian": "hy", "basque": "eu",
    "bengali": "bn", "breton": "br", "bulgarian": "bg", "catalan": "ca", "chinese": "zh",
    "croatian": "hr", "czech": "cs", "danish": "da", "dutch": "nl", "english": "en",
    "esperanto": "eo", "estonian": "et", "finnish": "fi", "french": "fr", "galician": "gl",
    "german": "de", "greek": "el", "gujarati": "gu", "hausa": "ha", "hebrew": "he", "hindi": "hi",
    "hungarian": "hu", "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja",
    "korean": "ko", "kurdish": "ku", "latin": "la", "latvian": "lv", "lithuanian": "lt",
    "malay": "ms", "marathi": "mr", "norwegian": "no", "persian": "fa", "polish": "pl",
    "portuguese": "pt", "romanian": "ro", "russian": "ru", "sesotho": "st", "slovak": "sk",
    "slovenian": "sl", "somali": "so", "spanish": "es", "swahili": "sw", "swedish": "sv",
    "tagalog": "tl", "thai": "th", "turkish": "tr", "ukrainian": "uk", "urdu": "ur",
    "vietnamese": "vi", "yoruba": "yo", "zulu": "zu",
}  # fmt: skip
_MARKS: Final = ".:-'’”"
"""Characters around words of the lists that are not part of words in a text."""
_VARIANTS: Final = frozenset({"dutch_porter", "porter"})
"""Snowball algorithms that are not named by their language."""


_RELATED: Final = {
    "afrikaans": "dutch", "bulgarian": "russian", "croatian": "serbian", "galician": "portuguese",
    "latvian": "lithuanian", "malay": "indonesian", "slovak": "czech", "slovenian": "serbian",
    "ukrainian": "russian",
}  # fmt: skip
"""Languages that lack a stemmer, and the related language whose stemmer they have.

Of what it adds to searches for Unicode's keywords of emoji at least .8 times as much is right as of
the rest; own stemmers have .1 to 1.8, Hindi's on Marathi .1 and Turkish on Azerbaijani .2.
"""
PREFIXES: Final = {"arabic": re.compile(r"\A(?:[وبكف]?ال|لل)(?=.{3})")}
"""Articles and prepositions that are joined to the next word, if enough letters of it remain:
the stemmer `auto` of a language drops them."""


def language_name(language: str) -> str:
    """Return the name of a language given by name or code; any other text is returned unchanged.

    >>> language_name("de"), language_name("german")
    ('german', 'german')
    """
    names = {code: name for name, code in CODES.items()}
    return names.get(language.lower(), language)


def languages_of(setting: str) -> tuple[str, ...]:
    """Return the languages whose rules apply by a setting: one, or several between commas.

    English for `auto`.

    >>> languages_of("de,english"), languages_of("auto")
    (('german', 'english'), ('english',))
    """
    names = (language_name(language.strip()) for language in setting.split(","))
    return tuple(dict.fromkeys(ENGLISH if name == AUTO else name for name in names))


def stated_language(text: str) -> str:
    """Return the language that a field of a document names, or its text in lower case.

    >>> stated_language("de-AT"), stated_language("German"), stated_language("")
    ('german', 'german', '')
    """
    return language_name(re.split("[-_]", text.strip().lower())[0])


@cache
def stemmers() -> tuple[str, ...]:
    """Return the sorted names of the stemmers: `auto`, `none` and every Snowball algorithm.

    >>> stemmers()[:3]
    ('arabic', 'armenian', 'auto')
    """
    return tuple(sorted({AUTO, NONE, *Stemmer.algorithms()}))


@cache
def languages() -> tuple[str, ...]:
    """Return the sorted names of the languages with a stop list or a stemmer, and `none`.

    >>> languages()[:3]
    ('afrikaans', 'arabic', 'armenian')
    """
    return tuple(sorted({NONE, *CODES, *Stemmer.algorithms()} - _VARIANTS))


@cache
def stop_list(language: str) -> frozenset[str]:
    """Return the long list of stop words of a language; empty if there is none.

    SettingsError for an unknown language.
    """
    if language not in languages():
        names = ", ".join(languages())
        message = f"unknown language {language!r}; the languages are: {names}"
        raise SettingsError(message, field="language")
    spelled = stopwordsiso.stopwords(CODES.get(language, ""))
    words = frozenset(word.strip(_MARKS) for word in spelled) - {""}
    return words - _words("english_kept") if language == ENGLISH else words


def stop_words_of(stop_words: str, language: str) -> frozenset[str]:
    """Return the words of the list of a language that a stop word setting selects.

    SettingsError for an unknown language.
    """
    long = stop_list(language)
    if stop_words == "short":
        return _words("english_short") if language == ENGLISH else frozenset()
    return long if stop_words == "long" else frozenset()


_JOINED_PREFIXES: Final = (
    (
        "hebrew",
        re.compile("[\u05d0-\u05ea]+"),
        {3: ["ה", "וה", "שה", "כשה", "וכשה"], 4: ["ו", "ב", "כ", "ל", "מ", "ש", "וב", "ול"]},
    ),
    ("", re.compile("[\u1200-\u137f]+"), {2: ["የ"], 3: ["በ", "ከ", "ለ"]}),
)
"""Words of a language, "" for any, and the articles and prepositions that are joined to those with
so many letters: shorter ones more often begin with these letters themselves. Amharic is no language
of an index."""


def with_joined_prefixes(word: str, languages: Collection[str]) -> list[str]:
    """Return a folded word with each prefix of its language, or with another one or none.

    >>> with_joined_prefixes("מחשב", ["hebrew"])[:3], with_joined_prefixes("המחשב", ["hebrew"])[:2]
    (['המחשב', 'והמחשב', 'שהמחשב'], ['מחשב', 'והמחשב'])
    >>> with_joined_prefixes("מחשב", ["yiddish"])
    []
    """
    for language, pattern, prefixes_of_length in _JOINED_PREFIXES:
        if pattern.fullmatch(word) is None or language not in ("", *languages):
            continue
        prefixes = [
            (prefix, length) for length, some in prefixes_of_length.items() for prefix in some
        ]
        bases = [
            base
            for prefix, length in prefixes
            if len(base := word.removeprefix(prefix)) < len(word) and len(base) >= length
        ]
        forms = dict[str, None]()
        for base in (*bases, word):
            joined = (prefix + base for prefix, length in prefixes if len(base) >= length)
            forms |= dict.fromkeys([base, *joined])
        return [form for form in forms if form != word]
    return []


def stemmer_algorithm(stemmer: str, language: str) -> str | None:
    """Return the Snowball algorithm of a stemmer setting and a language; None for no stemming.

    That of a related language if it has none.

    SettingsError for an unknown stemmer.
    """
    if stemmer not in stemmers():
        names = ", ".join(stemmers())
        message = f"unknown stemmer {stemmer!r}; the stemmers are: {names}"
        raise SettingsError(message, field="stemmer")
    if stemmer == AUTO:
        stemmer = "porter" if language == ENGLISH else _RELATED.get(language, language)
    return stemmer if stemmer != NONE and stemmer in Stemmer.algorithms() else None


@cache
def _words(name: str) -> frozenset[str]:
    """Return the words of a list in `data`."""
    text = files("klsa_search.analysis").joinpath(f"data/{name}.txt").read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())


_MAY_DIFFER: Final = re.compile(
    "is[ei]|isa|lyz|our|[bt]res?$|centr[ei]|enc[ei]|ae|oe|sulph|practis|programme"
)
_ISE: Final = re.compile("([a-z]{3,})is(e[ds]?|ers?|ing|ations?|able|ements?)")
# What precedes -ise in words that have no spelling with z.
_ONLY_ISE: Final = re.compile(
    "(?:[auw]|(?<!m)o|(?<!ti)v|pr|^(?:ce|sun|moon)r|(?:con|pre|ex|in|circum|exer|exor)c"
    "|(?:pro|pre|de|sur|che)m|(?:exper|trea|adver|chas|^mor|prac)t|(?:merchan|para)d|franch|desp"
    "|^val)$"
)
_RULES: Final = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"lyz(?=(?:e[ds]?|ers?|ing)$)", "lys"),  # as in analyses
        (r"(?:(?<=[a-z]{3})|(?<=^od))our(?=$|s$|[aefhilwy])", "or"),
        (r"(?<=[a-z]{2})(?<!tim)([bt])re(?=s?$)", r"\1er"),
        (r"centr(?=ed$|ing$)", "center"),
        (r"^(def|off|pret|lic)enc(?=e|ing)", r"\1ens"),
        (r"^practis(?=e|ing)", "practic"),
        (r"^programme(?=s?$)", "program"),
        (r"ae(?=[cdmos])|^oe(?=[ds])", "e"),
        (r"^foet", "fet"),
        (r"rhoea", "rhea"),
        (r"noeuvr(?:e|(?=[ia]))", "neuver"),
        (r"sulph", "sulf"),
    )
)
_UNFINISHED: Final = re.compile("(?<=[a-z]{3})ou$")


def common_spelling(word: str) -> str:
    """Return the spelling that a word shares with its other one; case-folded.

    >>> [common_spelling(word) for word in ("behaviour", "normalising", "centre", "precise")]
    ['behavior', 'normalizing', 'center', 'precise']
    """
    if not _MAY_DIFFER.search(word):
        return word
    verb = _ISE.fullmatch(word)
    if verb is not None and not _ONLY_ISE.search(verb[1]):
        word = f"{verb[1]}iz{verb[2]}"
    for rule, spelling in _RULES:
        word = rule.sub(spelling, word)
    return word


def common_beginning(beginning: str) -> str:
    """Return the beginning of the shared spelling of words that begin so: *colou*, *colo*."""
    return _UNFINISHED.sub("o", common_spelling(beginning))
