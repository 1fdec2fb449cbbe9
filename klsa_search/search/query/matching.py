"""Boolean matching: which documents contain words, prefixes and phrases.

Words and prefixes are looked up in the postings. Phrases are searched in the forward index of the
documents that contain all their words; it includes stop words, which have no term.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, Literal, NamedTuple, cast

import numpy as np

from klsa_search.core.array_types import DocumentMask, Integers, Numbers
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.storage.forward_index import codes_of

ANYWHERE: Final = -1
"""Part that stands for all parts of a document."""

MOST: Final = 0.5
"""Share of the weight of a query that documents must exceed to contain most of it."""

_MOST_CACHED: Final = 2**14
"""Documents with a phrase that are cached, at most: more would take too much memory."""

Alternatives = Collection[Sequence[int]]
"""Terms that count as one word of a query, any of these and all of each: its own term, those of
each of its synonyms, the terms of a prefix.
"""


class Operand(NamedTuple):
    """A part of a Boolean query.

    matching       (N,) documents that match
    not_in_hits    excluded words that no document which matches contains
    not_in_others  excluded words that no other document contains
    """

    matching: DocumentMask
    not_in_hits: frozenset[str]
    not_in_others: frozenset[str]

    def __invert__(self) -> Operand:
        """Return NOT of it."""
        return Operand(~self.matching, self.not_in_others, self.not_in_hits)

    def __and__(self, other: Operand) -> Operand:
        """Return both, joined by AND."""
        return Operand(
            self.matching & other.matching,
            self.not_in_hits | other.not_in_hits,
            self.not_in_others & other.not_in_others,
        )

    def __or__(self, other: Operand) -> Operand:
        """Return both, joined by OR."""
        return ~(~self & ~other)


def names_of(snapshot: Snapshot, alternatives: Alternatives) -> tuple[tuple[str, ...], ...]:
    """Return the terms of alternatives by name."""
    names = snapshot.vocabulary.terms
    return tuple(tuple(names[term] for term in terms) for terms in alternatives)


def containing_words(
    snapshot: Snapshot,
    words: Collection[Alternatives],
    match: Literal["most", "all"],
    evidence: Evidence,
) -> DocumentMask:
    """Return which documents contain all words, or more than `MOST` of their weight: (N,).

    A word weighs its idf, ln(1 + (N - n + 0.5) / (n + 0.5)), if n of N live documents contain it or
    an alternative. Documents that contain all words also contain most.
    Cost: their postings; for "most" also O(N).
    """
    if match == "all":
        return containing_every(snapshot, words)
    live, count = snapshot.live_docs(), snapshot.query_kernel.counts.documents
    contained, total = np.zeros(len(snapshot)), 0.0
    for alternatives in words:
        matching = _containing_one(snapshot, alternatives)
        question = "containing", *names_of(snapshot, alternatives)
        n = evidence.of(question, lambda: int((live & matching).sum()))  # noqa: B023 - called at once
        weight = math.log1p((count - n + 0.5) / (n + 0.5))
        np.add(contained, weight, out=contained, where=matching)
        total += weight
    return contained > MOST * total


def containing_every(snapshot: Snapshot, words: Collection[Alternatives]) -> DocumentMask:
    """Return which documents contain all words: (N,). Cost: their postings."""
    alone = [term for word in words if len(word) == 1 for terms in word for term in terms]
    result = np.full(len(snapshot), not alone)
    if alone:
        result[snapshot.bm25_engine.containing_all(alone)] = True
    for word in words:
        if len(word) != 1:  # none: no document
            result &= _containing_one(snapshot, word)
    return result


def _containing_one(snapshot: Snapshot, alternatives: Alternatives) -> DocumentMask:
    engine = snapshot.bm25_engine
    result = engine.containing_any(terms[0] for terms in alternatives if len(terms) == 1)
    for terms in alternatives:
        if len(terms) > 1:
            result[engine.containing_all(terms)] = True
    return result


def containing_phrase(
    snapshot: Snapshot, words: Sequence[int], field: str = "", *, as_written: bool = False
) -> DocumentMask:
    """Return which documents contain words in sequence: (N,). See `documents_of_phrase`."""
    result = np.zeros(len(snapshot), np.bool_)
    result[documents_of_phrase(snapshot, words, field, as_written=as_written)] = True
    return result


def documents_of_phrase(
    snapshot: Snapshot, words: Sequence[int], field: str = "", *, as_written: bool = False
) -> Integers:
    """Return the doc ids that contain words in sequence, in one of their fields, ascending.

    words  term numbers; NO_TERM less the code of a stop word, which matches that word; or NO_TERM,
           which matches any word without a term, if there are no such codes. No document contains
           UNKNOWN, or a phrase of NO_TERM alone
    field  name of a searched field; "" for any, but not across them
    as_written  whether stop words in capitals match only these, and others no capitals
    Cost: the postings of the words, and 3 ns a word of the documents that contain all terms.
    """
    terms = {word for word in words if word >= 0}
    if UNKNOWN in words or all(word == NO_TERM for word in words):
        return np.zeros(0, np.int64)
    documents: Integers = (
        snapshot.bm25_engine.containing_all(terms) if terms else np.arange(len(snapshot))
    )
    if not len(documents) or (len(words) == 1 and terms and field == ""):
        return documents
    forward = snapshot.forward
    names = forward.fields.names
    pattern = pattern_of(snapshot, words)
    part = names.index(field) if field else ANYWHERE
    stops = _stops(words, as_written)
    matches = forward.words.find_phrase(documents.astype(np.int64), pattern, part, stops)
    return documents[matches]


def count_in_documents(snapshot: Snapshot, words: Sequence[int], *, as_written: bool) -> Numbers:
    """Return how often documents contain words in sequence, by the weights of fields: (N,).

    Words as for `containing_phrase`. Cost: 3 ns a word of all documents.
    """
    forward = snapshot.forward
    return forward.words.count_phrase(
        np.arange(len(snapshot)),
        pattern_of(snapshot, words),
        np.array(forward.fields.weights, np.int64),
        _stops(words, as_written),
    )


def _stops(words: Sequence[int], as_written: bool) -> int:
    """Return how words without a term match: see `ForwardCodes.find_phrase`."""
    if min(words) >= NO_TERM:
        return 0
    return 2 if as_written else 1


def live_documents_of_phrase(
    snapshot: Snapshot, words: Sequence[int], *, as_written: bool = False
) -> Integers:
    """Return the live doc ids that contain words in sequence, ascending; cached if there are few.

    Queries repeat phrases, and one takes ten times as long as the rest of a search.
    """
    question = "documents", as_written, *words
    documents = snapshot.answers.get(question, words)
    if documents is None:
        documents = documents_of_phrase(snapshot, words, as_written=as_written)
        documents = documents[snapshot.live_docs()[documents]].astype(np.int32)
        if len(documents) <= _MOST_CACHED:
            snapshot.answers.put(question, documents)
    return cast(Integers, documents)


def documents_with(snapshot: Snapshot, words: Sequence[int], evidence: Evidence) -> int:
    """Return the number of live documents that contain words in sequence; cached.

    Queries repeat words, and a phrase takes ten times as long as the rest of parsing.
    """

    def count() -> int:
        return int(snapshot.live_docs()[documents_of_phrase(snapshot, words)].sum())

    question = "phrase", *pattern_names(snapshot, words)
    return evidence.of(question, lambda: snapshot.answers.of(("phrase", *words), words, count))


def count_all(snapshot: Snapshot, words: Sequence[Alternatives], evidence: Evidence) -> int:
    """Return the number of live documents that contain all words, anywhere."""

    def count() -> int:
        return int((containing_every(snapshot, words) & snapshot.live_docs()).sum())

    return evidence.of(("all", *(names_of(snapshot, word) for word in words)), count)


def counts_with(
    snapshot: Snapshot,
    context: Collection[Alternatives],
    terms: Collection[int],
    evidence: Evidence,
    allowed: DocumentMask | None = None,
) -> dict[int, int]:
    """Return the numbers of documents that contain other words and each of some terms.

    allowed  documents that count, by default all live ones
    Cost: their postings.
    """
    names = snapshot.vocabulary.terms

    def documents_with() -> Counter[str]:
        fitting = snapshot.live_docs() if allowed is None else allowed
        if context:
            fitting = fitting & containing_every(snapshot, context)
        counted = snapshot.bm25_engine.counts_within(terms, fitting)
        return Counter({names[term]: count for term, count in counted.items()})

    with_context = (names_of(snapshot, alternatives) for alternatives in context)
    question = "completions", *with_context, *(names[term] for term in terms)
    counts = evidence.of(question, documents_with)
    return {term: counts[names[term]] for term in terms}


def pattern_names(snapshot: Snapshot, words: Sequence[int]) -> tuple[str, ...]:
    """Return the words of a phrase by name; "" for NO_TERM, and the numbers of stop words."""
    names = snapshot.vocabulary.terms
    return tuple(
        names[word] if word >= 0 else str(word) if word < NO_TERM else "" for word in words
    )


def pattern_of(snapshot: Snapshot, words: Sequence[int]) -> Numbers:
    """Return words of a phrase as codes of the forward index."""
    numbers = np.array(words, np.int64)
    pattern = np.where(numbers == NO_TERM, NO_TERM, NO_TERM - numbers)
    has_term = numbers >= 0
    pattern[has_term] = codes_of(snapshot.forward.ranks[numbers[has_term]])
    return pattern
