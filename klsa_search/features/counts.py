"""Terms → counts: how often each term, and each adjacent pair of terms, stands in each document."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.features.vocabulary import Vocabulary

_NUMBERS = npt.NDArray[np.int64]


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
        """Sort the vocabulary and count. Cost O(T log T) for T tokens, about 50 bytes each."""
        terms = sorted(self._numbers)
        renumber = np.empty(len(terms), dtype=np.int64)
        renumber[[self._numbers[term] for term in terms]] = np.arange(len(terms))
        tokens = renumber[np.frombuffer(self._tokens, dtype=np.int32)]
        ends = np.array(self._ends, dtype=np.int64)
        documents = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        return TermCounts(
            Vocabulary(terms),
            _counted(documents, tokens, (len(ends) - 1, len(terms))),
            self._pairs(documents, tokens, len(terms)),
        )

    def _pairs(self, documents: _NUMBERS, tokens: _NUMBERS, terms: int) -> sparse.csr_array:
        size = len(self._ends) - 1
        left, right = tokens[:-1], tokens[1:]
        joined = (documents[:-1] == documents[1:]) & (left != right)
        breaks = np.array(self._breaks, dtype=np.int64)
        joined[breaks[(breaks > 0) & (breaks < len(tokens))] - 1] = False
        keys = (np.minimum(left, right) * terms + np.maximum(left, right))[joined]
        distinct, columns = np.unique(keys, return_inverse=True)
        counts = _counted(documents[:-1][joined], columns, (size, len(distinct)))
        shared = np.bincount(counts.indices, minlength=len(distinct)) >= 2
        return sparse.csr_array(counts[:, np.flatnonzero(shared)])


def _counted(documents: _NUMBERS, columns: _NUMBERS, shape: tuple[int, int]) -> sparse.csr_array:
    """Count equal (document, column) pairs into a matrix with columns in order."""
    keys, counts = np.unique(documents * max(shape[1], 1) + columns, return_counts=True)
    rows, indices = np.divmod(keys, max(shape[1], 1))
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=shape[0]))))
    matrix = sparse.csr_array(
        (counts.astype(np.int32), indices.astype(np.int32), starts.astype(np.int64)), shape=shape
    )
    matrix.has_sorted_indices = True
    return matrix
