"""What is read of the seeds of a query: their rows of D, and features.

In an index of several partitions each finds its best documents (`_native.LocalSeeds`). The best of
all give the seeds of the query and the documents whose words count for coverage. By these, every
partition then scores its own documents (`_native.SharedSeeds`). With one partition, scores have the
same bits. Documents are named by ordinals, which are the same in all partitions: see
`Snapshot.ordinals_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds
from klsa_search.lowrank.sparse_expansion import LEVELS, SegmentedExpansion

FIRST_LATER: Final = 2**40
"""Least ordinal of documents written after the build: more than an index has documents."""


def distinct_known(numbers: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the distinct terms of a query that documents contain, in its order: (n,).

    Partitions number some terms differently, but these are the same words in all of them.
    """
    return np.array(list(dict.fromkeys(term for term in numbers if term >= 0)), np.int64)


class DocFeatures(NamedTuple):
    """Features of some documents.

    starts   (n + 1,) offsets of each document in `entries`
    entries  of a feature: its number in the upper 24 bits, a level in the lower 8
    document_scalars  (n, 3) float32: their step, S and SΦμ
    """

    starts: npt.NDArray[np.int64]
    entries: npt.NDArray[np.uint32]
    document_scalars: npt.NDArray[np.float32]

    @classmethod
    def of(cls, expansion: SegmentedExpansion, documents: DocIds) -> DocFeatures:
        """Return the features of documents of an index. Cost: their entries."""
        return cls(*expansion.features(documents), expansion.document_scalars(documents))

    def at(self, position: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return numbers and values of the features of one of the documents."""
        entries = self.entries[self.starts[position] : self.starts[position + 1]]
        levels = (entries & np.uint32(LEVELS)).astype(np.float64)
        return (entries >> np.uint32(8)).astype(np.int64), self.document_scalars[
            position, 0
        ] * levels


class SeedRows(NamedTuple):
    """Rows of D of n documents, with their entries in all partitions.

    documents  (n, w) ordinals of the entries, strongest first, then reverse entries
    levels     (n, w) of the entries, 0 for none
    steps      (n, 2) value of one level, and of one level of reverse entries
    width      number of entries of a row that are not reverse entries
    near       number of entries of a row that count for coverage, the first ones
    """

    documents: npt.NDArray[np.int64]
    levels: npt.NDArray[np.uint8]
    steps: npt.NDArray[np.float32]
    width: int
    near: int

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """Return the value of one level of each entry: (n, w)."""
        reverse = self.documents.shape[1] - self.width
        return np.repeat(self.steps, (self.width, reverse), axis=1)
