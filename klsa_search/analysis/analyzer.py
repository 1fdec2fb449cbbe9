"""The analyser: text to terms, the same for documents and for queries."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

import Stemmer

from klsa_search.analysis.languages import (
    language_name,
    stemmer_algorithm,
    stop_list,
    stop_words_of,
)
from klsa_search.analysis.segmentation import Span, names, spans, words
from klsa_search.analysis.tokenizers import ImportedTokenizer, with_trusted_tokenizer
from klsa_search.analysis.unicode import ACCENTS, IGNORED, Accents, Alignment, nfkc
from klsa_search.core.config import AnalysisSettings
from klsa_search.core.forks import lock_free_in_children

T = TypeVar("T")

LONGEST_WORD: Final = 255
"""Characters of the longest word that becomes a term; a longer one is no word and left out."""

CACHED_WORDS: Final = 2**16
"""Words as written that are remembered, 12 MB: text repeats its words."""

_TURKISH: Final = str.maketrans({"I": "ı", "İ": "i"})


class Token(NamedTuple):
    """One term with its place in the text.

    `position` counts words from 0, stop words included. `start` and `end` are offsets into the
    original text; they cover letters and digits only, so those of C++ are those of the C.
    """

    term: str
    position: int
    start: int
    end: int


class Analyzer:
    """Turns text into terms, with fixed settings; equal to any analyser with the same settings.

    Words are found, case-folded, accent-folded depending on settings and language, filtered by the
    stop words, and stemmed. Safe to share between threads; pickled as its settings. SettingsError
    for an unknown language or stemmer, or a tokenizer that this process does not trust.

    >>> Analyzer().terms("Engines that overheat")
    ['engin', 'overheat']
    >>> Analyzer().terms("C++ and C for .NET")
    ['c++', 'c', '.net']
    >>> Analyzer().tokens("Engines that overheat")[1]
    Token(term='overheat', position=2, start=13, end=21)
    """

    __slots__ = ("_term_of", "_tokenizing", "settings")

    def __init__(self, settings: AnalysisSettings | None = None) -> None:
        names = AnalysisSettings.model_fields
        # Of the settings of a whole index only these make terms.
        given = {name: getattr(settings, name) for name in names} if settings else {}
        checked = AnalysisSettings.checked(given)
        self.settings = checked.model_copy(update={"language": language_name(checked.language)})
        self._term_of = _TermOf(self.settings)
        own = checked.tokenizer
        self._tokenizing = None if own is None else ImportedTokenizer(own)

    @property
    def tokenizes(self) -> bool:
        """Return whether a tokenizer of the user finds the words."""
        return self._tokenizing is not None

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text in order, with repetitions.

        The same terms as those of `tokens`, several times faster.
        """
        return list(filter(None, self.each(text, self._term_of.__getitem__, self._term_of.pair)))

    def each(
        self, text: str, of_word: Callable[[str], T], of_pair: Callable[[str], T]
    ) -> Iterable[T]:
        """Return `of_word` of each word and `of_pair` of each pair of a text, in order."""
        if self._tokenizing is not None:
            return (of_word(word) for word, _, _ in self._tokenizing.words(text))
        normal = nfkc(text)
        symbol_names = names(normal) if self.settings.symbols else {}
        found = None if symbol_names else words(normal)
        if found is not None:
            return map(of_word, found)
        return (
            of_pair(normal[first:after])
            if is_pair
            else of_word(symbol_names.get(first) or normal[first:after])
            for first, after, is_pair in spans(normal)
        )

    def written(self, text: str) -> Iterable[tuple[str, str]]:
        """Yield (term, word) for each word of a text, in order; the term is "" for stop words.

        >>> list(Analyzer().written("The Engines"))
        [('', 'The'), ('engin', 'Engines')]
        """
        term_of = self._term_of
        return self.each(
            text, lambda word: (term_of[word], word), lambda pair: (term_of.pair(pair), pair)
        )

    def term(self, word: str) -> str:
        """Return the term of a word, "" for a stop word; not cached."""
        return self._term_of.found(word)

    def folded(self, word: str) -> str:
        """Return a word with case and accents folded, not stemmed.

        >>> Analyzer().folded("Overheating")
        'overheating'
        """
        return self._term_of.folded(nfkc(word))

    def common(self) -> frozenset[str]:
        """Return the terms of words on the long stop list that are not stop words here.

        >>> "the" in Analyzer().common(), "problem" in Analyzer().common()
        (False, True)
        """
        return frozenset(map(self.term, stop_list(self.settings.language))) - {""}

    def pair(self, pair: str) -> str:
        """Return the term of a pair of characters of a script without spaces, or ""."""
        return self._term_of.pair(pair)

    def tokens(self, text: str) -> list[Token]:
        """Return the terms of a text with positions and offsets."""
        if self._tokenizing is not None:
            return [
                Token(term, position, start, end)
                for position, (word, start, end) in enumerate(self._tokenizing.words(text))
                if (term := self._term_of[word])
            ]
        aligned = Alignment(text)
        normal, start, end = aligned.text, aligned.start, aligned.end
        symbol_names = names(normal) if self.settings.symbols else {}
        return [
            Token(term, position, start(span[0]), end(span[1] - 1))
            for position, span in enumerate(spans(normal))
            if (term := self._term(normal, span, symbol_names))
        ]

    def has_names(self, text: str) -> bool:
        """Return whether an ASCII text may contain names such as C++. Cost: 0.2 µs."""
        return self.settings.symbols and bool(names(text))

    def _term(self, normal: str, span: Span, symbol_names: Mapping[int, str]) -> str:
        first, after, is_pair = span
        word = symbol_names.get(first) or normal[first:after]
        return self._term_of.pair(word) if is_pair else self._term_of[word]

    def __eq__(self, other: object) -> bool:
        """Whether the settings are equal, and so all terms."""
        return isinstance(other, Analyzer) and self.settings == other.settings

    def __hash__(self) -> int:
        """Hash of the settings."""
        return hash(self.settings)

    def __reduce__(self) -> tuple[Callable[[AnalysisSettings], Analyzer], tuple[AnalysisSettings]]:
        """Pickle the settings; what was remembered stays behind."""
        return _trusted, (self.settings,)

    def __repr__(self) -> str:
        """Show the settings."""
        return f"Analyzer({self.settings!r})"


def _trusted(settings: AnalysisSettings) -> Analyzer:
    """Make an analyser that was pickled, whose process trusted its tokenizer."""
    with_trusted_tokenizer(settings.model_dump())
    return Analyzer(settings)


class _TermOf(dict[str, str]):
    """From a word as written to its term, "" for none; remembers the words it met.

    At most `CACHED_WORDS` are kept, about 12 MB: when full it starts over, which is rare (text
    repeats its words) and leaves the terms the same.
    """

    def __init__(self, settings: AnalysisSettings) -> None:
        super().__init__()
        self._turkish = settings.language == "turkish"
        self._whole = settings.tokenizer is not None  # who says what a word is means all of it
        name = stemmer_algorithm(settings.stemmer, settings.language)
        self._accents = ACCENTS.get(settings.language)
        if settings.fold_accents is not None:
            self._accents = Accents() if settings.fold_accents else None
        elif self._accents and name != settings.language:
            self._accents = Accents(self._accents.kept)  # its endings are of the language's stemmer
        listed = stop_words_of(settings.stop_words, settings.language) | set(
            settings.own_stop_words
        )
        self._stop_words = frozenset(map(self.folded, listed))
        # One buffer inside: two threads must not stem at once. Its own cache would be a second.
        stemmer = Stemmer.Stemmer(name, 0) if name else None
        self._stem: Callable[[str], str] | None = stemmer.stemWord if stemmer else None
        self._lock = lock_free_in_children()

    def __missing__(self, word: str) -> str:
        term = self.found(word)
        if len(word) > LONGEST_WORD:
            return term
        if len(self) >= CACHED_WORDS:
            self.clear()
        self[word] = term
        return term

    def found(self, word: str) -> str:
        """Return the term of a word, not cached."""
        return "" if len(word) > LONGEST_WORD else self._term(self.folded(word))

    def pair(self, pair: str) -> str:
        """Term of a pair of characters, which has no case, accents or stem; "" for a stop word."""
        term = pair.translate(IGNORED)
        return "" if len(term) > LONGEST_WORD or term in self._stop_words else term

    def folded(self, word: str) -> str:
        """Case folded, one kind of apostrophe, nothing invisible, without accents that go."""
        if word.isascii() and not self._turkish:
            return word.lower()
        if self._turkish:
            word = word.translate(_TURKISH)
        word = word.translate(IGNORED).replace("’", "'").casefold()
        word = unicodedata.normalize("NFKC", word)
        return self._accents.folded(word) if self._accents else word

    def _term(self, word: str) -> str:
        if word in self._stop_words:
            return ""
        bare = word if self._whole else word.partition("'")[0]
        if bare in self._stop_words:
            return ""
        if self._stem is None:
            return bare
        written = self._accents.restored(bare) if self._accents else bare
        with self._lock:
            stem = self._stem(written)
        return stem if written == bare else self.folded(stem)
