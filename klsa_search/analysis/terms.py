"""From words to terms: folded, without stop words, stemmed, in one language or any of several."""

from __future__ import annotations

import threading
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Sequence
from functools import lru_cache
from typing import Final

import Stemmer

from klsa_search.analysis.languages import (
    AUTO,
    ENGLISH,
    PREFIXES,
    common_spelling,
    languages_of,
    stemmer_algorithm,
    stop_list,
    stop_words_of,
)
from klsa_search.analysis.unicode import ACCENTS, HAMZAS, Accents, bare, nfkc
from klsa_search.core.build_settings import AnalysisSettings

LONGEST_WORD: Final = 255  # limit of a word in characters; longer ones are left out
CACHED_WORDS: Final = 2**16  # limit of the cache of words in entries, about 12 MB
SHORT_CODES: Final = 33
"""Stop words with a code of one byte in the forward index: all of the short list."""

CODED_STOP_WORDS: Final = 1400
"""Stop words that the forward index tells apart, at most: more than are on any list."""

_MORE_CODES: Final = 129  # code of the first stop word whose code has two bytes
LAST_STOP_CODE: Final = _MORE_CODES + 2 * (CODED_STOP_WORDS - SHORT_CODES) - 1
"""Code of the last stop word, in capitals."""

_TURKISH: Final = str.maketrans({"I": "ı", "İ": "i"})


@lru_cache(maxsize=32)
def common_terms(settings: AnalysisSettings) -> frozenset[str]:
    """Return the common terms of settings; stemming takes as long as opening a small index."""
    common: set[str] = set()
    for language in languages_of(settings.language):
        common.update(map(TermOf(settings, language).uncached, map(nfkc, stop_list(language))))
    return frozenset(common - {""})


class _TermCache(dict[str, str], ABC):
    """A cache from words as written to terms, "" for none; cleared when full."""

    def __missing__(self, word: str) -> str:
        term = self.uncached(word)
        if len(word) <= LONGEST_WORD:
            if len(self) >= CACHED_WORDS:
                self.clear()
            self[word] = term
        return term

    @abstractmethod
    def uncached(self, word: str) -> str:
        """Return the term of a word without the cache."""


class TermOf(_TermCache):
    """A cache of terms in one language.

    language  one of those of the settings, which share the codes of stop words
    """

    def __init__(self, settings: AnalysisSettings, language: str) -> None:
        super().__init__()
        self._turkish = language == "turkish"
        self._keeps_ending = settings.tokenizer is not None  # user tokens are not shortened
        name = stemmer_algorithm(settings.stemmer, language)
        self._arabic = name == "arabic"
        self._accents = ACCENTS.get(language)
        if settings.fold_accents is not None:
            self._accents = Accents() if settings.fold_accents else None
        elif self._accents and name != language:
            self._accents = Accents(self._accents.kept)  # endings are for the language's stemmer
        extra, languages = set(settings.extra_stop_words), languages_of(settings.language)
        listed = {name: stop_words_of(settings.stop_words, name) | extra for name in languages}
        self._stop_words = frozenset(map(self.folded, listed[language]))
        short = {word for name in languages for word in stop_words_of("short", name)}
        form = self.folded if len(languages) == 1 else str.casefold  # the same in all languages
        coded = sorted(
            {form(word) for words in listed.values() for word in words},
            key=lambda word: (word not in short, word),
        )
        self._stop_numbers: dict[str, int] = {}
        for number, word in enumerate(coded[:CODED_STOP_WORDS]):
            self._stop_numbers.setdefault(self.folded(word), number)
        # Not thread-safe, so it needs a lock; its own cache is off, because this class caches.
        stemmer = Stemmer.Stemmer(name, 0) if name else None
        self._stem: Callable[[str], str] | None = stemmer.stemWord if stemmer else None
        self.has_two_spellings = stemmer is not None and language == ENGLISH
        self._prefixes = PREFIXES.get(language) if settings.stemmer == AUTO else None
        self._lock = threading.Lock()

    def uncached(self, word: str) -> str:
        """Return the term of a word without the cache."""
        return "" if len(word) > LONGEST_WORD else self._term(self.folded(word))

    def all(self, word: str) -> tuple[str, ...]:
        """Return the term of a word as the only one."""
        return (self[word],)

    def pair(self, pair: str) -> str:
        """Return the term of a pair of characters, which is not folded; "" for a stop word."""
        term = bare(pair)
        return "" if len(term) > LONGEST_WORD or term in self._stop_words else term

    def folded(self, word: str) -> str:
        """Return a word with case and accents folded and without invisible characters."""
        if word.isascii() and not self._turkish:
            return word.lower()
        if self._turkish:
            word = word.translate(_TURKISH)
        word = unicodedata.normalize("NFKC", bare(word).casefold())
        if not self._arabic:
            word = word.translate(HAMZAS)
        return self._accents.folded(word) if self._accents else word

    def stop_code(self, word: str) -> int:
        """Return the code of a stop word in the forward index; 0 for a word without one.

        An odd number for a stop word, one more if it is written in capitals. Only the first
        `CODED_STOP_WORDS` have codes; see `storage/forward_index.py`.
        """
        folded = self.folded(word)
        numbers = self._stop_numbers
        number = numbers.get(folded, numbers.get(self._base(folded)))
        if number is None:
            return 0
        code = 1 + 2 * number if number < SHORT_CODES else _MORE_CODES + 2 * (number - SHORT_CODES)
        return code + word.partition("'")[0].isupper()

    def _base(self, word: str) -> str:
        """Return a folded word without its English ending."""
        return word if self._keeps_ending else word.partition("'")[0]

    def _term(self, word: str) -> str:
        if word in self._stop_words:
            return ""
        base = self._base(word)
        if base in self._stop_words:
            return ""
        if self._prefixes is not None:
            base = self._prefixes.sub("", base)
        if self._stem is None:
            return base
        if self.has_two_spellings:
            base = common_spelling(base)
        accented = self._accents.restored(base) if self._accents else base
        with self._lock:
            stem = self._stem(accented) or base  # Porter's takes the s of Model S for an ending
        return stem if accented == base else self.folded(stem)


class TermOfAny(_TermCache):
    """A cache from words of any of several languages to terms, "" for a stop word of any.

    preferred  terms of which a word has the first, or else that of the first language
    """

    def __init__(self, terms_of: Sequence[TermOf], preferred: Container[str] = ()) -> None:
        super().__init__()
        self._terms_of, self._preferred = terms_of, preferred
        self.has_two_spellings = any(one.has_two_spellings for one in terms_of)

    def preferring(self, terms: Container[str]) -> TermOfAny:
        """Return the same with other preferred terms."""
        return TermOfAny(self._terms_of, terms)

    def uncached(self, word: str) -> str:
        """Return the term of a word without the cache."""
        terms = self.all(word)
        if "" in terms:
            return ""
        return next((term for term in terms if term in self._preferred), terms[0])

    def all(self, word: str) -> tuple[str, ...]:
        """Return the term of a word in each language, without repetitions."""
        return tuple(dict.fromkeys(one[word] for one in self._terms_of))

    def pair(self, pair: str) -> str:
        """Return the term of a pair of characters, "" for a stop word of any language."""
        terms = [one.pair(pair) for one in self._terms_of]
        return "" if "" in terms else terms[0]

    def folded(self, word: str) -> str:
        """Return a word as the first language folds it."""
        return self._terms_of[0].folded(word)

    def stop_code(self, word: str) -> int:
        """Return the code of a stop word of any language."""
        return max(one.stop_code(word) for one in self._terms_of)
