"""What a document is about: its own terms that weigh most."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from klsa_search.search.index import Index
from klsa_search.search.language.forms import commonest
from klsa_search.search.parameters import whole_number


@dataclass(frozen=True, slots=True, kw_only=True)
class StrongTerm:
    """Term of a document.

    word       the term as the document writes it most often
    term       the term as it is indexed
    weight     its part of the BM25 score of the document, for a query that contains it once
    count      number of occurrences, those in the title times the title weight
    documents  number of documents that contain it
    """

    word: str
    term: str
    weight: float
    count: int
    documents: int


def strongest_terms(
    index: Index,
    id: str,  # noqa: A002 - the field's own name
    k: int = 10,
) -> tuple[StrongTerm, ...]:
    """Return the k terms of a document with the highest BM25 weights, without stop words.

    Ties are in alphabetical order. Cost: some milliseconds, for the postings of the terms and the
    analysis of the text. DocumentNotFound; QueryError.

    >>> [strong.word for strong in strongest_terms(index, "tyre", 3)]
    ['tyres', 'slip', 'Bald']
    >>> strongest_terms(index, "tyre", 1)
    (StrongTerm(word='tyres', term='tyre', weight=..., count=3, documents=3),)
    """
    k = whole_number("k", k)
    (position,) = index.doc_ids([id])
    snapshot = index.arrays
    row = snapshot.content_counts_of(np.array([position]))
    weights = np.array([_addend(index, term, position) for term in row.indices.tolist()])
    names = [snapshot.vocabulary.terms[term] for term in row.indices.tolist()]
    order = sorted(range(len(names)), key=lambda at: (-weights[at], names[at]))[:k]
    written = _written(index, position)
    return tuple(
        StrongTerm(
            word=commonest(written[names[at]]) if names[at] in written else names[at],
            term=names[at],
            weight=float(weights[at]),
            count=int(row.data[at]),
            documents=int(snapshot.bm25.frequencies[row.indices[at]]),
        )
        for at in order
    )


def _addend(index: Index, term: int, position: int) -> float:
    """What a term adds to the score of a document that holds it."""
    bm25 = index.arrays.bm25
    documents, saturations = bm25.postings.of_term(term)
    (saturation,) = saturations[documents == position]
    return float(bm25.worth[term] * bm25.postings.step * saturation)


def _written(index: Index, position: int) -> dict[str, Counter[str]]:
    """How the document writes each of its terms."""
    (document,) = index.documents([position])
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for term, word in index.analyzer.written(f"{document.title}\n{document.text}"):
        forms[term][word] += 1
    return forms
