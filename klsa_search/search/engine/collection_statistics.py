"""Statistics of a collection in partitions, so that each weighs words by all documents.

The files of the index have the counts of all terms of the build, in all partitions
(`storage.partitions`). Partitions exchange what later writes have changed: `CountChanges`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.kernels.postings import Postings
from klsa_search.kernels.query_kernel import DocumentCounts
from klsa_search.kernels.vector_space import VectorSpace, VectorSpaces
from klsa_search.kernels.vocabulary import JoinedVocabulary, Vocabulary
from klsa_search.kernels.weighting import live_length
from klsa_search.storage.partitions import CollectionTerms, number_of_partition

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
    passages    those of its passages, if documents are divided
    """

    documents: int
    words: int
    changes: CountChanges
    dimensions: Mapping[str, int]
    passages: PartitionStatistics | None = None


@dataclass(frozen=True, eq=False)
class CollectionStatistics:
    """Statistics of the live documents of all partitions.

    documents   their number
    length      their quantised mean length
    changes     of the counts of terms since the build
    dimensions  of the spaces of vectors
    passages    those of the passages, if documents are divided
    """

    documents: int
    length: float
    changes: CountChanges
    dimensions: Mapping[str, int]
    passages: CollectionStatistics | None = None

    @classmethod
    def of(
        cls, parts: Sequence[PartitionStatistics], built_lengths: Sequence[float] = (1.0, 1.0)
    ) -> CollectionStatistics:
        """Return the statistics of all partitions.

        built_lengths  quantised mean length at the build, which stays until the mean is more than a
                       step away; then that of passages, if documents are divided. A restricted
                       view needs none
        """
        documents, words = sum(part.documents for part in parts), sum(part.words for part in parts)
        length = live_length(built_lengths[0], words / max(documents, 1))
        changes = _sum_of_changes([part.changes for part in parts])
        dimensions = dict(item for part in parts for item in part.dimensions.items())
        of_passages = [part.passages for part in parts if part.passages is not None]
        passages = cls.of(of_passages, built_lengths[1:]) if of_passages else None
        return cls(documents, length, changes, dimensions, passages)

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
    local, remote  positions of terms that the training lacks: of this partition, and of others only
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
        collection, is_stored = self.collection, self.numbers >= 0
        positions = np.where(is_stored, self.numbers - len(collection.trained), -1)
        return JoinedVocabulary(
            collection.trained, collection.terms, self.local, self.words, self.remote, positions
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


@dataclass(frozen=True, eq=False)
class PartitionTerms:
    """The terms of all partitions, as one of them numbers them.

    collection  the terms of all partitions
    local       (n,) int32, positions of the terms of this partition that the training lacks
    later_numbers  in all partitions, of terms of later writes; -1 for new ones
    passages    the terms of passages, if documents are divided
    """

    collection: CollectionTerms
    local: npt.NDArray[np.int32]
    later_numbers: dict[str, int] = field(default_factory=dict)
    passages: PartitionTerms | None = None

    @classmethod
    def of(cls, collection: CollectionTerms, partition: Path) -> PartitionTerms:
        """Return the terms as the partition in a folder numbers them."""
        local = collection.positions_of(number_of_partition(partition))
        of_passages = collection.passages
        passages = None if of_passages is None else cls.of(of_passages, partition)
        return cls(collection, local, passages=passages)

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary of the partition at the build."""
        return JoinedVocabulary(self.collection.trained, self.collection.terms, self.local)

    def changes(self, built: Postings, now: DocumentCounts, terms: Sequence[str]) -> CountChanges:
        """Return how counts differ from those of the build. Cost: O(V), and terms of later writes.

        now    counts of the terms of the partition
        terms  these
        """
        size = len(built.frequencies)
        frequencies, occurrences = now.frequencies.copy(), now.occurrences.copy()
        frequencies[:size] -= built.frequencies
        occurrences[:size] -= built.occurrences
        changed = np.flatnonzero((frequencies != 0) | (occurrences != 0))
        frequencies, occurrences = frequencies[changed], occurrences[changed]
        words = [terms[number] for number in changed[changed >= size].tolist()]
        numbers = np.concatenate((self._numbers(changed[changed < size]), self._numbers_of(words)))
        is_known = numbers >= 0
        pairs = zip(frequencies[~is_known].tolist(), occurrences[~is_known].tolist(), strict=True)
        new = (word for word in words if self.later_numbers[word] < 0)
        return CountChanges(
            numbers[is_known],
            frequencies[is_known],
            occurrences[is_known],
            dict(zip(new, pairs, strict=True)),
        )

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

    @property
    def of_passages(self) -> Weighing:
        """Return the same for the passages of divided documents."""
        terms, statistics = self.terms.passages, self.statistics.passages
        assert terms is not None
        assert statistics is not None
        return Weighing(terms, statistics)
