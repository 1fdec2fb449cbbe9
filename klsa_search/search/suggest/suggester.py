"""Suggest completions of typed text: terms, following words and titles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.core.cached import lazy_property
from klsa_search.errors import QueryError
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.query.completion import MAX_COMPLETIONS, counts_with
from klsa_search.search.query.corrections import LONGEST, SHORTEST, Circumstances
from klsa_search.search.query.evidence import Evidence
from klsa_search.search.query.matching import (
    Alternatives,
    containing_all,
    count_all,
    pattern_names,
    pattern_of,
)
from klsa_search.search.query.parser import QueryParser
from klsa_search.search.query.word_forms import commonest
from klsa_search.search.suggest.titles import Titles
from klsa_search.storage.documents import DocumentReader

Kind = Literal["word", "phrase", "title", "correction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A completion of typed text.

    kind       a word as documents write it; a phrase that continues the typed words; the title of a
               document; or the correction of a word that no term begins with
    text       the word, phrase or title
    query      the typed text completed by it: the query to search
    documents  number of documents that contain the word and all typed words before it, in any
               form, or the phrase, or have the title; None for a phrase counted in a sample

    >>> index.suggest("wet r")[0]
    Suggestion(kind='phrase', text='wet roads', query='wet roads', documents=3)
    """

    kind: Kind
    text: str
    query: str
    documents: int | None


def checked_typed(typed: object) -> None:
    """Raise QueryError unless the typed text is a text."""
    if not isinstance(typed, str):
        raise QueryError(f"typed = {typed!r} is not a text; give a string", field="q")


class CountedTitle(NamedTuple):
    """A title that contains the typed text.

    order      whether it does not begin with it, its length, and the ordinal of its document
    folded     by which equal titles are counted
    documents  number of documents with the title
    """

    order: tuple[bool, int, int]
    folded: str
    title: str
    documents: int


SAMPLE: Final = 4_000
"""Documents that are read for one suggestion, at most; of more, an even sample."""


NOT_READ: Final = ""
"""Counts the documents that are not in the sample."""


def following(snapshot: Snapshot, words: Sequence[int]) -> Counter[str]:
    """Count the documents in which each term follows some words, of which the first and the last
    have terms; and those that are not read.

    Cost: the postings of the words, and 3 ns a word of the documents that contain all of them.
    """
    documents = containing_all(snapshot, {word for word in words if word >= 0}).astype(np.int64)
    documents = documents[snapshot.live_docs()[documents]]
    found = Counter({NOT_READ: max(len(documents) - SAMPLE, 0)})
    if found[NOT_READ]:
        documents = documents[np.linspace(0, len(documents) - 1, SAMPLE).astype(np.int64)]
    forward, pattern = snapshot.forward, pattern_of(snapshot, words)
    counts = forward.words.count_following(documents, pattern, len(forward.ranks))
    ranks = np.flatnonzero(counts)
    names = snapshot.vocabulary.terms
    terms = [names[term] for term in forward.terms[ranks].tolist()]
    found.update(dict(zip(terms, counts[ranks].tolist(), strict=True)))
    return found


MAX_CONTEXT: Final = 4
"""Words before the last one that a phrase continues, at most."""

MIN_DOCUMENTS: Final = 2
"""Documents that contain a suggested phrase, at least."""

MIN_LETTERS: Final = 3
"""Letters of a last word that phrases continue although no blank follows it."""

MAX_CORRECTIONS: Final = 3
"""Terms with a similar beginning, at most."""

_READ: Final = 500  # characters at the end of the typed text that are used
_LAST_WORD: Final = re.compile(r"[^\W_]+\Z")


class Suggester:
    """Suggests completions from one snapshot; thread-safe.

    The first suggestion reads all titles and sorts the terms: 5 µs a document. Each new word costs
    some 0.8 ms, for reading documents to see how it is written. Following terms cost 3 ns a word of
    the documents that contain the words, 20,000 at most. Both are cached until a write changes
    them (`Snapshot.answers`). Titles cost 1 ns a byte of all of them.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        query_parser: QueryParser,
        documents: DocumentReader,
        titles: Titles,
    ) -> None:
        self._snapshot, self._analyzer, self._documents = snapshot, analyzer, documents
        self._query_parser = query_parser
        self._term_dictionary, self._corrector = (
            query_parser.term_dictionary,
            query_parser.corrector,
        )
        self.titles = titles

    def suggestions(self, typed: str, k: int, evidence: Evidence) -> list[Suggestion]:
        """Return at most k completions: continued phrases first, then words, phrases and titles.

        evidence  of documents
        Equally many of each kind as far as possible, most frequent first.
        """
        last_word = _LAST_WORD.search(typed, max(len(typed) - _READ, 0))
        last = last_word[0] if last_word else ""
        before = typed[: len(typed) - len(last)]
        phrases = list(islice(self._phrases(before, last, evidence), k))
        suggested = {phrase.query for phrase in phrases}
        words = (
            word for word in self._words(before, last, k, evidence) if word.query not in suggested
        )
        longer: Iterator[Suggestion] = iter(())
        if len(last) >= MIN_LETTERS and not phrases:
            longer = self._phrases(f"{typed} ", "", evidence)
        return _merge(k, [iter(phrases), words, longer, self._titles(typed, k, evidence)])

    def _words(self, before: str, last: str, k: int, evidence: Evidence) -> Iterator[Suggestion]:
        """Yield words with this prefix or, if there are none, corrections."""
        if not last:
            return
        limit = k if self._context(before) is None else MAX_COMPLETIONS
        terms = self._term_dictionary.beginning_with(last, evidence, limit)
        begun = False
        for term, count in self._counted(before, terms, evidence):
            word = self._form_of(term, evidence, last)
            if word:
                begun = True
                yield Suggestion(kind="word", text=word, query=before + word, documents=count)
        if not begun:
            yield from self._corrections(before, last, evidence)

    def _context(self, before: str) -> list[Alternatives] | None:
        """Return the typed words before the last one that documents contain; None without them."""
        numbers = {number for number in self._numbers(before[-_READ:]) if number >= 0}
        return [[[number]] for number in sorted(numbers)] or None

    def _counted(
        self, before: str, terms: Sequence[int], evidence: Evidence
    ) -> list[tuple[int, int]]:
        """Return terms with the number of documents that also contain the words before.

        Those without such a document are left out. Most frequent first.
        """
        context = self._context(before)
        if context is None:
            return [(term, int(self._term_dictionary.frequencies[term])) for term in terms]
        counts = counts_with(self._snapshot, context, terms, evidence)
        return sorted(((term, n) for term, n in counts.items() if n), key=lambda pair: -pair[1])

    def _form_of(self, term: int, evidence: Evidence, beginning: str = "") -> str:
        """Return a term as documents write it with this prefix, or ""."""
        folded = self._analyzer.folded(beginning)
        (forms,) = self._term_dictionary.forms([term], evidence)
        matching = {
            form: count
            for form, count in forms.items()
            if self._analyzer.folded(form).startswith(folded)
        }
        if matching:
            word = commonest(Counter(matching))
            # Headlines are in capitals: prefer lower case if any document has it.
            return word.casefold() if word.casefold() in matching else word
        # Documents that were not read may contain it.
        return beginning if self._numbers(beginning) == [term] else ""

    def _corrections(self, before: str, last: str, evidence: Evidence) -> Iterator[Suggestion]:
        """Yield corrections of a word that no term begins with."""
        folded = self._analyzer.folded(last)
        if not SHORTEST <= len(folded) <= LONGEST or not folded.isalpha():
            return
        context = tuple(number for number in self._numbers(before) if number >= 0)
        where = Circumstances(context, alone=not context, unfinished=True)
        correction = self._corrector.correction(last, evidence, where)
        if correction is not None:
            words = [*(self._context(before) or ()), [correction.terms]]
            count = count_all(self._snapshot, words, evidence)
            if count:
                query = before + correction.words
                yield Suggestion(
                    kind="correction", text=correction.words, query=query, documents=count
                )
        correction_terms = () if correction is None else correction.terms
        near = self._corrector.begun(folded)[:MAX_CORRECTIONS]
        for term, count in self._counted(before, near, evidence):
            word = self._form_of(term, evidence)
            if word and term not in correction_terms:
                query = before + word
                yield Suggestion(kind="correction", text=word, query=query, documents=count)

    def _phrases(self, before: str, last: str, evidence: Evidence) -> Iterator[Suggestion]:
        """Yield terms with this prefix that follow the words before it, with these words."""
        context_words = self._query_parser.words(before[-_READ:])[-MAX_CONTEXT:]
        words, numbers = (
            [word.text for word in context_words],
            [word.number for word in context_words],
        )
        if not self._ends_with_term(before):
            return
        own, beginning = self._numbers(last), self._analyzer.folded(last)
        numbers_of, has_phrase = self._snapshot.vocabulary.numbers, False
        for first in range(len(numbers)):
            context = tuple(numbers[first:])
            if context[0] < 0 or UNKNOWN in context:
                continue
            question = "following", *pattern_names(self._snapshot, context)
            follow = evidence.of(question, partial(self._following_terms, context))
            shown = _text_from(before, words[first:])
            exact = not follow[NOT_READ]
            for name, count in _most_frequent(follow):
                term = numbers_of[name]
                fits = name.startswith(beginning) or own == [term]
                allowed = fits and (last or term not in self._common)
                word = allowed and self._form_of(term, evidence, last)
                if word:
                    has_phrase = True
                    yield Suggestion(
                        kind="phrase",
                        text=shown + word,
                        query=before + word,
                        documents=count if exact else None,
                    )
            if has_phrase:
                return

    def _ends_with_term(self, text: str) -> bool:
        """Return whether the last word has a term: words without one are not distinguished."""
        parts = text[-_READ:].split()
        return bool(parts) and max(self._numbers(parts[-1]), default=NO_TERM) >= 0

    def _titles(self, typed: str, k: int, evidence: Evidence) -> Iterator[Suggestion]:
        titles = evidence.of(("titles", typed, k), partial(self._own_titles, typed, k))
        counts: Counter[str] = Counter()
        best: dict[str, CountedTitle] = {}
        for title in sorted(titles, key=lambda each: each.order):
            counts[title.folded] += title.documents
            best.setdefault(title.folded, title)
        for folded, title in islice(best.items(), k):
            count = counts[folded]
            yield Suggestion(kind="title", text=title.title, query=title.title, documents=count)

    def _own_titles(self, typed: str, k: int) -> tuple[CountedTitle, ...]:
        """Return the best k titles of the documents of the index."""
        matches = self.titles.find(typed, self._documents, self._live)[:k]
        doc_ids = [match.doc_id for match in matches]
        ordinals = self._snapshot.ordinals_of(np.array(doc_ids, np.int64)).tolist()
        return tuple(
            CountedTitle(
                (*match.order, ordinal), self.titles.folded(title), title,
                self.titles.count(match.key, self._live),
            )
            for match, ordinal, title in zip(
                matches, ordinals, self._documents.titles(doc_ids), strict=True
            )
        )  # fmt: skip

    def _following_terms(self, words: tuple[int, ...]) -> Counter[str]:
        return self._snapshot.answers.of(
            ("following", *words), words, lambda: following(self._snapshot, words)
        )

    def _numbers(self, text: str) -> list[int]:
        return [word.number for word in self._query_parser.words(text)]

    @lazy_property
    def _common(self) -> frozenset[int]:
        return frozenset(self._snapshot.common.tolist())

    @lazy_property
    def _live(self) -> npt.NDArray[np.bool_]:
        return self._snapshot.live_docs()


def _most_frequent(follow: Counter[str]) -> list[tuple[str, int]]:
    """Return terms of at least `MIN_DOCUMENTS` documents, most frequent first."""
    counted = [
        (name, count)
        for name, count in follow.items()
        if count >= MIN_DOCUMENTS and name != NOT_READ
    ]
    return sorted(counted, key=lambda pair: (-pair[1], pair[0]))


def _text_from(text: str, words: Sequence[str]) -> str:
    """Return the end of a text, from the first of its last words."""
    at = len(text)
    for word in reversed(words):
        at = text.rfind(word, 0, at)
        if at < 0:  # the analyser changed it
            return " ".join((*words, ""))
    return text[at:]


def _merge(k: int, kinds: Sequence[Iterator[Suggestion]]) -> list[Suggestion]:
    """Return at most k suggestions, equally many of each kind as far as possible, kind by kind."""
    taken: list[list[Suggestion]] = [[] for _ in kinds]
    active = list(range(len(kinds)))
    while active:
        for kind in active[:]:
            if sum(map(len, taken)) == k:
                return list(chain.from_iterable(taken))
            suggestion = next(kinds[kind], None)
            if suggestion is None:
                active.remove(kind)
            else:
                taken[kind].append(suggestion)
    return list(chain.from_iterable(taken))
