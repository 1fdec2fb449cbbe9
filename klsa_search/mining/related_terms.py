"""Related terms, and the strongest terms of a document.

The term side of the spectrum, A = U Λ^½ Vᵀ, places term t at row t of V Λ^½: inner products of
these rows are AᵀA on the first eigenvectors, how two terms go together in documents, smoothed by
all the others [LSK §3, seen from the terms]. Terms need not meet in any document to be near.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Matrix
from klsa_search.errors import QueryError, TermNotFound
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.mining.similar import latent_space
from klsa_search.search.index import Index
from klsa_search.search.options import whole_number
from klsa_search.search.query.word_forms import commonest, written_forms


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
    return float(bm25.term_weights[term] * bm25.postings.step * saturation)


def _written(index: Index, position: int) -> dict[str, Counter[str]]:
    """How the document writes each of its terms."""
    (document,) = index.documents([position])
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for term, word in index.analyzer.written(f"{document.title}\n{document.text}"):
        forms[term][word] += 1
    return forms


DOUBT: Final = 3.0
"""Documents at which a term's cosine counts half.

A term of few documents lies where these happen to lie, and would be near to whatever they are
about: undamped, the first places go to terms of two or three documents.
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
    k = whole_number("k", k)
    if not isinstance(term, str):
        raise QueryError(f"term = {term!r} is not a text", field="term")
    asked = _numbers(index, term)
    space = term_places(index)
    place = space[asked].sum(axis=0)
    frequencies = index.arrays.bm25.frequencies
    cosines = _cosines(space, place) * (frequencies / (frequencies + DOUBT))
    cosines[frequencies < 2] = 0
    cosines[asked] = 0
    nearest, values = top_z(cosines, k)
    return tuple(
        RelatedTerm(
            word=word,
            term=index.arrays.vocabulary.terms[number],
            similarity=float(value),
            documents=int(frequencies[number]),
        )
        for number, value, word in zip(nearest, values, words_of(index, nearest), strict=True)
    )


def term_places(index: Index) -> Matrix:
    """Rows of w^p V Λ^½, each along its term's place: (V, m). Cost O(V · m). QueryError."""
    terms = latent_space(index).terms
    roots = np.sqrt(index.arrays.eigenvalues[: terms.shape[1]])
    return np.asarray(terms * roots.astype(np.float32))


def _numbers(index: Index, text: str) -> list[int]:
    terms = dict.fromkeys(index.analyzer.terms(text))
    numbers, common = index.arrays.vocabulary.numbers, set(index.arrays.common.tolist())
    known = [numbers[term] for term in terms if term in numbers and numbers[term] not in common]
    if known:
        return known
    held = not terms or any(term in numbers for term in terms)
    reason = "nothing is left of it but common words" if held else "no document contains it"
    raise TermNotFound(
        f"term = {text!r}: {reason} in index `{index.name}`; klsa-index analyze "
        "shows the terms of a text",
        field="term",
    )


def _cosines(space: Matrix, place: Matrix) -> npt.NDArray[np.float64]:
    """Not by BLAS, whose bits change with its threads."""
    lengths = np.sqrt(np.einsum("vm,vm->v", space, space, dtype=np.float64))
    lengths *= np.sqrt(np.einsum("m,m->", place, place, dtype=np.float64))
    products = np.einsum("vm,m->v", space, place, dtype=np.float64)
    cosines = np.divide(products, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return np.asarray(cosines)
