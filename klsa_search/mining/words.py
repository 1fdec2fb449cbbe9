"""From terms back to words as the documents write them."""

from __future__ import annotations

from collections.abc import Iterable

from klsa_search.search.index import Index
from klsa_search.search.language.forms import commonest, written_forms


def words_of(index: Index, terms: Iterable[int]) -> list[str]:
    """Give the commonest written form of each term, by number; the term itself where none is found.

    See `written_forms`, which says where they are counted and what that costs.
    """
    numbers = [int(term) for term in terms]
    forms = written_forms(index.arrays, index.analyzer, index.documents, numbers)
    names = index.arrays.vocabulary.terms
    return [
        commonest(found) if found else names[number]
        for number, found in zip(numbers, forms, strict=True)
    ]
