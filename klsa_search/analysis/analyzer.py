"""The analyser, which turns texts of documents and queries into terms."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from klsa_search._native import TermFinder
from klsa_search.analysis.language_detection import language_among
from klsa_search.analysis.languages import common_beginning, languages_of, stated_language
from klsa_search.analysis.segmentation import all_characters, ascii_characters, names, spans, words
from klsa_search.analysis.terms import CACHED_WORDS, TermOf, TermOfAny, common_terms
from klsa_search.analysis.tokenizers import ImportedTokenizer, with_trusted_tokenizer
from klsa_search.analysis.unicode import Alignment, nfkc
from klsa_search.core.build_settings import AnalysisSettings

T = TypeVar("T")


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
    own (`for_document`), and a word of a query may be in any; `term_of` has the rules for words.
    Thread-safe; pickled as its settings.
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

    __slots__ = ("_finder", "_in", "_tokenizer", "languages", "settings", "term_of")

    def __init__(self, settings: AnalysisSettings | None = None) -> None:
        # `settings` may be those of a whole index.
        checked = AnalysisSettings.of(settings or AnalysisSettings())
        self.languages = languages_of(checked.language)
        self.settings = checked.model_copy(update={"language": ",".join(self.languages)})
        name = checked.tokenizer
        self._tokenizer = None if name is None else ImportedTokenizer(name)
        terms_of = {language: TermOf(self.settings, language) for language in self.languages}
        self.term_of: TermOf | TermOfAny = terms_of[self.languages[0]]
        self._in = {self.languages[0]: self}
        if len(terms_of) > 1:
            self.term_of = TermOfAny([*terms_of.values()])
            self._in = {name: self._with(term_of, (name,)) for name, term_of in terms_of.items()}
        self._finder = self._finder_of(self.term_of)

    def _with(self, term_of: TermOf | TermOfAny, languages: tuple[str, ...]) -> Analyzer:
        """Return an analyser with the same settings for words of some of the languages."""
        other = Analyzer.__new__(Analyzer)
        other.settings, other._tokenizer = self.settings, self._tokenizer
        other.languages, other.term_of = languages, term_of
        other._finder = other._finder_of(term_of)
        other._in = {languages[0]: other} if len(languages) == 1 else self._in
        return other

    def _finder_of(self, term_of: TermOf | TermOfAny) -> TermFinder:
        of_word = term_of.uncached if isinstance(term_of, TermOf) else term_of.all
        return TermFinder(CACHED_WORDS, self.settings.symbols, of_word, term_of.pair)

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
        if not isinstance(self.term_of, TermOfAny):
            return self
        return self._with(self.term_of.preferring(terms), self.languages)

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
        return list(filter(None, self.map_words(text, self.term_of.__getitem__, self.term_of.pair)))

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
        term_of = self.term_of
        words = self.map_words(
            text,
            lambda word: [(term, word) for term in term_of.all(word)],
            lambda pair: [(term_of.pair(pair), pair)],
        )
        return chain.from_iterable(words)

    def term(self, word: str) -> str:
        """Return the term of a word, "" for a stop word. Cost: 3 µs for one that is not cached."""
        return self.term_of[word]

    def folded(self, word: str) -> str:
        """Return a word with case and accents folded, not stemmed.

        >>> Analyzer().folded("Overheating")
        'overheating'
        """
        return self.term_of.folded(nfkc(word))

    def beginning(self, text: str) -> str:
        """Return the beginning of terms of words that begin with a text, in their common spelling.

        >>> Analyzer().beginning("Colou")
        'colo'
        """
        folded = self.folded(text)
        return common_beginning(folded) if self.term_of.has_two_spellings else folded

    def common(self) -> frozenset[str]:
        """Return the common terms: words of the long stop list that this analyzer keeps.

        >>> "the" in Analyzer().common(), "problem" in Analyzer().common()
        (False, True)
        """
        return common_terms(self.settings)

    def tokens(self, text: str) -> list[Token]:
        """Return the terms of a text with positions and offsets.

        All terms of a word that may be in several languages, at the same position.
        """
        term_of = self.term_of
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

    def occurrences(self, text: str, terms: Collection[str]) -> list[tuple[str, int, int]]:
        """Return term, start and end of the words of a text that are some terms, in order.

        Equal to those of `tokens`, several times faster for texts that NFKC does not change.

        >>> Analyzer().occurrences("Cold engines, that overheat", {"overheat"})
        [('overheat', 19, 27)]
        """
        line = text.replace("…", " ")  # NFKC changes it, at the ends of passages, and both separate
        is_ascii = line.isascii()
        if self._tokenizer is None and (is_ascii or unicodedata.is_normalized("NFKC", line)):
            characters = ascii_characters() if is_ascii else all_characters()
            matches = self._finder.find(line, terms, characters)
            if matches is not None:
                return matches
        return [(one.term, one.start, one.end) for one in self.tokens(text) if one.term in terms]

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
        """Pickle the settings."""
        return _trusted, (self.settings,)

    def __repr__(self) -> str:
        """Return a text with the settings."""
        return f"Analyzer({self.settings!r})"


def _trusted(settings: AnalysisSettings) -> Analyzer:
    """Return an unpickled analyser, whose tokenizer the pickling process trusted."""
    with_trusted_tokenizer(settings.model_dump())
    return Analyzer(settings)
