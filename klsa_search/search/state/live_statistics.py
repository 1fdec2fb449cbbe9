"""Which documents of an index are live, and what is counted of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, DocumentMask, GrowableArray, SparseRows
from klsa_search.delta.statistics import BuildStatistics, trained_documents
from klsa_search.kernels.bm25 import live_length
from klsa_search.kernels.query_kernel import DocumentCounts
from klsa_search.search.state.state import State


def are_equal(some: SparseRows, others: SparseRows, number: int) -> bool:
    """Return whether the rows of this number are equal in two matrices."""
    one, other = (slice(*rows.indptr[number : number + 2].tolist()) for rows in (some, others))
    return np.array_equal(some.indices[one], others.indices[other]) and np.array_equal(
        some.data[one], others.data[other]
    )


class LiveStatistics:
    """Counts of live documents, to which documents are added, and which may be deleted.

    drift  from the training; at first that of the build
    For one thread at a time.
    """

    def __init__(self, built: State, statistics: BuildStatistics) -> None:
        info, snapshot = built.info, built.snapshot
        lengths, counts = snapshot.lengths, snapshot.query_kernel.local_counts
        is_compacted = info.manifest.trained is not None
        # Terms of the training have the first numbers.
        self._terms = statistics.terms if is_compacted else len(snapshot.vocabulary)
        self._length, self.drift = statistics.trained.length, info.drift
        trained = trained_documents(info.path, info.manifest)
        self._documents = len(lengths)
        self._words = int(lengths.sum(dtype=np.int64))
        self._live = GrowableArray.of(np.ones(len(lengths), np.bool_))
        self._trained, self._lengths = GrowableArray.of(trained), GrowableArray.of(lengths)
        self._frequencies = GrowableArray.of(counts.frequencies)
        self._occurrences = GrowableArray.of(counts.occurrences)

    @property
    def live(self) -> DocumentMask:
        """Return which documents are live now: (N,); deletions change it."""
        return self._live.rows

    @property
    def trained(self) -> DocumentMask:
        """Return which documents have the words of one of the training: (N,); writes change it."""
        return self._trained.rows

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Return the lengths of all documents: (N,)."""
        return self._lengths.rows

    @property
    def length(self) -> float:
        """Return the quantised mean length of the live documents."""
        return live_length(self._length, self._words / max(self._documents, 1))

    def counts(self, terms: int) -> DocumentCounts:
        """Return the statistics of the live documents by so many terms. Cost: O(V)."""
        missing = np.zeros(terms - len(self._frequencies), np.int64)
        return DocumentCounts(
            self._documents,
            np.concatenate((self._frequencies.rows, missing)),
            np.concatenate((self._occurrences.rows, missing)),
        )

    def add(self, lengths: npt.NDArray[np.int32], rows: SparseRows, terms: int) -> None:
        """Add the next documents: their lengths and counts; `terms` is the number of all terms."""
        for array in (self._frequencies, self._occurrences):
            array.extend(np.zeros(terms - len(array), np.int64))
        first = len(self._lengths)
        self._live.extend(np.ones(len(lengths), np.bool_))
        self._trained.extend(np.zeros(len(lengths), np.bool_))
        self._lengths.extend(lengths)
        self._count(np.arange(first, first + len(lengths)), rows, 1)

    def delete(
        self, doc_ids: DocIds, rows: SparseRows, kept: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Delete live documents, of which these are the counts.

        kept  of them, and documents that replace them with the same words, in order: these count
              as the same, so they are no drift
        """
        self._live.rows[doc_ids] = False
        trained = self._trained.rows
        for before, after in kept:
            trained[after] = trained[before]
        after_trained = np.array([after for _, after in kept if trained[after]], np.int64)
        self.drift = replace(  # `add` counted them
            self.drift,
            added=self.drift.added - len(after_trained),
            words=self.drift.words - int(self._lengths.rows[after_trained].sum(dtype=np.int64)),
        )
        self._count(doc_ids, rows, -1)
        gone = doc_ids[~np.isin(doc_ids, [before for before, _ in kept])]
        of_training = int(trained[gone].sum())
        self.drift = replace(
            self.drift,
            deleted=self.drift.deleted + of_training,
            passed=self.drift.passed + len(gone) - of_training,
        )

    def kept(
        self, replaced: Sequence[tuple[int, int | None]], counts: Callable[[DocIds], SparseRows]
    ) -> list[tuple[int, int]]:
        """Return those live documents that others replace with the same words, and these.

        replaced  documents, and those that replace them, in order
        counts    returns the counts of documents
        """
        live, gone, pairs = self._live.rows, set[int](), list[tuple[int, int]]()
        for before, after in replaced:
            if after is not None and live[before] and before not in gone:
                pairs.append((before, after))
            gone.add(before)
        if not pairs:
            return []
        befores, afters = map(counts, np.array(pairs, np.int64).T)
        lengths = self._lengths.rows
        return [
            (before, after)
            for number, (before, after) in enumerate(pairs)
            if lengths[before] == lengths[after] and are_equal(befores, afters, number)
        ]

    def _count(self, doc_ids: DocIds, rows: SparseRows, sign: int) -> None:
        numbers, counts = rows.indices, rows.data.astype(np.int64)
        np.add.at(self._frequencies.rows, numbers, sign)
        np.add.at(self._occurrences.rows, numbers, sign * counts)
        lengths = self._lengths.rows[doc_ids].astype(np.int64)
        is_later = ~self._trained.rows[doc_ids]
        self._documents += sign * len(doc_ids)
        self._words += sign * int(lengths.sum())
        self.drift = replace(
            self.drift,
            added=self.drift.added + sign * int(is_later.sum()),
            words=self.drift.words + sign * int(lengths[is_later].sum()),
            unseen=self.drift.unseen + sign * int(counts[numbers >= self._terms].sum()),
        )
