"""Terms → counts: how often each term, and each adjacent pair of terms, stands in each document."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.features.vocabulary import Vocabulary

_NUMBERS = npt.NDArray[np.int64]
_BLOCK = 1_000_000  # tokens counted at a time


@dataclass(frozen=True)
class TermCounts:
    """What a collection is after analysis.

    vocabulary  V terms, sorted
    matrix      (N, V) sparse, int32: f(t, d), columns in order within each row
    pairs       (N, P) sparse, int32: how often two terms stand side by side, in either order; only
                pairs of two different terms that at least two documents hold
    """

    vocabulary: Vocabulary
    matrix: sparse.csr_array
    pairs: sparse.csr_array

    @property
    def lengths(self) -> _NUMBERS:
        """dl(d): (N,) tokens in each document."""
        return np.asarray(self.matrix.sum(axis=1, dtype=np.int64)).ravel()

    @property
    def document_frequencies(self) -> _NUMBERS:
        """n_t: (V,) documents that hold each term."""
        return np.bincount(self.matrix.indices, minlength=len(self.vocabulary)).astype(np.int64)


class CountsBuilder:
    """Counts documents one at a time; holds 4 bytes a token until `finish`."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._tokens = array("i")
        self._ends = array("q", [0])
        self._breaks = array("q")  # tokens that begin a part: no pair across them

    def add(self, *parts: Sequence[str]) -> None:
        """Count the next document, given as the terms of its parts, such as title and text."""
        numbers = self._numbers
        for terms in parts:
            self._breaks.append(len(self._tokens))
            self._tokens.extend([numbers.setdefault(term, len(numbers)) for term in terms])
        self._ends.append(len(self._tokens))

    def finish(self) -> TermCounts:
        """Sort the vocabulary and count, a block of documents at a time.

        Cost O(T log T) for T tokens; above the result 16 bytes for each pair of a document and two
        adjacent terms, and some 60 bytes for each token of a block.
        """
        terms = sorted(self._numbers)
        renumber = np.empty(len(terms), dtype=np.int64)
        renumber[[self._numbers[term] for term in terms]] = np.arange(len(terms))
        tokens = np.frombuffer(self._tokens, dtype=np.int32)
        ends = np.array(self._ends, dtype=np.int64)
        # Tokens that have no pair with the one before them: first of a document, or of a part.
        begins = np.zeros(len(tokens) + 1, dtype=np.bool_)
        begins[ends[:-1]] = True
        begins[np.array(self._breaks, dtype=np.int64)] = True
        singles, pairs = [], []
        for first, last in _blocks(ends, len(terms)):
            within = slice(ends[first], ends[last])
            block = renumber[tokens[within]]
            documents = np.repeat(np.arange(last - first), np.diff(ends[first : last + 1]))
            counted = _counted(documents, block, last - first, len(terms))
            singles.append(replace(counted, columns=counted.columns.astype(np.int32)))
            left, right = block[:-1], block[1:]
            joined = ~begins[within][1:] & (left != right)
            keys = np.minimum(left, right) * len(terms) + np.maximum(left, right)
            pairs.append(
                _counted(documents[1:][joined], keys[joined], last - first, len(terms) ** 2)
            )
        return TermCounts(
            Vocabulary(terms),
            _stacked(singles, len(ends) - 1, len(terms)),
            _shared(pairs, len(ends) - 1),
        )


@dataclass(frozen=True)
class _Block:
    """Counts of a block of documents: entries by document, and by column within each.

    sizes  (documents,) entries of each
    """

    sizes: _NUMBERS
    columns: npt.NDArray[np.integer[Any]]
    counts: npt.NDArray[np.int32]


def _blocks(ends: _NUMBERS, terms: int) -> Iterator[tuple[int, int]]:
    """Cut the documents into runs of some `_BLOCK` tokens whose keys fit 63 bits."""
    most = max(1, 2**62 // max(terms, 1) ** 2)
    first, documents = 0, len(ends) - 1
    while first < documents:
        last = int(np.searchsorted(ends, ends[first] + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), first + most, documents)
        yield first, last
        first = last


def _counted(documents: _NUMBERS, columns: _NUMBERS, size: int, width: int) -> _Block:
    """Count equal (document, column) pairs."""
    width = max(width, 1)
    keys, counts = np.unique(documents * width + columns, return_counts=True)
    rows, distinct = np.divmod(keys, width)
    return _Block(np.bincount(rows, minlength=size), distinct, counts.astype(np.int32))


def _stacked(blocks: list[_Block], size: int, width: int) -> sparse.csr_array:
    """Put blocks below each other: (size, width)."""
    empty = np.zeros(0, dtype=np.int32)
    sizes = np.concatenate([np.zeros(1, dtype=np.int64), *(block.sizes for block in blocks)])
    columns = np.concatenate([empty, *(block.columns for block in blocks)])
    counts = np.concatenate([empty, *(block.counts for block in blocks)])
    matrix = sparse.csr_array((counts, columns, np.cumsum(sizes)), shape=(size, width))
    matrix.has_sorted_indices = True
    return matrix


def _shared(blocks: list[_Block], size: int) -> sparse.csr_array:
    """Stack blocks, columns numbered anew: those that at least two documents hold, in order."""
    keys = np.concatenate([np.zeros(0, dtype=np.int64), *(block.columns for block in blocks)])
    keys.sort()
    again = keys[1:] == keys[:-1]
    repeated = keys[1:][again]
    kept = repeated[np.concatenate(([True], repeated[1:] != repeated[:-1]))[: len(repeated)]]
    del keys, again, repeated
    for at, block in enumerate(blocks):
        columns = np.searchsorted(kept, block.columns)
        held = columns < len(kept)
        held[held] = kept[columns[held]] == block.columns[held]
        documents = np.repeat(np.arange(len(block.sizes)), block.sizes)[held]
        sizes = np.bincount(documents, minlength=len(block.sizes))
        blocks[at] = _Block(sizes, columns[held].astype(np.int32), block.counts[held])
    return _stacked(blocks, size, len(kept))
