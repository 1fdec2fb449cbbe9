"""How documents write a term: from stems back to words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from typing import Final

import numpy as np

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.collection.model import Document
from klsa_search.search.snapshot import Snapshot

_SOURCES: Final = 5
"""Documents that are read for one term."""

_CHARACTERS: Final = 10_000
"""Characters that are read of each."""


def written_forms(
    snapshot: Snapshot,
    analyzer: Analyzer,
    documents_at: Callable[[Iterable[int]], list[Document]],
    terms: Sequence[int],
) -> list[Counter[str]]:
    """Count the written forms of each term, by number; empty where none is found.

    documents_at  gives the documents at some positions
    They are counted in the beginnings of the documents in which the term weighs most. Cost: five
    documents a term, each read and analysed once.
    """
    vocabulary = snapshot.vocabulary.terms
    names = {vocabulary[term] for term in terms}
    sources = {term: _sources(snapshot, term) for term in terms}
    wanted = sorted({position for found in sources.values() for position in found})
    written = {
        position: _written(analyzer, f"{document.title}\n{document.text[:_CHARACTERS]}", names)
        for position, document in zip(wanted, documents_at(wanted), strict=True)
    }
    forms = []
    for term in terms:
        counted: Counter[str] = Counter()
        for position in sources[term]:
            counted.update(written[position].get(vocabulary[term], {}))
        forms.append(counted)
    return forms


def commonest(writings: Counter[str]) -> str:
    """Choose the commonest form, case folded, of at least one; of it the commonest writing."""
    folded: Counter[str] = Counter()
    for writing, count in writings.items():
        folded[writing.casefold()] += count
    # The commonest; among equals the shortest, then in the order of the alphabet.
    word = min(folded, key=lambda form: (-folded[form], len(form), form))
    return written_as(writings, word)


def written_as(writings: Counter[str], word: str) -> str:
    """Choose the commonest writing of a form that was case folded."""
    same = [writing for writing in writings if writing.casefold() == word]
    # Among equals small letters, which follow the capitals, as no sentence asked for them.
    return max(same, key=lambda writing: (writings[writing], writing))


def _sources(snapshot: Snapshot, term: int) -> list[int]:
    documents, saturations = snapshot.bm25.postings.of_term(term)
    counting = snapshot.counting()[documents]
    documents, saturations = documents[counting], saturations[counting]
    heaviest = np.argsort(-saturations.astype(np.int64), kind="stable")[:_SOURCES]
    return [int(position) for position in documents[heaviest]]


def _written(analyzer: Analyzer, text: str, terms: Set[str]) -> dict[str, Counter[str]]:
    """How often each of some terms is written how."""
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for term, word in analyzer.written(text):
        if term in terms:
            forms[term][word] += 1
    return forms
