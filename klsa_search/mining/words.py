"""From terms back to words as the documents write them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from typing import Final

import numpy as np

from klsa_search.search import Index
from klsa_search.search.snippet import LOOKED_AT

_SOURCES: Final = 5
"""Documents that are read for one term."""


def words_of(index: Index, terms: Iterable[int]) -> list[str]:
    """Give the commonest written form of each term, by number; the term itself where none is found.

    The forms are counted in the beginnings of the documents in which the term weighs most, case
    folded; of the winner the commonest writing is given. Cost: five documents a term, each read
    and analysed once.
    """
    vocabulary = index.snapshot.vocabulary.terms
    numbers = [int(term) for term in terms]
    names = {vocabulary[number] for number in numbers}
    sources = {number: _sources(index, number) for number in numbers}
    wanted = sorted({position for found in sources.values() for position in found})
    written = {
        position: _written(index, f"{document.title}\n{document.text[:LOOKED_AT]}", names)
        for position, document in zip(wanted, index.documents(wanted), strict=True)
    }
    return [
        _commonest((written[position] for position in sources[number]), vocabulary[number])
        for number in numbers
    ]


def _sources(index: Index, term: int) -> list[int]:
    documents, saturations = index.snapshot.bm25.postings.of_term(term)
    counting = index.snapshot.counting()[documents]
    documents, saturations = documents[counting], saturations[counting]
    heaviest = np.argsort(-saturations.astype(np.int64), kind="stable")[:_SOURCES]
    return [int(position) for position in documents[heaviest]]


def _written(index: Index, text: str, terms: Set[str]) -> dict[str, Counter[str]]:
    """How often each of some terms is written how."""
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for token in index.analyzer.tokens(text):
        if token.term in terms:
            forms[token.term][text[token.start : token.end]] += 1
    return forms


def _commonest(documents: Iterable[dict[str, Counter[str]]], term: str) -> str:
    writings: Counter[str] = Counter()
    for forms in documents:
        writings.update(forms.get(term, {}))
    if not writings:
        return term
    folded: Counter[str] = Counter()
    for writing, count in writings.items():
        folded[writing.casefold()] += count
    # The commonest; among equals the shortest, then in the order of the alphabet.
    word = min(folded, key=lambda form: (-folded[form], len(form), form))
    same = [writing for writing in writings if writing.casefold() == word]
    # Among equals small letters, which follow the capitals, as no sentence asked for them.
    return max(same, key=lambda writing: (writings[writing], writing))
