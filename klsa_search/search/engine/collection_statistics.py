"""Statistics of a collection in partitions, so that each weighs words by all documents.

The files of the index have the counts of all terms of the build, in all partitions
(`storage.partitions`). Partitions exchange what later writes have changed: `CountChanges`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from klsa_search.core.array_types import Numbers
from klsa_search.kernels.bm25 import live_length
from klsa_search.kernels.postings import Segment
from klsa_search.kernels.query_kernel import DocumentCounts
from klsa_search.kernels.vector_space import VectorSpace, VectorSpaces
from klsa_search.storage.partitions import CollectionTerms


@dataclass(frozen=True, eq=False)
class CountChanges:
    """How the counts of terms differ from those of the build.

    terms        (n,) numbers of terms of the build
    frequencies  (n,) their document frequencies, less those of the build
    occurrences  (n,) likewise
    later        document frequency and occurrences of each term that the build does not have
    """

    terms: Numbers
    frequencies: Numbers
    occurrences: Numbers
    later: Mapping[str, tuple[int, int]]

    @classmethod
    def of(
        cls, built: Segment, now: DocumentCounts, collection: CollectionTerms, terms: Sequence[str]
    ) -> CountChanges:
        """Return how counts of a partition differ from those of its build.

        built  postings of the build
        now    present counts of the terms of the partition
        terms  all terms
        Cost: O(V), and terms of later writes.
        """
        frequencies, occurrences = now.frequencies.copy(), now.occurrences.copy()
        frequencies[built.term_indices] -= built.postings.frequencies
        occurrences[built.term_indices] -= built.postings.occurrences
        changed = np.flatnonzero((frequencies != 0) | (occurrences != 0))
        of_build, later = np.split(changed, [np.searchsorted(changed, len(collection))])
        pairs = zip(frequencies[later].tolist(), occurrences[later].tolist(), strict=True)
        words = (terms[number] for number in later.tolist())
        of_later = dict(zip(words, pairs, strict=True))
        return cls(of_build, frequencies[of_build], occurrences[of_build], of_later)


def _sum_of_changes(parts: Sequence[CountChanges]) -> CountChanges:
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
class CollectionStatistics:
    """Statistics of the live documents of a partition, or of all.

    documents   their number
    words       sum of their lengths
    changes     of the counts of terms since the build
    dimensions  of the spaces of vectors
    passages    those of the passages, if documents are divided
    length      their quantised mean length, if they are all
    """

    documents: int
    words: int
    changes: CountChanges
    dimensions: Mapping[str, int]
    passages: CollectionStatistics | None = None
    length: float = 1.0

    @classmethod
    def of(
        cls, parts: Sequence[CollectionStatistics], built_lengths: Sequence[float] = (1.0, 1.0)
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
        return cls(documents, words, changes, dimensions, passages, length)

    def spaces(self, spaces: VectorSpaces) -> VectorSpaces:
        """Return the spaces of vectors of a partition, also those that only others have."""
        empty = {name: VectorSpace(name, size, ()) for name, size in self.dimensions.items()}
        return {**empty, **spaces}

    def counts(self, collection: CollectionTerms, words: Sequence[str]) -> DocumentCounts:
        """Return the statistics of the terms of a partition.

        collection  terms of the build
        words       those of later writes, which follow them
        Cost: O(V).
        """
        changes = self.changes
        pairs = np.array([changes.later.get(word, (0, 0)) for word in words], np.int64)
        frequencies, occurrences = (
            np.concatenate((built, of_later))
            for built, of_later in zip(collection.counts, pairs.reshape(-1, 2).T, strict=True)
        )
        frequencies[changes.terms] += changes.frequencies
        occurrences[changes.terms] += changes.occurrences
        return DocumentCounts(self.documents, frequencies, occurrences)
