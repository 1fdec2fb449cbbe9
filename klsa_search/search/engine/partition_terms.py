"""The terms of one partition among those of all, and its statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.errors import IndexDamaged
from klsa_search.kernels.vocabulary import JoinedVocabulary, Vocabulary
from klsa_search.search.engine.collection_statistics import (
    CollectionStatistics,
    CountChanges,
    PartitionStatistics,
    TermNumbering,
)
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.storage.current import step_for
from klsa_search.storage.names import MANIFEST
from klsa_search.storage.partitions import CollectionTerms, number_of_partition

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PartitionTerms:
    """The terms of all partitions, as one of them numbers them.

    collection  the terms of all partitions
    local       (n,) int32, places of the terms of this partition that the training lacks
    later_numbers  in all partitions, of terms of later writes; -1 for new ones
    """

    collection: CollectionTerms
    local: npt.NDArray[np.int32]
    later_numbers: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, collection: CollectionTerms, partition: Path) -> PartitionTerms:
        """Return the terms as the partition in a folder numbers them."""
        return cls(collection, collection.positions_of(number_of_partition(partition)))

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary of the partition at the build."""
        return JoinedVocabulary(self.collection.trained, self.collection.terms, self.local)

    def statistics(self, snapshot: Snapshot) -> PartitionStatistics:
        """Return the statistics of the partition. Cost: O(V), and its terms of later writes.

        IndexDamaged if its postings have another number of terms than its vocabulary.
        """
        counts, built = snapshot.query_kernel.local_counts, len(self.vocabulary)
        postings = snapshot.query_kernel.postings.parts[0].postings
        if len(postings.frequencies) != built:
            file = snapshot.generation / MANIFEST
            raise IndexDamaged(f"`{file}` is not of the build of its index; {step_for(file)}")
        frequencies, occurrences = counts.frequencies.copy(), counts.occurrences.copy()
        frequencies[:built] -= postings.frequencies
        occurrences[:built] -= postings.occurrences
        changed = np.flatnonzero((frequencies != 0) | (occurrences != 0))
        frequencies, occurrences = frequencies[changed], occurrences[changed]
        terms = snapshot.vocabulary.terms
        words = [terms[number] for number in changed[changed >= built].tolist()]
        numbers = np.concatenate((self._numbers(changed[changed < built]), self._numbers_of(words)))
        is_known = numbers >= 0
        pairs = zip(frequencies[~is_known].tolist(), occurrences[~is_known].tolist(), strict=True)
        new = (word for word in words if self.later_numbers[word] < 0)
        changes = CountChanges(
            numbers[is_known],
            frequencies[is_known],
            occurrences[is_known],
            dict(zip(new, pairs, strict=True)),
        )
        lengths = snapshot.lengths[snapshot.live_docs()[: len(snapshot.lengths)]]
        words_ = int(lengths.sum(dtype=np.int64))
        dimensions = {name: space.dimension for name, space in snapshot.vectors.items()}
        return PartitionStatistics(counts.documents, words_, changes, dimensions)

    def numbering(self, statistics: CollectionStatistics, words: Sequence[str]) -> TermNumbering:
        """Return how this partition numbers the terms of all partitions.

        words  later terms of the partition
        Cost: O(V), and the terms of later writes.
        """
        words_here, trained = set(words), len(self.collection.trained)
        words = [*words, *(word for word in statistics.changes.later if word not in words_here)]
        numbers = self._numbers_of(words)
        is_elsewhere = np.ones(len(self.collection.terms), np.bool_)
        is_elsewhere[self.local] = False
        is_elsewhere[numbers[numbers >= 0] - trained] = False
        remote = np.flatnonzero(is_elsewhere).astype(np.int32)
        return TermNumbering(self.collection, self.local, words, numbers, remote)

    def _numbers(self, terms_: _Numbers) -> _Numbers:
        """Return the numbers in all partitions of terms of the build."""
        trained = len(self.collection.trained)
        is_later, numbers = terms_ >= trained, terms_.copy()
        numbers[is_later] = trained + self.local[terms_[is_later] - trained]
        return numbers

    def _numbers_of(self, words: Sequence[str]) -> _Numbers:
        """Return the numbers in all partitions of terms of later writes; -1 for new ones.

        A word of the training is never among them.
        """
        for word in words:
            if word not in self.later_numbers:
                position = self.collection.terms.find(word)
                self.later_numbers[word] = (
                    -1 if position is None else len(self.collection.trained) + position
                )
        return np.fromiter(map(self.later_numbers.__getitem__, words), np.int64, len(words))


class Weighing(NamedTuple):
    """What a partition needs to weigh words by all documents."""

    terms: PartitionTerms
    statistics: CollectionStatistics
