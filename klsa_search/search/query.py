"""A query as the kernels see it: numbers of its terms, and how often each was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klsa_search.features import Vocabulary


@dataclass(frozen=True)
class QueryTerms:
    """The known terms of a query.

    numbers  (n,) term numbers, ascending
    counts   (n,) float32, f(t, q)
    """

    numbers: npt.NDArray[np.int64]
    counts: npt.NDArray[np.float32]

    @classmethod
    def of(cls, terms: Iterable[str], vocabulary: Vocabulary) -> QueryTerms:
        """Look the terms up; those the collection does not hold are left out."""
        known = vocabulary.numbers
        counted = sorted(Counter(known[term] for term in terms if term in known).items())
        return cls(
            np.array([number for number, _ in counted], dtype=np.int64),
            np.array([count for _, count in counted], dtype=np.float32),
        )
