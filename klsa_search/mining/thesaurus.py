"""The corpus's own thesaurus: terms that lie near a term in the latent space.

The term side of the spectrum, A = U Λ^½ Vᵀ, places term t at row t of V Λ^½: inner products of
these rows are AᵀA on the first eigenvectors, how two terms go together in documents, smoothed by
all the others [LSK §3, seen from the terms]. Terms need not meet in any document to be near.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Matrix
from klsa_search.errors import QueryError, TermNotFound
from klsa_search.expansion.threshold import top_z
from klsa_search.mining.asking import latent_space
from klsa_search.mining.words import words_of
from klsa_search.search.index import Index
from klsa_search.search.parameters import whole_number

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
