"""Statistics of a collection in partitions, so that each weighs words by all documents.

The files of the index have the counts of all terms of the build, in all partitions
(`storage.partitions`). Partitions exchange what later writes have changed:
`partition_terms` says how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klsa_search.kernels import bm25
from klsa_search.kernels.query_kernel import DocumentCounts
from klsa_search.kernels.vector_space import VectorSpace, VectorSpaces
from klsa_search.kernels.vocabulary import JoinedVocabulary, Vocabulary
from klsa_search.storage.partitions import CollectionTerms

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CountChanges:
    """How the counts of terms differ from those of the build.

    terms        (n,) numbers in all partitions of terms of the build
    frequencies  (n,) their document frequencies, less those of the build
    occurrences  (n,) likewise
    later        document frequency and occurrences of each term that the build does not have
    """

    terms: _Numbers
    frequencies: _Numbers
    occurrences: _Numbers
    later: Mapping[str, tuple[int, int]]


def _sum_of_changes(parts: Sequence[CountChanges]) -> CountChanges:
    """Return the sum of the changes of all partitions. Cost: O(changes)."""
    terms, positions = np.unique(
        np.concatenate([part.terms for part in parts]), return_inverse=True
    )
    sums = np.zeros((2, len(terms)), np.int64)
    np.add.at(sums[0], positions, np.concatenate([part.frequencies for part in parts]))
    np.add.at(sums[1], positions, np.concatenate([part.occurrences for part in parts]))
    frequencies, occurrences = Counter[str](), Counter[str]()
    for part in parts:
        for term, (frequency, times) in part.later.items():
            frequencies[term] += frequency
            occurrences[term] += times
    later = {term: (count, occurrences[term]) for term, count in frequencies.items()}
    return CountChanges(terms, sums[0], sums[1], later)


@dataclass(frozen=True, eq=False)
class PartitionStatistics:
    """Statistics of the live documents of one partition.

    documents   their number
    words       sum of their lengths
    changes     of the counts of its terms since the build
    dimensions  of its spaces of vectors
    """

    documents: int
    words: int
    changes: CountChanges
    dimensions: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class CollectionStatistics:
    """Statistics of the live documents of all partitions.

    documents   their number
    length      their quantised mean length
    changes     of the counts of terms since the build
    dimensions  of the spaces of vectors
    """

    documents: int
    length: float
    changes: CountChanges
    dimensions: Mapping[str, int]

    @classmethod
    def of(cls, parts: Sequence[PartitionStatistics], built_length: float) -> CollectionStatistics:
        """Return the statistics of all partitions.

        built_length  quantised mean length at the build, which stays until the mean is more than a
                      step away
        """
        documents, words = sum(part.documents for part in parts), sum(part.words for part in parts)
        length = bm25.live_length(built_length, words / max(documents, 1))
        changes = _sum_of_changes([part.changes for part in parts])
        dimensions = dict(item for part in parts for item in part.dimensions.items())
        return cls(documents, length, changes, dimensions)

    def spaces(self, spaces: VectorSpaces) -> VectorSpaces:
        """Return the spaces of vectors of a partition, also those that only others have."""
        empty = {name: VectorSpace(name, size, ()) for name, size in self.dimensions.items()}
        return {**empty, **spaces}


@dataclass(frozen=True, eq=False)
class TermNumbering:
    """The terms of all partitions in one state, as one of them numbers them.

    Terms of the build of the partition come first, then `words`, then terms of the build that only
    other partitions have.

    collection  the terms of all partitions
    local, remote  places of terms that the training lacks: of this partition, and of others only
    words        terms of later writes: of this partition, then of others
    numbers      (n,) of `words` in all partitions; -1 for new ones
    """

    collection: CollectionTerms
    local: npt.NDArray[np.int32]
    words: Sequence[str]
    numbers: _Numbers
    remote: npt.NDArray[np.int32]

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the terms."""
        return JoinedVocabulary(
            self.collection.trained, self.collection.terms, self.local, self.words, self.remote
        )

    def counts(self, statistics: CollectionStatistics) -> DocumentCounts:
        """Return the statistics of the terms: of the state, or of some of its documents.

        Cost: O(V).
        """
        changes, trained = statistics.changes, len(self.collection.trained)
        pairs = np.array([changes.later.get(word, (0, 0)) for word in self.words], np.int64)
        counts = []
        for built, changed, of_later in zip(
            self.collection.counts,
            (changes.frequencies, changes.occurrences),
            pairs.reshape(-1, 2).T,
            strict=True,
        ):
            sums = np.append(built, 0)  # -1, the number of new words, is the last
            sums[changes.terms] += changed
            of_words = sums[self.numbers] + of_later
            untrained = sums[trained:]
            parts = sums[:trained], untrained[self.local], of_words, untrained[self.remote]
            counts.append(np.concatenate(parts))
        return DocumentCounts(statistics.documents, *counts)
