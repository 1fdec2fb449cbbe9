"""Statistics of a collection in partitions, so that each weighs words by all documents.

The files of the index have the counts of all terms of the build, in all partitions
(`storage.collection_terms`). Partitions exchange what later writes have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.errors import IndexDamaged
from klsa_search.kernels import bm25
from klsa_search.kernels.query_kernel import DocumentCounts
from klsa_search.kernels.vocabulary import JoinedVocabulary, Vocabulary
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.storage.collection_terms import CollectionTerms
from klsa_search.storage.current import step_for
from klsa_search.storage.names import MANIFEST
from klsa_search.storage.partitions import number_of_partition

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
    terms, places = np.unique(np.concatenate([each.terms for each in parts]), return_inverse=True)
    sums = np.zeros((2, len(terms)), np.int64)
    np.add.at(sums[0], places, np.concatenate([each.frequencies for each in parts]))
    np.add.at(sums[1], places, np.concatenate([each.occurrences for each in parts]))
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

    documents  their number
    words      sum of their lengths
    changes    of the counts of its terms since the build
    """

    documents: int
    words: int
    changes: CountChanges


@dataclass(frozen=True, eq=False)
class CollectionStatistics:
    """Statistics of the live documents of all partitions.

    documents  their number
    length     their quantised mean length
    changes    of the counts of terms since the build
    """

    documents: int
    length: float
    changes: CountChanges

    @classmethod
    def of(cls, parts: Sequence[PartitionStatistics], built_length: float) -> CollectionStatistics:
        """Return the statistics of all partitions.

        built_length  quantised mean length at the build, which stays until the mean is more than a
                      step away
        """
        documents, words = sum(part.documents for part in parts), sum(part.words for part in parts)
        length = bm25.live_length(built_length, words / max(documents, 1))
        return cls(documents, length, _sum_of_changes([part.changes for part in parts]))


@dataclass(frozen=True, eq=False)
class PartitionTerms:
    """The terms of all partitions, as one of them numbers them.

    collection  the terms of all partitions
    own         (n,) int32, places of the terms of this partition that the training lacks
    known       numbers in all partitions of terms of later writes; -1 for new ones
    """

    collection: CollectionTerms
    own: npt.NDArray[np.int32]
    known: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, collection: CollectionTerms, partition: Path) -> PartitionTerms:
        """Return the terms as the partition in a folder numbers them."""
        return cls(collection, collection.places_of(number_of_partition(partition)))

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary of the partition at the build."""
        return JoinedVocabulary(self.collection.trained, self.collection.terms, self.own)

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
        new = (word for word in words if self.known[word] < 0)
        changes = CountChanges(
            numbers[is_known],
            frequencies[is_known],
            occurrences[is_known],
            dict(zip(new, pairs, strict=True)),
        )
        lengths = snapshot.lengths[snapshot.live_docs()[: len(snapshot.lengths)]]
        return PartitionStatistics(counts.documents, int(lengths.sum(dtype=np.int64)), changes)

    def numbered(
        self, statistics: CollectionStatistics, words: Sequence[str]
    ) -> tuple[Vocabulary, DocumentCounts]:
        """Return the terms of all partitions and their statistics, as this partition numbers them.

        words  later terms of the partition
        Terms of the build come first, then `words`, then later terms of other partitions, then
        terms of the build that only others have. Cost: O(V), and the terms of later writes.
        """
        words_here, changes, trained = set(words), statistics.changes, len(self.collection.trained)
        words = [*words, *(word for word in changes.later if word not in words_here)]
        numbers = self._numbers_of(words)
        is_elsewhere = np.ones(len(self.collection.terms), np.bool_)
        is_elsewhere[self.own] = False
        is_elsewhere[numbers[numbers >= 0] - trained] = False
        remote = np.flatnonzero(is_elsewhere).astype(np.int32)
        pairs = np.array([changes.later.get(word, (0, 0)) for word in words], np.int64)
        counts = []
        for built, changed, of_later in zip(
            self.collection.counts,
            (changes.frequencies, changes.occurrences),
            pairs.reshape(-1, 2).T,
            strict=True,
        ):
            sums = np.append(built, 0)  # -1, the number of new words, is the last
            sums[changes.terms] += changed
            of_words = sums[numbers] + of_later
            others = sums[trained:]
            parts = sums[:trained], others[self.own], of_words, others[remote]
            counts.append(np.concatenate(parts))
        vocabulary = JoinedVocabulary(
            self.collection.trained, self.collection.terms, self.own, words, remote
        )
        return vocabulary, DocumentCounts(statistics.documents, *counts)

    def _numbers(self, terms_: _Numbers) -> _Numbers:
        """Return the numbers in all partitions of terms of the build."""
        trained = len(self.collection.trained)
        is_later, numbers = terms_ >= trained, terms_.copy()
        numbers[is_later] = trained + self.own[terms_[is_later] - trained]
        return numbers

    def _numbers_of(self, words: Sequence[str]) -> _Numbers:
        """Return the numbers in all partitions of terms of later writes; -1 for new ones.

        A word of the training is never among them.
        """
        for word in words:
            if word not in self.known:
                place = self.collection.terms.find(word)
                self.known[word] = -1 if place is None else len(self.collection.trained) + place
        return np.fromiter(map(self.known.__getitem__, words), np.int64, len(words))


class Weighing(NamedTuple):
    """What a partition needs to weigh words by all documents."""

    terms: PartitionTerms
    statistics: CollectionStatistics
