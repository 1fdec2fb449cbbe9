"""The analyser, which turns texts of documents and queries into terms."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Container, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, TypeVar

import Stemmer

from klsa_search.analysis.language_detection import language_among
from klsa_search.analysis.languages import (
    ENGLISH,
    common_beginning,
    common_spelling,
    languages_of,
    prefixes_of,
    stated_language,
    stemmer_algorithm,
    stop_list,
    stop_words_of,
)
from klsa_search.analysis.segmentation import names, spans, words
from klsa_search.analysis.tokenizers import ImportedTokenizer, with_trusted_tokenizer
from klsa_search.analysis.unicode import ACCENTS, HAMZAS, Accents, Alignment, bare, nfkc
from klsa_search.core.build_settings import AnalysisSettings

T = TypeVar("T")

LONGEST_WORD: Final = 255
"""Limit of a word in characters; longer ones are left out."""

CACHED_WORDS: Final = 2**16
"""Limit of the cache of words in entries, about 12 MB."""

SHORT_CODES: Final = 33
"""Stop words with a code of one byte in the forward index: all of the short list."""

CODED_STOP_WORDS: Final = 1400
"""Stop words that the forward index tells apart, at most: more than are on any list."""

_MORE_CODES: Final = 129
"""Code of the first stop word whose code has two bytes."""

LAST_STOP_CODE: Final = _MORE_CODES + 2 * (CODED_STOP_WORDS - SHORT_CODES) - 1
"""Code of the last stop word, in capitals."""

_TURKISH: Final = str.maketrans({"I": "ı", "İ": "i"})


class Token(NamedTuple):
    """One term with its position in the text.

    `position` counts words from 0, stop words included. `start` and `end` are offsets into the
    original text that cover letters and digits only, so those of C++ are those of the C.
    """

    term: str
    position: int
    start: int
    end: int


class Analyzer:
    """Turns text into terms, with fixed settings; equal to any analyser with the same settings.

    Words are case-folded, accent-folded depending on settings and language, filtered by the stop
    words, and stemmed. With several languages each document has the stop words and stems of its
    own (`for_document`), and a word of a query may be in any. Thread-safe; pickled as its settings.
    SettingsError for an unknown language or stemmer, or a tokenizer that this process does not
    trust.

    >>> Analyzer().terms("Engines that overheat")
    ['engin', 'overheat']
    >>> Analyzer().terms("C++ and C for .NET")
    ['c++', 'c', '.net']
    >>> Analyzer().tokens("Engines that overheat")[1]
    Token(term='overheat', position=2, start=13, end=21)
    >>> both = Analyzer(AnalysisSettings(language="de,en"))
    >>> both.languages, both.language_of(["Pumpen"], stated="de-AT")
    (('german', 'english'), 'german')
    >>> both.for_document(["Die Pumpen lecken, sobald der Motor warm ist."]).terms("Pumpen")
    ['pump']
    >>> both.readings("maintenance"), both.in_language("english").terms("maintenance")
    ((('maintenanc',), ('mainten',)), ['mainten'])
    >>> both.preferring({"mainten"}).terms("maintenance")
    ['mainten']
    """

    __slots__ = ("_in", "_term_of", "_tokenizer", "languages", "settings")

    def __init__(self, settings: AnalysisSettings | None = None) -> None:
        # `settings` may be those of a whole index.
        checked = AnalysisSettings.of(settings or AnalysisSettings())
        self.languages = languages_of(checked.language)
        self.settings = checked.model_copy(update={"language": ",".join(self.languages)})
        name = checked.tokenizer
        self._tokenizer = None if name is None else ImportedTokenizer(name)
        terms_of = {language: _TermOf(self.settings, language) for language in self.languages}
        self._term_of: _TermOf | _TermOfAny = terms_of[self.languages[0]]
        self._in = {self.languages[0]: self}
        if len(terms_of) > 1:
            self._term_of = _TermOfAny(list(terms_of.values()))
            self._in = {name: self._with(term_of, (name,)) for name, term_of in terms_of.items()}

    def _with(self, term_of: _TermOf | _TermOfAny, languages: tuple[str, ...]) -> Analyzer:
        """Return an analyser with the same settings for words of some of the languages."""
        other = Analyzer.__new__(Analyzer)
        other.settings, other._tokenizer = self.settings, self._tokenizer
        other.languages, other._term_of = languages, term_of
        other._in = {languages[0]: other} if len(languages) == 1 else self._in
        return other

    def language_of(self, texts: Sequence[str], stated: str = "") -> str:
        """Return which of the languages a document is in: the first if nothing tells.

        texts   of its parts
        stated  what a field says of it
        Cost: 0.1 ms if several of the languages have the script of the text, else some µs.
        """
        if len(self.languages) == 1:
            return self.languages[0]
        language = stated_language(stated)
        if language not in self._in:
            language = language_among("\n".join(texts), self.languages)
        return language

    def for_document(self, texts: Sequence[str], stated: str = "") -> Analyzer:
        """Return an analyser of one language, that of a document: see `language_of`."""
        return self._in[self.language_of(texts, stated)]

    def in_language(self, language: str) -> Analyzer:
        """Return an analyser of one of the languages."""
        return self._in[language]

    def preferring(self, terms: Container[str]) -> Analyzer:
        """Return an analyser whose words have, of several readings, the first of these terms."""
        if not isinstance(self._term_of, _TermOfAny):
            return self
        return self._with(self._term_of.preferring(terms), self.languages)

    def readings(self, text: str) -> tuple[tuple[str, ...], ...]:
        """Return the terms of a text in each of the languages, without repetitions."""
        return tuple(dict.fromkeys(tuple(one.terms(text)) for one in self._in.values()))

    @property
    def tokenizes(self) -> bool:
        """Return whether a tokenizer of the user finds the words."""
        return self._tokenizer is not None

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text in order, with repetitions.

        The same terms as those of `tokens`, several times faster. Of the text of a query: a word
        that may be in several languages has one of its terms, none if it is a stop word of any.
        """
        return list(
            filter(None, self.map_words(text, self._term_of.__getitem__, self._term_of.pair))
        )

    def map_words(
        self, text: str, of_word: Callable[[str], T], of_pair: Callable[[str], T]
    ) -> Iterable[T]:
        """Return `of_word` of each word and `of_pair` of each pair of a text, in order."""
        if self._tokenizer is not None:
            return (of_word(word) for word, _, _ in self._tokenizer.words(text))
        normal = nfkc(text)
        symbol_names = names(normal) if self.settings.symbols else {}
        matches = None if symbol_names else words(normal)
        if matches is not None:
            return map(of_word, matches)
        return (
            of_pair(normal[first:after])
            if is_pair
            else of_word(symbol_names.get(first) or normal[first:after])
            for first, after, is_pair in spans(normal)
        )

    def written(self, text: str) -> Iterable[tuple[str, str]]:
        """Yield (term, word) for each word of a text, in order; the term is "" for stop words.

        Each term of a word that may be in several languages.

        >>> list(Analyzer().written("The Engines"))
        [('', 'The'), ('engin', 'Engines')]
        """
        term_of = self._term_of
        words = self.map_words(
            text,
            lambda word: [(term, word) for term in term_of.all(word)],
            lambda pair: [(term_of.pair(pair), pair)],
        )
        return chain.from_iterable(words)

    def term(self, word: str) -> str:
        """Return the term of a word, "" for a stop word; not cached."""
        return self._term_of.uncached(word)

    def stop_code(self, word: str) -> int:
        """Return the code of a stop word in the forward index; 0 for a word without one.

        An odd number for a stop word, one more if it is written in capitals. Only the first
        `CODED_STOP_WORDS` have codes; see `storage/forward_index.py`.

        >>> analyzer = Analyzer()
        >>> [analyzer.stop_code(word) for word in ("it", "It", "IT", "wing")]
        [29, 29, 30, 0]
        """
        return self._term_of.stop_code(word)

    def folded(self, word: str) -> str:
        """Return a word with case and accents folded, not stemmed.

        >>> Analyzer().folded("Overheating")
        'overheating'
        """
        return self._term_of.folded(nfkc(word))

    def beginning(self, text: str) -> str:
        """Return the beginning of terms of words that begin with a text, in their common spelling.

        >>> Analyzer().beginning("Colou")
        'colo'
        """
        folded = self.folded(text)
        return common_beginning(folded) if self._term_of.has_two_spellings else folded

    def common(self) -> frozenset[str]:
        """Return the common terms: words of the long stop list that this analyzer keeps.

        >>> "the" in Analyzer().common(), "problem" in Analyzer().common()
        (False, True)
        """
        return _common_terms(self.settings)

    def pair(self, pair: str) -> str:
        """Return the term of a pair of characters of a script without spaces, or ""."""
        return self._term_of.pair(pair)

    def tokens(self, text: str) -> list[Token]:
        """Return the terms of a text with positions and offsets.

        All terms of a word that may be in several languages, at the same position.
        """
        term_of = self._term_of
        if self._tokenizer is not None:
            return [
                Token(term, position, start, end)
                for position, (word, start, end) in enumerate(self._tokenizer.words(text))
                for term in filter(None, term_of.all(word))
            ]
        aligned = Alignment(text)
        normal = aligned.text
        symbol_names = names(normal) if self.settings.symbols else {}
        tokens: list[Token] = []
        for position, (first, after, is_pair) in enumerate(spans(normal)):
            word = symbol_names.get(first) or normal[first:after]
            terms = (term_of.pair(word),) if is_pair else term_of.all(word)
            if any(terms):
                start, end = aligned.start(first), aligned.end(after - 1)
                tokens += [Token(term, position, start, end) for term in terms if term]
        return tokens

    def has_names(self, text: str) -> bool:
        """Return whether an ASCII text may contain names such as C++. Cost: 0.2 µs."""
        return self.settings.symbols and bool(names(text))

    def __eq__(self, other: object) -> bool:
        """Return whether the settings are equal."""
        return isinstance(other, Analyzer) and self.settings == other.settings

    def __hash__(self) -> int:
        """Return the hash of the settings."""
        return hash(self.settings)

    def __reduce__(self) -> tuple[Callable[[AnalysisSettings], Analyzer], tuple[AnalysisSettings]]:
        """Pickle the settings without the cache."""
        return _trusted, (self.settings,)

    def __repr__(self) -> str:
        """Return a text with the settings."""
        return f"Analyzer({self.settings!r})"


def _trusted(settings: AnalysisSettings) -> Analyzer:
    """Return an unpickled analyser, whose tokenizer the pickling process trusted."""
    with_trusted_tokenizer(settings.model_dump())
    return Analyzer(settings)


@lru_cache(maxsize=32)
def _common_terms(settings: AnalysisSettings) -> frozenset[str]:
    """Return the common terms of settings; stemming takes as long as opening a small index."""
    common: set[str] = set()
    for language in languages_of(settings.language):
        common.update(map(_TermOf(settings, language).uncached, map(nfkc, stop_list(language))))
    return frozenset(common - {""})


class _TermCache(dict[str, str]):
    """A cache from words as written to terms, "" for none; cleared when full."""

    def __missing__(self, word: str) -> str:
        term = self.uncached(word)
        if len(word) <= LONGEST_WORD:
            if len(self) >= CACHED_WORDS:
                self.clear()
            self[word] = term
        return term

    def uncached(self, word: str) -> str:
        """Return the term of a word without the cache."""
        raise NotImplementedError


class _TermOf(_TermCache):
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
        self._prefixes = prefixes_of(settings.stemmer, language)
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
        """Return the code of a stop word: see `Analyzer.stop_code`."""
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


class _TermOfAny(_TermCache):
    """A cache from words of any of several languages to terms, "" for a stop word of any.

    preferred  terms of which a word has the first, or else that of the first language
    """

    def __init__(self, terms_of: Sequence[_TermOf], preferred: Container[str] = ()) -> None:
        super().__init__()
        self._terms_of, self._preferred = terms_of, preferred
        self.has_two_spellings = any(one.has_two_spellings for one in terms_of)

    def preferring(self, terms: Container[str]) -> _TermOfAny:
        """Return the same with other preferred terms."""
        return _TermOfAny(self._terms_of, terms)

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
        """Return the code of a stop word of any language: see `Analyzer.stop_code`."""
        return max(one.stop_code(word) for one in self._terms_of)
