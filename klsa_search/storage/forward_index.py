"""The forward index: the terms of each document in order, as codes of one byte or two.

    forward_codes.npy   uint8   codes of all documents
    forward_starts.npy  int64   (N + 1,) start of the codes of each document
    forward_ranks.npy   int32   (V,) rank of each term, the most frequent first

A document is the number of words in each of its parts but the last, then its words, part by part:
title, other searched fields, text. Code 0 is a word without a term, 1 and 2 are the first stop word
of the analyser, 2 in capitals, 3 and 4 the second, and so on to the 33rd; the 34th has 129 and 130.
Codes from 68 to 127, and from 2863 on, are ranks of terms. Codes are unsigned LEB128. So the
index gives the position of each word, stop words included, and the counts of terms.

A word takes a byte if it is one of 33 stop words or one of the 60 most frequent terms, two if it is
another stop word, and at most 5 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.core.array_types import DocIds, Integers, Numbers, SparseRows, ranks_of, starts_of
from klsa_search.core.field_weights import SearchedFields
from klsa_search.core.lazy import lazy_property
from klsa_search.kernels.counts import Block, TermCounts
from klsa_search.storage.arrays import ArrayWriter, open_array, write_arrays

if TYPE_CHECKING:
    from scipy import sparse

_FIRST, _SHORT_RANKS, _LATER = 68, 60, 2863  # first code, terms with short codes, code after these

Codes = npt.NDArray[np.uint8]
ForwardPart = tuple[Codes, Numbers]


def write_forward(generation: Path, blocks: Iterable[Block], counts: TermCounts) -> None:
    """Write the forward index of all blocks of documents. Cost: 3 ns a word."""
    matrix = counts.matrix
    ranks = ranks_of(np.bincount(matrix.indices, matrix.data, minlength=matrix.shape[1]))
    sizes = [np.zeros(1, np.int64)]
    with ArrayWriter(generation, "forward_codes", np.uint8) as writer:
        for block in blocks:
            codes, of_each = encoded(block, ranks)
            sizes.append(of_each)
            writer.append(codes)
    starts = np.cumsum(np.concatenate(sizes))
    write_arrays(generation, {"forward_starts": starts, "forward_ranks": ranks})


def codes_of(ranks: npt.NDArray[np.int32]) -> Numbers:
    """Return the codes of ranks of terms."""
    wide = ranks.astype(np.int64)
    return wide + np.where(wide < _SHORT_RANKS, _FIRST, _LATER - _SHORT_RANKS)


def encoded(block: Block, ranks: npt.NDArray[np.int32]) -> tuple[Codes, Numbers]:
    """Return the codes of documents of equally many parts, and their sizes. Cost: 3 ns a word."""
    return _native.encode_documents(block.words, block.lengths, ranks, len(block.parts))


class Forward:
    """Reads the forward index of documents.

    parts   codes of consecutive documents, and (n + 1,) the start of each; one after the other
    ranks   (V,) rank of each term
    fields  names and weights of the parts of a document
    built   that of the build, if it is extended
    """

    def __init__(
        self,
        parts: Sequence[ForwardPart],
        ranks: npt.NDArray[np.int32],
        fields: SearchedFields,
        built: Forward | None = None,
    ) -> None:
        self.parts, self.ranks, self.fields, self._built = tuple(parts), ranks, fields, built
        self.codes = _native.DocumentBytes(self.parts)
        self.words = _native.ForwardCodes(self.codes, len(fields.names))
        self._weights = np.array(fields.weights, np.int64)

    @classmethod
    def open(cls, generation: Path, fields: SearchedFields) -> Forward:
        """Open the forward index of a generation, memory-mapped."""
        codes, starts, ranks = (
            open_array(generation, f"forward_{name}") for name in ("codes", "starts", "ranks")
        )
        return cls([(codes, starts)], ranks, fields)

    def renumbered(self, numbers: Integers, terms: int) -> Forward:
        """Return the index with other term numbers; terms that it lacks have the last ranks.

        numbers  new numbers of its terms, distinct
        terms    V, number of terms in all
        Cost: O(V).
        """
        ranks = np.full(terms, -1, np.int32)
        ranks[numbers] = self.ranks
        ranks[ranks < 0] = np.arange(len(numbers), terms, dtype=np.int32)
        return Forward(self.parts, ranks, self.fields)

    def extended(self, part: ForwardPart, terms: int) -> Forward:
        """Return the forward index of these and later documents; later terms rank by number.

        terms  V, number of terms in all
        Cost: O(V).
        """
        later = np.arange(len(self.ranks), terms, dtype=np.int32)
        ranks = np.concatenate((self.ranks, later))
        return Forward((*self.parts, part), ranks, self.fields, self)

    @lazy_property
    def terms(self) -> npt.NDArray[np.int32]:
        """Return the term of each rank: (V,)."""
        if self._built is None:
            return np.argsort(self.ranks).astype(np.int32)
        before = self._built.terms
        return np.concatenate((before, np.arange(len(before), len(self.ranks), dtype=np.int32)))

    def counts(self, documents: DocIds) -> sparse.csr_array:
        """Return f(t,d) of some documents: (n, V) sparse float32, terms ascending.

        Cost: 30 ns a word. Memory: 16 bytes a pair of term and document.
        """
        from scipy import sparse

        starts, terms, counts, shape = self.rows(documents)
        return sparse.csr_array((counts, terms, starts), shape=shape)

    def rows(self, documents: DocIds) -> SparseRows:
        """Return the arrays of `counts`."""
        terms, counts, sizes = self.words.counts(_as_int64(documents), self.terms, self._weights)
        starts = starts_of(sizes)
        return SparseRows(starts, terms, counts, (len(documents), len(self.ranks)))

    def term_counts(self, term: int, documents: DocIds) -> Numbers:
        """Return f(t,d) of one term in some documents: (n,). Cost: 3 ns a word."""
        (code,) = codes_of(self.ranks[[term]]).tolist()
        return self.words.count_term(_as_int64(documents), code, self._weights)

    def part_counts(self, term: int, documents: DocIds) -> Numbers:
        """Return f(t,d) of one term in each part of some documents: (n, parts).

        In the text, the last part, only if another part contains it. Cost: 3 ns a word of the parts
        before the text, and of the texts that are counted.
        """
        (code,) = codes_of(self.ranks[[term]]).tolist()
        counts = self.words.count_parts(_as_int64(documents), code)
        return counts.reshape(len(documents), len(self.fields.names))


def _as_int64(documents: DocIds) -> Numbers:
    return np.ascontiguousarray(documents, np.int64)
