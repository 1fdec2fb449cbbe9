"""Statistics of a collection in several partitions, so that each weighs words by all documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klsa_search.kernels import bm25
from klsa_search.kernels.query_kernel import DocumentCounts
from klsa_search.search.snapshot import Snapshot

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OwnStatistics:
    """Statistics of the live documents of one partition.

    documents    their number
    words        sum of their lengths
    frequencies  (T,) document frequencies of the terms that all partitions number alike
    occurrences  (T,) of these terms
    others       the same two numbers of the other terms
    """

    documents: int
    words: int
    frequencies: _Numbers
    occurrences: _Numbers
    others: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, snapshot: Snapshot, shared: int) -> OwnStatistics:
        """Return those of a partition of which the first `shared` terms are those of all."""
        counts, terms = snapshot.query_kernel.own_counts, snapshot.vocabulary.terms
        frequencies, occurrences = counts.frequencies, counts.occurrences
        others = shared + np.flatnonzero(frequencies[shared:])
        pairs = zip(frequencies[others].tolist(), occurrences[others].tolist(), strict=True)
        lengths = snapshot.lengths[snapshot.live_docs()[: len(snapshot.lengths)]]
        return cls(
            counts.documents,
            int(lengths.sum(dtype=np.int64)),
            frequencies[:shared],
            occurrences[:shared],
            dict(zip([terms[number] for number in others.tolist()], pairs, strict=True)),
        )


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """Statistics of all partitions but one.

    length  quantised mean length of the documents of all partitions
    Others as of `OwnStatistics`.
    """

    documents: int
    length: float
    frequencies: _Numbers
    occurrences: _Numbers
    others: Mapping[str, tuple[int, int]]

    def unknown(self, numbers: Mapping[str, int], more: Sequence[str]) -> list[str]:
        """Return terms that a partition with these terms does not have."""
        known = set(more)
        return [term for term in self.others if term not in numbers and term not in known]

    def counts(self, numbers: Mapping[str, int], first: int, more: Sequence[str]) -> DocumentCounts:
        """Return the statistics by the term numbers of a partition.

        more  its terms from number `first` on
        """
        counts = np.zeros((2, first + len(more)), np.int64)
        counts[0, : len(self.frequencies)] = self.frequencies
        counts[1, : len(self.occurrences)] = self.occurrences
        later = {term: first + place for place, term in enumerate(more)}
        for term, pair in self.others.items():
            counts[:, numbers[term] if term in numbers else later[term]] = pair
        return DocumentCounts(self.documents, counts[0], counts[1])


def elsewhere(parts: Sequence[OwnStatistics], built: float) -> list[Elsewhere]:
    """Return for each partition the statistics of all others.

    built  quantised mean length at the build, which stays until the mean is more than a step away
    """
    documents, words = sum(each.documents for each in parts), sum(each.words for each in parts)
    length = bm25.live_length(built, words / max(documents, 1))
    frequencies = sum((each.frequencies for each in parts), np.int64(0))
    occurrences = sum((each.occurrences for each in parts), np.int64(0))
    others: dict[str, tuple[int, int]] = {}
    for each in parts:
        for term, (frequency, occurrence) in each.others.items():
            known = others.get(term, (0, 0))
            others[term] = known[0] + frequency, known[1] + occurrence
    return [
        Elsewhere(
            documents - own.documents,
            length,
            frequencies - own.frequencies,
            occurrences - own.occurrences,
            _less(others, own.others),
        )
        for own in parts
    ]


def _less(
    all_: Mapping[str, tuple[int, int]], own: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return the counts of terms that documents elsewhere contain."""
    left = {}
    for term, (frequency, occurrences) in all_.items():
        own_frequency, own_occurrences = own.get(term, (0, 0))
        if frequency > own_frequency:
            left[term] = frequency - own_frequency, occurrences - own_occurrences
    return left
