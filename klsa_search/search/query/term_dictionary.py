"""Term dictionary of a snapshot: terms by prefix, completions of words, and written forms."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.languages import with_joined_prefixes
from klsa_search.analysis.searched_text import searched_texts
from klsa_search.analysis.unicode import fold_accents, in_pairs, nfkc, without_pairs
from klsa_search.collection.model import Document
from klsa_search.core.field_weights import SearchedFields
from klsa_search.core.lazy import cached_method, lazy_property
from klsa_search.search.engine.evidence import DerivedValues, Evidence
from klsa_search.search.engine.query_terms import UNKNOWN
from klsa_search.search.engine.snapshot import IndexArrays, Snapshot
from klsa_search.search.query.interpretation import Word
from klsa_search.search.query.matching import Alternatives, counts_with

MIN_PREFIX: Final = 2
"""Characters of a prefix, at least."""

ENDING: Final = 5
"""Letters by which a stem may be shorter than its word, at most."""

SHORTEST_PART: Final = 3
"""Letters of a part of a compound, at least."""

COMPLETIONS: Final = 5
"""Most frequent completions of a query of one word that documents are ranked by, at most. With
other words it is one, which fits them best: several move documents that contain more than one up.
"""

MORE_FREQUENT: Final = 4
"""Factor by which a completion is more frequent than the last word, if documents contain that as
well: rarer ones move documents down that are found by the complete word. Both constants were
chosen on beginnings of titles of cran, cacm, cisi and awsdocs.
"""

MAX_COMPLETIONS: Final = 100
"""Most frequent completions among which those are chosen that fit the other words."""

MAX_COMPOUNDS: Final = 20
"""Most frequent compounds that a word finds, at most."""

_CACHED: Final = 2**13
"""Words whose compounds are remembered."""

_COMPOUNDING: Final = frozenset(
    {"danish", "dutch", "estonian", "finnish", "german", "hungarian", "norwegian", "swedish"}
)
"""Languages that write compounds as one word."""

_PAIRED: Final = frozenset({"danish", "norwegian", "swedish"})
"""Languages whose å, ä, ö and ø are typed as pairs of letters; Finnish has such pairs itself."""

_USAGES: Final = 5
"""Documents that are read for each term."""

_CHARACTERS: Final = 10_000
"""Characters of each that are read."""

DocumentsAt = Callable[[Iterable[int]], list[Document]]
"""Returns documents by doc id."""


class TermDictionary:
    """Finds terms of a snapshot by prefix; thread-safe.

    The first look-up sorts all terms. The usages of the written forms of terms are cached until a
    write changes them (`Snapshot.answers`).
    """

    def __init__(
        self,
        snapshot: Snapshot,
        analyzer: Analyzer,
        documents_at: DocumentsAt,
        derived: DerivedValues,
    ) -> None:
        self._snapshot, self._analyzer, self._documents_at = snapshot, analyzer, documents_at
        self._derived = derived
        self.has_compounds = not _COMPOUNDING.isdisjoint(analyzer.languages)
        self.compounds = cached_method(self._find_compounds, _CACHED)

    def completions(self, text: str, evidence: Evidence) -> list[int]:
        """Return terms with words that begin with a text, except that of the text itself.

        Unlike `beginning_with`, also a stem that is shorter than the text, if there are longer
        terms: `valida` is completed by `valid`, of *validation*, and by `validatepayload`.
        """
        terms, numbers = self.beginning_with(text, evidence), self._snapshot.vocabulary.numbers
        stem = self._stem_beginning(self._analyzer.folded(text), evidence)
        stems = {numbers.get(term) for term in self._analyzer.terms(text)}
        completed = {*terms, numbers[stem]} if stem else {*terms}
        return self._most_frequent(completed - stems)

    def beginning_with(self, text: str, evidence: Evidence, limit: int | None = None) -> list[int]:
        """Return terms with a prefix, and the term of the text as a word, most frequent first.

        limit  number of terms, at most
        A stem may be shorter than the prefix of its words: `computer*` finds `comput`. Without such
        a term, the longest stem with a word of that prefix is returned: `universit*`.
        """
        vocabulary, beginning = self._snapshot.vocabulary, self._analyzer.folded(text)
        terms = vocabulary.runs.numbers(beginning)
        if not len(terms):
            terms = vocabulary.runs.numbers(self._analyzer.beginning(text))
        stems = [vocabulary.numbers.get(term, UNKNOWN) for term in self._analyzer.terms(text)]
        stem_terms = [term for term in dict.fromkeys(stems) if term >= 0 and term not in terms]
        if (
            not len(terms)
            and not stem_terms
            and (stem := self._stem_beginning(beginning, evidence))
        ):
            stem_terms = [vocabulary.numbers[stem]]
        if stem_terms:
            names = vocabulary.terms
            terms = np.array(
                sorted([*terms.tolist(), *stem_terms], key=names.__getitem__), np.int64
            )
        frequencies = self.frequencies[terms]
        # Stable, so that terms of equal frequency are in alphabetical order.
        order = np.argsort(-frequencies, kind="stable")[: np.count_nonzero(frequencies)]
        chosen: list[int] = terms[order[:limit]].tolist()
        return chosen

    def containing(self, character: str) -> list[int]:
        """Return the pairs that contain a character of a script without spaces, and itself.

        character  with its marks, in NFKC
        The most frequent first. Cost: 0.5 µs per term of the index, the first time.
        """
        self._derived.note_all()
        pair = self._analyzer.term_of.pair(character)
        return self._most_frequent(self._snapshot.vocabulary.runs.with_character(pair).tolist())

    def with_other_accents(self, word: str) -> list[int]:
        """Return the terms that are a word but for accents, most frequent first.

        Else those in which a pair of letters stands for a marked one: *Aalborg*, *Ålborg*.
        Cost: 2 to 5 µs per term of the index that has accents, 0.1 µs per other, the first time.
        """
        vocabulary = self._snapshot.vocabulary
        term = self._analyzer.term(word)
        plain = fold_accents(term)
        terms = set(vocabulary.runs.accented(plain).tolist())
        if plain != term and plain in vocabulary.numbers:
            terms.add(vocabulary.numbers[plain])
        if not terms and not _PAIRED.isdisjoint(self._analyzer.languages):
            typed, pairs = without_pairs(plain), in_pairs(term)
            terms |= {*(vocabulary.runs.accented(typed).tolist() if typed != plain else ())}
            terms |= {vocabulary.numbers[pairs]} if pairs in vocabulary.numbers else set()
        return self._most_frequent(terms)

    def with_other_prefixes(self, word: str) -> list[int]:
        """Return the terms that are a word but for a joined article or preposition.

        Most frequent first. Cost: some look-ups of a word of Hebrew or Amharic.
        """
        if word.isascii():
            return []
        analyzer, numbers = self._analyzer, self._snapshot.vocabulary.numbers
        forms = with_joined_prefixes(analyzer.folded(word), analyzer.languages)
        if forms:
            self._derived.note_all()
        terms = map(analyzer.term, forms)
        return self._most_frequent({numbers[term] for term in terms if term in numbers})

    def _find_compounds(self, word: str) -> list[int]:
        """Return the terms of longer words that begin or end with a word, most frequent first.

        At least `SHORTEST_PART` letters long, as is the rest of each of them; `MAX_COMPOUNDS` at
        most. Function words have none: *Mitarbeiter* begins with *mit*, but is not about it.
        Cost: 1 µs for each; the first time also that of sorting all terms by their ends.
        """
        beginning, ending = self._analyzer.folded(word), self._analyzer.term(word)
        if not self.has_compounds or ending in self._analyzer.common():
            return []
        if not beginning.isalpha() or min(len(beginning), len(ending)) < SHORTEST_PART:
            return []
        runs, numbers = self._snapshot.vocabulary.runs, self._snapshot.vocabulary.numbers
        shortest = len(beginning) + SHORTEST_PART
        longer = {name for name in runs.names(beginning) if len(name) >= shortest}
        shortest = len(ending) + SHORTEST_PART
        longer.update(name for name in runs.ending_with(ending) if len(name) >= shortest)
        terms = self._most_frequent({numbers[name] for name in longer if name in numbers})
        return terms[:MAX_COMPOUNDS]

    def _most_frequent(self, terms: Iterable[int]) -> list[int]:
        names = self._snapshot.vocabulary.terms
        return sorted(
            (term for term in terms if self.frequencies[term]),
            key=lambda term: (-int(self.frequencies[term]), names[term]),
        )

    def forms(self, term: int, evidence: Evidence) -> Counter[str]:
        """Return the written forms of a term with their counts: see `written_forms`."""
        snapshot = self._snapshot

        def read() -> tuple[TermUsage, ...]:
            return usages_of(snapshot, self._analyzer, self._documents_at, [term])[0]

        question = "forms", snapshot.vocabulary.terms[term]
        answer = partial(snapshot.answers.of, ("forms", term), [term], read)
        return written_forms(evidence.of(question, answer))

    def _stem_beginning(self, beginning: str, evidence: Evidence) -> str:
        """Return a term shorter than a prefix that has words with that prefix, or ""."""
        for length in range(len(beginning) - 1, max(MIN_PREFIX, len(beginning) - ENDING) - 1, -1):
            term = self._snapshot.vocabulary.numbers.get(beginning[:length])
            if term is not None:
                forms = self.forms(term, evidence)
                if any(self._analyzer.folded(form).startswith(beginning) for form in forms):
                    return beginning[:length]
        return ""

    @lazy_property
    def frequencies(self) -> npt.NDArray[np.int64]:
        """Number of live documents that contain each term: (V,)."""
        return self._snapshot.query_kernel.counts.frequencies


def best_completions(
    snapshot: Snapshot,
    word: Word,
    completions: Collection[int],
    context: Collection[Alternatives],
    evidence: Evidence,
) -> list[int]:
    """Return the completions by which documents are ranked.

    completions  terms, most frequent first
    context      the other words of the query
    The one that most documents with all other words contain; without other words, the most frequent
    ones.
    """
    frequencies = snapshot.query_kernel.counts.frequencies
    best = list(completions)[:MAX_COMPLETIONS]
    if word.number >= 0:
        least = MORE_FREQUENT * frequencies[word.number]
        best = [term for term in best if frequencies[term] >= least]
    if not context or len(best) < 2:
        return best[:COMPLETIONS]
    counts = counts_with(snapshot, context, best, evidence)
    return [max(best, key=lambda term: counts[term])]  # the first of equals


class TermUsage(NamedTuple):
    """How a document writes a term.

    saturation  of the term in the document, by which usages are chosen
    ordinal     of the document, which orders equal ones
    forms       written forms with their counts
    """

    saturation: int
    ordinal: int
    forms: Counter[str]


def written_forms(usages: Iterable[TermUsage]) -> Counter[str]:
    """Return the written forms of a term with their counts; empty if none is found.

    Counts are of the five documents in which the term has the highest weight.
    """
    best = sorted(usages, key=lambda usage: (-usage.saturation, usage.ordinal))[:_USAGES]
    return sum((usage.forms for usage in best), Counter())


def usages_of(
    snapshot: IndexArrays, analyzer: Analyzer, documents_at: DocumentsAt, terms: Sequence[int]
) -> list[tuple[TermUsage, ...]]:
    """Return how each term is written in the five documents in which it has the highest weight.

    Only their beginnings count, each read and analysed once.
    """
    vocabulary = snapshot.vocabulary.terms
    fields = snapshot.forward.fields
    names = {vocabulary[term] for term in terms}
    usages = {term: _heaviest(snapshot, term) for term in terms}
    doc_ids = sorted({doc_id for usages_ in usages.values() for doc_id, _ in usages_})
    ordinals = snapshot.ordinals_of(np.array(doc_ids, np.int64)).tolist()
    ordinal_of = dict(zip(doc_ids, ordinals, strict=True))
    forms = {
        doc_id: surface_forms_of(analyzer, _beginnings(document, fields), names)
        for doc_id, document in zip(doc_ids, documents_at(doc_ids), strict=True)
    }
    return [
        tuple(
            TermUsage(
                saturation, ordinal_of[doc_id], forms[doc_id].get(vocabulary[term], Counter())
            )
            for doc_id, saturation in usages[term]
        )
        for term in terms
    ]


def _beginnings(document: Document, fields: SearchedFields) -> str:
    beginning = replace(document, text=document.text[:_CHARACTERS])
    return "\n".join(text[:_CHARACTERS] for text in searched_texts(beginning, fields))


def most_frequent_form(writings: Counter[str]) -> str:
    """Return the most frequent writing of the most frequent form, ignoring case."""
    folded: Counter[str] = Counter()
    for writing, count in writings.items():
        folded[writing.casefold()] += count
    # Of equals the shortest, then the first in alphabetical order.
    word = min(folded, key=lambda form: (-folded[form], len(form), form))
    return most_frequent_case(writings, word)


def most_frequent_case(writings: Counter[str], word: str) -> str:
    """Return the most frequent writing of a case-folded form."""
    same = [writing for writing in writings if writing.casefold() == word]
    # Of equals lower case, which sorts last: capitals may be due to the start of a sentence.
    return max(same, key=lambda writing: (writings[writing], writing))


def _heaviest(snapshot: IndexArrays, term: int) -> list[tuple[int, int]]:
    """Return the documents in which a term has the highest weight, with its saturations."""
    documents, saturations = snapshot.query_kernel.postings.of_term(term)
    is_live = snapshot.live_docs()[documents]
    documents, saturations = documents[is_live], saturations[is_live]
    if len(saturations) > _USAGES:
        least = np.partition(saturations, -_USAGES)[-_USAGES]
        documents, saturations = documents[saturations >= least], saturations[saturations >= least]
    heaviest = np.argsort(-saturations.astype(np.int64), kind="stable")[:_USAGES]
    return list(zip(documents[heaviest].tolist(), saturations[heaviest].tolist(), strict=True))


def surface_forms_of(analyzer: Analyzer, text: str, terms: Set[str]) -> dict[str, Counter[str]]:
    """Return how often each of some terms is written in which way.

    Cost: 20 ns a word, ten times that with a custom tokenizer, or with names such as C++, of which
    `Analyzer.occurrences` leaves the signs out.
    """
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    normal = nfkc(text)
    if analyzer.tokenizes or analyzer.has_names(normal):
        written = (pair for pair in analyzer.written(text) if pair[0] in terms)
    else:
        matches = analyzer.occurrences(normal, terms)
        written = ((term, normal[start:end]) for term, start, end in matches)
    for term, word in written:
        forms[term][word] += 1
    return forms
