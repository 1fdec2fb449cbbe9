"""Related terms, and the strongest terms of a document.

The spectrum A = U Λ^½ Vᵀ gives term t the vector of row t of V Λ^½. Inner products of these vectors
are AᵀA on the first eigenvectors: how often two terms occur together, smoothed by all others
[LSK §3, for terms]. Related terms need not occur in the same document.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.searched_text import searched_texts
from klsa_search.collection.model import Document
from klsa_search.core.arguments import checked_argument
from klsa_search.core.array_types import Matrix
from klsa_search.errors import TermNotFound
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.index import Index
from klsa_search.search.query.term_dictionary import (
    most_frequent_form,
    surface_forms_of,
    usages_of,
    written_forms,
)
from klsa_search.search.ranking.parameters import checked_integer


def words_of(index: Index, terms: Iterable[int]) -> list[str]:
    """Return the most frequent written form of each term number, or the term itself if none.

    For counts and cost see `written_forms`.
    """
    numbers, arrays = [int(term) for term in terms], index.arrays

    def documents_at(rows: Iterable[int]) -> list[Document]:
        return index.documents_at(arrays.doc_ids_at(np.fromiter(rows, np.int64)))

    forms = map(written_forms, usages_of(arrays, index.analyzer, documents_at, numbers))
    names = arrays.vocabulary.terms
    return [
        most_frequent_form(counts) if counts else names[number]
        for number, counts in zip(numbers, forms, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrongTerm:
    """Term of a document.

    word       the term as the document writes it most often
    term       the term as it is indexed
    weight     its part of the BM25 score of the document, for a query that contains it once
    count      number of occurrences, times the weights of their fields
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
    k = checked_integer("k", k)
    doc_ids, snapshot = index.doc_ids([id]), index.arrays
    row = snapshot.rows_of(doc_ids)
    counts = snapshot.content_counts_of(row)
    weights = np.array([_score(index, term, int(row[0])) for term in counts.indices.tolist()])
    names = [snapshot.vocabulary.terms[term] for term in counts.indices.tolist()]
    order = sorted(range(len(names)), key=lambda at: (-weights[at], names[at]))[:k]
    (document,) = index.documents_at(doc_ids)
    text = "\n".join(searched_texts(document, index.settings.searched_fields))
    written = surface_forms_of(index.analyzer, text, {names[at] for at in order})
    return tuple(
        StrongTerm(
            word=most_frequent_form(written[names[at]]) if names[at] in written else names[at],
            term=names[at],
            weight=float(weights[at]),
            count=int(counts.data[at]),
            documents=int(snapshot.query_kernel.counts.frequencies[counts.indices[at]]),
        )
        for at in order
    )


def _score(index: Index, term: int, row: int) -> float:
    bm25 = index.arrays.query_kernel
    documents, saturations = bm25.postings.of_term(term)
    (saturation,) = saturations[documents == row]
    (weight,) = bm25.term_weights([term])
    return float(weight * bm25.postings.step * saturation)


DAMPING: Final = 3.0
"""Number of documents for which a term's cosine is halved.

Vectors of rare terms depend on the few documents that contain them, and are close to any of their
subjects: without damping, terms of two or three documents come first.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedTerm:
    """Term that is related to the queried one.

    word        the term as documents write it
    term        the term as it is indexed
    similarity  cosine of the two in the latent space, times n / (n + 3)
    documents   n, the number of documents that contain it
    """

    word: str
    term: str
    similarity: float
    documents: int


def related(index: Index, term: str, k: int = 10) -> tuple[RelatedTerm, ...]:
    """Return the k terms most related to a word, or to the sum of several, best first.

    Stop words and words that no document contains are ignored; TermNotFound if no other is left.
    Terms of a single document are not returned. Ties are in alphabetical order. Cost: O(V · m) for
    V terms and m dimensions. QueryError.

    >>> [near.word for near in related(index, "tyre", 3)]
    ['Bald', 'roads', 'wet']
    >>> related(index, "tyre", 1)
    (RelatedTerm(word='Bald', term='bald', similarity=..., documents=3),)
    """
    k = checked_integer("k", k)
    numbers = _numbers(index, checked_argument("term", term, str))
    vectors = term_vectors(index)
    query = vectors[numbers].sum(axis=0)
    frequencies = index.arrays.query_kernel.counts.frequencies
    cosines = _cosines(vectors, query) * (frequencies / (frequencies + DAMPING))
    cosines[frequencies < 2] = 0
    cosines[numbers] = 0
    nearest, values = largest_entries(cosines, k)
    return tuple(
        RelatedTerm(
            word=word,
            term=index.arrays.vocabulary.terms[number],
            similarity=float(value),
            documents=int(frequencies[number]),
        )
        for number, value, word in zip(nearest, values, words_of(index, nearest), strict=True)
    )


def term_vectors(index: Index) -> Matrix:
    """Return w^p V Λ^½, one row a term: (V, m). Cost: O(V · m). Raise QueryError."""
    terms = index.arrays.latent.terms
    roots = np.sqrt(index.arrays.eigenvalues[: terms.shape[1]])
    return np.asarray(terms * roots.astype(np.float32))


def _numbers(index: Index, text: str) -> list[int]:
    terms = dict.fromkeys(chain.from_iterable(index.analyzer.readings(text)))
    numbers, common = index.arrays.vocabulary.numbers, set(index.arrays.common.tolist())
    known_numbers = [
        numbers[term] for term in terms if term in numbers and numbers[term] not in common
    ]
    if known_numbers:
        return known_numbers
    all_common = not terms or any(term in numbers for term in terms)
    reason = "nothing is left of it but common words" if all_common else "no document contains it"
    raise TermNotFound(
        f"term = {text!r}: {reason} in index `{index.name}`; klsa-index analyze "
        "shows the terms of a text",
        field="term",
    )


def _cosines(vectors: Matrix, query: Matrix) -> npt.NDArray[np.float64]:
    """Return cosines without BLAS, whose result depends on the number of threads."""
    lengths = np.sqrt(np.einsum("vm,vm->v", vectors, vectors, dtype=np.float64))
    lengths *= np.sqrt(np.einsum("m,m->", query, query, dtype=np.float64))
    products = np.einsum("vm,m->v", vectors, query, dtype=np.float64)
    cosines = np.divide(products, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return np.asarray(cosines)
