"""Size of a collection in the figures that decide what a build costs, counted or estimated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from klsa_search.features.counts import TermCounts


@dataclass(frozen=True)
class Shape:
    """Size of a collection, counted or estimated.

    documents       N, number of documents
    stored          bytes of the stored documents and of the forward index
    tokens          number of terms in all documents, with repetitions
    terms           V, number of different terms
    non_zeros       number of document-term pairs
    pairs           P, number of adjacent term pairs that at least two documents contain
    pair_non_zeros  number of pairs of a document and an adjacent term pair
    words           number of words in all documents, stop words included
    columns         bytes of the filterable metadata fields
    texts           number of distinct texts of keyword fields
    """

    documents: int
    stored: int
    tokens: int
    terms: int
    non_zeros: int
    pairs: int
    pair_non_zeros: int
    words: int
    columns: int = 0
    texts: int = 0

    @classmethod
    def of(cls, counts: TermCounts, stored: int, *, columns: int = 0, texts: int = 0) -> Shape:
        """Return the shape of counted documents. Cost: O(non_zeros)."""
        return cls(
            documents=counts.matrix.shape[0],
            stored=stored,
            tokens=counts.tokens,
            terms=counts.matrix.shape[1],
            non_zeros=counts.matrix.nnz,
            pairs=counts.pairs.shape[1],
            pair_non_zeros=counts.pairs.nnz,
            words=counts.words,
            columns=columns,
            texts=texts,
        )

    @property
    def features(self) -> int:
        """Return the non-zeros of the features: terms and adjacent pairs."""
        return self.non_zeros + self.pair_non_zeros


def shape_of_first(counts: TermCounts, stored: int, documents: int) -> Shape:
    """Shape of the first n documents of a counted collection, as if there were no more."""
    entries = int(counts.matrix.indptr[documents])
    holders = np.bincount(counts.pairs.indices[: int(counts.pairs.indptr[documents])])
    shared = holders[holders > 1]
    tokens = int(counts.matrix.data[:entries].sum())
    return Shape(
        documents=documents,
        stored=round(stored * documents / max(counts.matrix.shape[0], 1)),
        tokens=tokens,
        terms=len(np.unique(counts.matrix.indices[:entries])),
        non_zeros=entries,
        pairs=len(shared),
        pair_non_zeros=int(shared.sum()),
        words=round(counts.words * tokens / max(int(counts.matrix.data.sum()), 1)),
    )


def foretell(few: Shape, many: Shape, documents: int) -> Shape:
    """Foretell the shape of N documents from those of the first n/4 and of the first n.

    What each document brings of its own (bytes, words, entries, values of fields) is taken to go on
    as it was.
    Vocabulary and pairs follow Heaps' law, a · N^β with 0 <= β <= 1, through both shapes. So do
    the tokens that make no pair which a second document holds; the others do.
    """
    if documents <= many.documents or not many.tokens:
        return many
    scale = documents / many.documents
    tokens = round(many.tokens * scale)

    def grown(of: Callable[[Shape], int]) -> int:
        return _heaps((few.documents, of(few)), (many.documents, of(many)), documents)

    return Shape(
        documents=documents,
        stored=round(many.stored * scale),
        tokens=tokens,
        terms=grown(lambda shape: shape.terms),
        non_zeros=round(many.non_zeros * scale),
        pairs=grown(lambda shape: shape.pairs),
        pair_non_zeros=tokens - grown(lambda shape: shape.tokens - shape.pair_non_zeros),
        words=round(many.words * scale),
        columns=round(many.columns * scale),
        texts=round(many.texts * scale),
    )


def _heaps(one: tuple[int, int], other: tuple[int, int], documents: int) -> int:
    """Prolong a · N^β through two points (documents, amount)."""
    (first, few), (last, many) = one, other
    if not few or not many or first == last:
        return round(many * documents / last)
    slope = math.log(many / few) / math.log(last / first)
    return round(many * math.pow(documents / last, min(max(slope, 0.0), 1.0)))
