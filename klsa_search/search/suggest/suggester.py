"""Completions of typed text: words, following words, titles and IDs."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, Literal, NamedTuple

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.array_types import DocumentMask
from klsa_search.core.lazy import lazy_property
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.corrections import MAX_WORD_LETTERS, WordContext
from klsa_search.search.query.interpretation import Word
from klsa_search.search.query.matching import Alternatives, counts_with, pattern_names, pattern_of
from klsa_search.search.query.parser import QueryParser
from klsa_search.search.query.similar_terms import MIN_WORD_LETTERS
from klsa_search.search.query.syntax import is_plain, last_word, may_be_boolean
from klsa_search.search.query.term_dictionary import MAX_COMPLETIONS, most_frequent_form
from klsa_search.search.suggest.titles import Lines
from klsa_search.storage.documents import DocumentReader

Kind = Literal["word", "phrase", "title", "id", "correction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A completion of typed text.

    kind       a word as documents write it; a phrase that continues the typed words; the title or
               the ID of a document; or the correction of a word that no term begins with
    text       the word, phrase, title or ID
    query      the typed text completed by it: the query to search
    documents  number of documents that a search for the query finds, at least 1

    >>> index.suggest("wet r")[0]
    Suggestion(kind='phrase', text='wet roads', query='wet roads', documents=3)
    >>> index.search("wet roads", match="all").total
    3
    """

    kind: Kind
    text: str
    query: str
    documents: int


class Candidate(NamedTuple):
    """A suggestion of which the documents are not counted yet."""

    kind: Kind
    text: str
    query: str


class SuggestedTexts(NamedTuple):
    """Titles and IDs of documents, which are suggested whole."""

    titles: Lines
    ids: Lines

    @classmethod
    def of(cls, analyzer: Analyzer) -> SuggestedTexts:
        """Return those of an index."""
        return cls(Lines(analyzer, DocumentReader.titles), Lines(analyzer, DocumentReader.ids))

    def extended(self) -> SuggestedTexts:
        """Return a copy for more documents that shares what was read."""
        return SuggestedTexts(self.titles.extended(), self.ids.extended())


SAMPLE: Final = 4_000
"""Documents that are read for one suggestion, at most; of more, an even sample."""


def following(snapshot: Snapshot, words: Sequence[int], allowed: DocumentMask) -> Counter[str]:
    """Count the documents of a mask in which each term follows some words, or those of a sample.

    words  of which the first and the last have terms
    Cost: the postings of the words, and 3 ns a word of the documents that contain all of them.
    """
    matching = snapshot.bm25_engine.containing_all({word for word in words if word >= 0})
    documents = matching.astype(np.int64)
    documents = documents[allowed[documents]]
    if len(documents) > SAMPLE:
        documents = documents[np.linspace(0, len(documents) - 1, SAMPLE).astype(np.int64)]
    forward, pattern = snapshot.forward, pattern_of(snapshot, words)
    counts = forward.words.count_following(documents, pattern, len(forward.ranks))
    ranks = np.flatnonzero(counts)
    names = snapshot.vocabulary.terms
    terms = [names[term] for term in forward.terms[ranks].tolist()]
    return Counter(dict(zip(terms, counts[ranks].tolist(), strict=True)))


MAX_CONTEXT: Final = 4
"""Words before the last one that a phrase continues, at most."""

MIN_DOCUMENTS: Final = 2
"""Documents that contain a suggested phrase, at least; one if it is a code."""

MIN_LETTERS: Final = 3
"""Letters of a last word that phrases continue although no blank follows it."""

MAX_CORRECTIONS: Final = 3
"""Terms with a similar beginning, at most."""

_READ: Final = 500  # characters at the end of the typed text that are used
_CODE: Final = re.compile(r"(?=\S*\d)\S*[^\w\s]\S*\Z")
_JOINED: Final = re.compile(r"\w[^\w\s]+\w+\Z")
_ID: Final = re.compile(r"\s*(?=\S*\d)\S{2,}\s*")


class Suggester:
    """Finds completions in one snapshot; thread-safe.

    The first suggestion reads all titles and sorts the terms: 5 µs a document. Each new word costs
    some 0.6 ms, for reading documents to see how it is written. Following terms cost 3 ns a word of
    the documents that contain the words, 20,000 at most. Both are cached until a write changes
    them (`Snapshot.answers`). Titles cost 1 ns a byte of all of them.
    """

    def __init__(
        self, query_parser: QueryParser, documents: DocumentReader, texts: SuggestedTexts
    ) -> None:
        self._pieces, words = query_parser.pieces, query_parser.words
        self._snapshot, self._analyzer = query_parser.snapshot, query_parser.analyzer
        self._documents, self._texts = documents, texts
        self._term_dictionary = self._pieces.term_dictionary
        self._corrector, self._is_doubtful = words.corrector, words.is_doubtful
        self._filter: Mask | None = None

    def within(self, filter_: Mask) -> Suggester:
        """Return a suggester by the documents of a mask, which shares the caches of this one."""
        other = copy(self)
        other._filter, other._allowed = filter_, filter_.allowed & self._allowed
        return other

    def candidates(self, typed: str, k: int, evidence: Evidence) -> list[Iterator[Candidate]]:
        """Return completions by kind, the best first: phrases, words, longer phrases, titles, IDs.

        k         candidates of each kind, at most
        evidence  of documents
        Words that follow signs of a code complete it: they have to stand there in a document. So do
        those after another sign within a word (*node.j*), if any word stands there.
        """
        k = min(k, sys.maxsize)  # the limit of `islice`
        last = last_word(typed[-_READ:])
        before = typed[: len(typed) - len(last)]
        is_code = _CODE.search(typed[-_READ:]) is not None
        phrases = list(
            islice(self._phrases(before, last, 1 if is_code else MIN_DOCUMENTS, evidence), k)
        )
        suggested = {phrase.query for phrase in phrases}
        words: Iterator[Candidate] = iter(())
        is_joined = phrases and _JOINED.search(typed[-_READ:]) is not None
        if not (is_code or is_joined):
            words = self._words(before, last, k, evidence)
            words = (word for word in words if word.query not in suggested)
        longer: Iterator[Candidate] = iter(())
        if len(last) >= MIN_LETTERS and not phrases:
            longer = self._phrases(f"{typed} ", "", MIN_DOCUMENTS, evidence)
        titles = self._stored_texts("title", typed, k, evidence)
        ids = self._stored_texts("id", typed, k, evidence) if _ID.fullmatch(typed) else ()
        return [islice(kind, k) for kind in (phrases, words, longer, titles, ids)]

    def _words(self, before: str, last: str, k: int, evidence: Evidence) -> Iterator[Candidate]:
        """Yield words with this prefix or, if there are none, corrections.

        Words that are probably misspelt in documents come last.
        """
        if not last:
            return
        is_counted = self._context(before) or self._filter is not None
        limit = MAX_COMPLETIONS if is_counted else k
        terms = self._term_dictionary.beginning_with(last, evidence, limit)
        begun, doubtful = False, []
        for term in self._beside(before, terms, evidence):
            word = self._form_of(term, evidence, last)
            candidate = Candidate("word", word, before + word)
            if word and self._is_doubtful(Word(word, term)):
                doubtful.append(candidate)
            elif word:
                begun = True
                yield candidate
        if not begun:
            yield from self._corrections(before, last, evidence)
        yield from doubtful

    def _context(self, before: str) -> list[Alternatives] | None:
        """Return the typed words before the last one that documents contain; None without them."""
        numbers = {number for number in self._numbers(before[-_READ:]) if number >= 0}
        return [[[number]] for number in sorted(numbers)] or None

    def _beside(self, before: str, terms: Sequence[int], evidence: Evidence) -> Sequence[int]:
        """Return terms of the documents that also contain the words before, most frequent first."""
        context = self._context(before)
        if context is None and self._filter is None:
            return terms
        counts = counts_with(self._snapshot, context or (), terms, evidence, self._allowed)
        return sorted((term for term in terms if counts[term]), key=lambda term: -counts[term])

    def _form_of(self, term: int, evidence: Evidence, beginning: str = "") -> str:
        """Return a term as documents write it with this prefix, or ""."""
        folded = self._analyzer.folded(beginning)
        forms = self._term_dictionary.forms(term, evidence)
        matching = {
            form: count
            for form, count in forms.items()
            if self._analyzer.folded(form).startswith(folded)
        }
        if matching:
            word = most_frequent_form(Counter(matching))
            # Headlines are in capitals: prefer lower case if any document has it.
            return word.casefold() if word.casefold() in matching else word
        # Documents that were not read may contain it.
        return beginning if self._numbers(beginning) == [term] else ""

    def _corrections(self, before: str, last: str, evidence: Evidence) -> Iterator[Candidate]:
        folded = self._analyzer.folded(last)
        if not MIN_WORD_LETTERS <= len(folded) <= MAX_WORD_LETTERS or not folded.isalpha():
            return
        context = tuple(number for number in self._numbers(before) if number >= 0)
        where = WordContext(context, alone=not context, unfinished=True)
        correction = self._corrector.correction(last, evidence, where)
        correction_terms = () if correction is None else correction.terms
        if correction is not None and [*correction_terms] != self._numbers(last):
            yield Candidate("correction", correction.words, before + correction.words)
        near = self._corrector.begun(folded, MAX_CORRECTIONS)
        for term in self._beside(before, near, evidence):
            word = self._form_of(term, evidence)
            is_doubtful = self._is_doubtful(Word(word, term))
            if word and term not in correction_terms and not is_doubtful:
                yield Candidate("correction", word, before + word)

    def _phrases(
        self, before: str, last: str, least: int, evidence: Evidence
    ) -> Iterator[Candidate]:
        """Yield terms with this prefix that follow the words before it, with these words.

        least  documents that contain them in sequence, at least
        """
        context_words = self._pieces.words(before[-_READ:])[-MAX_CONTEXT:]
        words = [word.text for word in context_words]
        numbers = [word.number for word in context_words]
        if not self._ends_with_term(before):
            return
        of_last, beginning = self._numbers(last), self._analyzer.folded(last)
        numbers_of, has_phrase = self._snapshot.vocabulary.numbers, False
        for first in range(len(numbers)):
            context = tuple(numbers[first:])
            if context[0] < 0 or UNKNOWN in context:
                continue
            question = "following", *pattern_names(self._snapshot, context)
            follow = evidence.of(question, partial(self._following_terms, context))
            shown = _text_from(before, words[first:])
            frequent = sorted((-count, name) for name, count in follow.items() if count >= least)
            for _, name in frequent:
                term = numbers_of[name]
                fits = name.startswith(beginning) or of_last == [term]
                if not fits or (term in self._common and not last):
                    continue
                if word := self._form_of(term, evidence, last):
                    has_phrase = True
                    yield Candidate("phrase", shown + word, before + word)
            if has_phrase:
                return

    def _ends_with_term(self, text: str) -> bool:
        """Return whether the last word has a term: words without one are not distinguished."""
        parts = text[-_READ:].split()
        return bool(parts) and max(self._numbers(parts[-1]), default=NO_TERM) >= 0

    def _stored_texts(
        self, kind: Literal["title", "id"], typed: str, k: int, evidence: Evidence
    ) -> Iterator[Candidate]:
        """Yield the best titles or IDs that contain the typed text, of equal ones the first."""
        lines = self._texts.titles if kind == "title" else self._texts.ids
        find = partial(lines.find, typed, k, self._documents, self._snapshot, self._allowed)
        best: dict[bytes, str] = {}
        for match in sorted(evidence.of((kind, typed, k), find)):
            best.setdefault(match.folded, match.text)
        for text in best.values():
            yield Candidate(kind, text, self._plain(text) if kind == "title" else text)

    def _plain(self, title: str) -> str:
        """Return a title, or its words if it may be read as operators."""
        if is_plain(title) and not may_be_boolean(title):
            return title
        return " ".join(word.text for word in self._pieces.words(title)).casefold()

    def _following_terms(self, words: tuple[int, ...]) -> Counter[str]:
        def follow() -> Counter[str]:
            return following(self._snapshot, words, self._allowed)

        if self._filter is not None:
            return follow()
        return self._snapshot.answers.of(("following", *words), words, follow)

    def _numbers(self, text: str) -> list[int]:
        return [word.number for word in self._pieces.words(text)]

    @lazy_property
    def _common(self) -> frozenset[int]:
        return frozenset(self._snapshot.common.tolist())

    @lazy_property
    def _allowed(self) -> DocumentMask:
        return self._snapshot.live_docs()


def _text_from(text: str, words: Sequence[str]) -> str:
    at = len(text)
    for word in reversed(words):
        at = text.rfind(word, 0, at + len(word) - 1)  # pairs of characters overlap
        if at < 0:  # the analyser changed it
            return " ".join((*words, ""))
    return text[at:]
