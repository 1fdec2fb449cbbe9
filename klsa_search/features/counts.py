"""Terms → counts: how often each term stands in each document."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.features.vocabulary import Vocabulary


@dataclass(frozen=True)
class TermCounts:
    """What a collection is after analysis.

    vocabulary  V terms, sorted
    matrix      (N, V) sparse, int32: f(t, d), columns in order within each row
    """

    vocabulary: Vocabulary
    matrix: sparse.csr_array

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """dl(d): (N,) tokens in each document."""
        return np.asarray(self.matrix.sum(axis=1, dtype=np.int64)).ravel()

    @property
    def document_frequencies(self) -> npt.NDArray[np.int64]:
        """n_t: (V,) documents that hold each term."""
        return np.bincount(self.matrix.indices, minlength=len(self.vocabulary)).astype(np.int64)


class CountsBuilder:
    """Counts documents one at a time; holds 8 bytes a distinct (term, document) pair."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._columns = array("i")
        self._counts = array("i")
        self._ends = array("q", [0])

    def add(self, terms: Iterable[str]) -> None:
        """Count the next document."""
        numbers = self._numbers
        counted = Counter(terms)
        self._columns.extend([numbers.setdefault(term, len(numbers)) for term in counted])
        self._counts.extend(counted.values())
        self._ends.append(len(self._columns))

    def finish(self) -> TermCounts:
        """Sort the vocabulary and number the columns by it. Cost O(nnz + V log V)."""
        terms = sorted(self._numbers)
        renumber = np.empty(len(terms), dtype=np.int32)
        for number, term in enumerate(terms):
            renumber[self._numbers[term]] = number
        matrix = sparse.csr_array(
            (
                np.array(self._counts, dtype=np.int32),
                renumber[np.array(self._columns, dtype=np.int32)],
                np.array(self._ends, dtype=np.int64),
            ),
            shape=(len(self._ends) - 1, len(terms)),
        )
        matrix.sort_indices()
        return TermCounts(Vocabulary(terms), matrix)
