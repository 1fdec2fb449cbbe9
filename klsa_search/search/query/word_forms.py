"""Written forms of terms: from stems back to words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Final

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.collection.searched_text import searched_texts
from klsa_search.search.snapshot import Snapshot

_SOURCES: Final = 5
"""Documents that are read for each term."""

_CHARACTERS: Final = 10_000
"""Characters of each that are read."""


def written_forms(
    snapshot: Snapshot,
    analyzer: Analyzer,
    documents_at: Callable[[Iterable[int]], list[Document]],
    terms: Sequence[int],
) -> list[Counter[str]]:
    """Return the written forms of each term with their counts; empty if none is found.

    documents_at  returns documents by doc id
    Counts are of the beginnings of the five documents in which the term has the highest weight,
    each read and analysed once.
    """
    vocabulary = snapshot.vocabulary.terms
    fields = snapshot.forward.fields
    names = {vocabulary[term] for term in terms}
    sources = {term: _sources(snapshot, term) for term in terms}
    doc_ids = sorted({doc_id for found in sources.values() for doc_id in found})
    written = {
        doc_id: _written(analyzer, _beginnings(searched_texts(document, fields)), names)
        for doc_id, document in zip(doc_ids, documents_at(doc_ids), strict=True)
    }
    forms = []
    for term in terms:
        counted: Counter[str] = Counter()
        for doc_id in sources[term]:
            counted.update(written[doc_id].get(vocabulary[term], {}))
        forms.append(counted)
    return forms


def _beginnings(texts: Iterable[str]) -> str:
    return "\n".join(text[:_CHARACTERS] for text in texts)


def commonest(writings: Counter[str]) -> str:
    """Return the most frequent writing of the most frequent form, ignoring case."""
    folded: Counter[str] = Counter()
    for writing, count in writings.items():
        folded[writing.casefold()] += count
    # Of equals the shortest, then the first in alphabetical order.
    word = min(folded, key=lambda form: (-folded[form], len(form), form))
    return written_as(writings, word)


def written_as(writings: Counter[str], word: str) -> str:
    """Return the most frequent writing of a case-folded form."""
    same = [writing for writing in writings if writing.casefold() == word]
    # Of equals lower case, which sorts last: capitals may be due to the start of a sentence.
    return max(same, key=lambda writing: (writings[writing], writing))


def _sources(snapshot: Snapshot, term: int) -> list[int]:
    documents, saturations = snapshot.query_kernel.postings.of_term(term)
    is_live = snapshot.live_docs()[documents]
    documents, saturations = documents[is_live], saturations[is_live]
    heaviest = np.argsort(-saturations.astype(np.int64), kind="stable")[:_SOURCES]
    return [int(doc_id) for doc_id in documents[heaviest]]


def _written(analyzer: Analyzer, text: str, terms: Set[str]) -> dict[str, Counter[str]]:
    """Return how often each term is written in which way."""
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for term, word in analyzer.written(text):
        if term in terms:
            forms[term][word] += 1
    return forms
