"""Fold documents in: from an epoch and documents, in order, to a delta segment.

What comes out is a function of the epoch and of all documents so far, however they are divided
among calls and segments: merged segments are those of one call. A document takes some 0.5 ms.

    Folding(epoch, segments=())          goes on behind the segments that are there, in order
    .fold(documents) -> DeltaSegment     of these documents, which the next call knows
    .take(segment)                       the same where it is there already
    .first, .after                       positions
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.cached import lazy_property
from klsa_search.core.parallel import processors
from klsa_search.delta.features import Reader, place
from klsa_search.delta.neighbours import (
    POOL,
    POSTINGS,
    Asked,
    Held,
    KnownDocuments,
    Scratch,
    boosts,
    search_rows,
)
from klsa_search.delta.segment import DeltaSegment, distinct
from klsa_search.delta.statistics import BuildStatistics
from klsa_search.errors import StoreError
from klsa_search.kernels.counts import BlockCounts, count_block
from klsa_search.lowrank import sparse_expansion
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.storage.forward_index import encoded

_TOGETHER: Final = 256  # documents that are linked up before they are searched for
_TASK: Final = 32  # documents a thread searches for at a time

_Counts = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]
_Rows = npt.NDArray[np.uint32]
_Values = npt.NDArray[np.float32]


class _Room(NamedTuple):
    """What the scratch memory is for: `terms` are those of one document."""

    threads: int
    positions: int
    terms: int


class DeltaBuilder:
    """Folds documents in, one batch after the other; not for two threads at once.

    Memory: 600 bytes for each document that has been folded in, 5 bytes for each position and one
    for each feature of the epoch, once a thread.
    """

    def __init__(self, epoch: BuildStatistics, segments: Sequence[DeltaSegment] = ()) -> None:
        self._epoch = epoch
        self._reader = Reader(epoch)
        self._known = KnownDocuments(epoch)
        self._scratch: SimpleQueue[Scratch] = SimpleQueue()
        self._room = _Room(0, 0, 0)
        for segment in segments:
            self.take(segment)

    @property
    def first(self) -> int:
        """Position of the first document that comes after the epoch's."""
        return self._epoch.first

    @property
    def after(self) -> int:
        """Position of the next document."""
        return self.first + len(self._known)

    def fold(self, documents: Sequence[Document]) -> DeltaSegment:
        """Fold documents in: the segment of them alone.

        StoreError above `MAX_DOCUMENTS` document numbers; nothing has changed then.
        """
        first, epoch = self.after, self._epoch
        if first + len(documents) > sparse_expansion.MAX_DOCUMENTS:
            raise StoreError(
                f"the log of writes needs {first + len(documents):,} doc ids, more "
                f"than the limit of {sparse_expansion.MAX_DOCUMENTS:,}; undo the last "
                "batches with `klsa-index rollback NAME --writes N`, then run "
                "`klsa-index refit NAME`"
            )
        block, words = self._reader.read(documents)
        ranks = self._reader.ranks
        content = self._reader.content
        counts = count_block(block, content, epoch.settings.title_weight)
        starts = _starts(counts.sizes)
        tokens = np.concatenate(([0], np.cumsum(counts.counts, dtype=np.int64)))
        lengths = np.diff(tokens[starts]).astype(np.int32)
        codes, code_sizes = encoded(block, ranks)
        placed = place(epoch, counts, content)
        self._known.append(placed.starts, placed.features, placed.cards, placed.diagonals)
        values, found = self._strongest(placed.asked, counts, starts, lengths)
        rows, steps = _packed(values, found)
        scales = np.column_stack((steps, placed.diagonals))
        self._known.append_rows(rows, scales)
        own, count_terms = distinct(counts.columns)
        reverse, reverse_values = self._reverse(values, found, first)
        return DeltaSegment(
            first=first,
            words=np.frombuffer("".join(f"{word}\n" for word in words).encode(), np.uint8),
            terms=own.astype(np.int32),
            count_starts=starts,
            count_terms=count_terms,
            counts=counts.counts.copy(),
            lengths=lengths,
            forward_starts=_starts(code_sizes),
            forward_codes=codes,
            feature_starts=placed.starts,
            features=placed.features,
            cards=placed.cards,
            rows=rows,
            scales=scales,
            reverse=reverse,
            reverse_values=reverse_values,
        )

    def take(self, segment: DeltaSegment) -> None:
        """Know the documents of a segment that was folded before; ValueError if it is not next."""
        if segment.first != self.after:
            raise ValueError(f"a segment at {segment.first}, where {self.after} is next")
        self._reader.learn(segment.new_terms)
        known = self._known
        known.append(segment.feature_starts, segment.features, segment.cards, segment.scales[:, 1])
        known.link(
            *_of_epoch(
                self._epoch.terms,
                segment.count_starts,
                segment.terms[segment.count_terms],
                segment.counts,
            ),
            segment.lengths,
        )
        known.append_rows(segment.rows, segment.scales)

    def _strongest(
        self,
        asked: Asked,
        counts: BlockCounts,
        starts: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int32],
    ) -> tuple[_Values, npt.NDArray[np.int32]]:
        """Search for the strongest entries of the documents that were appended last."""
        epoch, known, n = self._epoch, self._known, len(lengths)
        entries = epoch.cut.rows.shape[1]
        values, found = np.zeros((n, entries), np.float32), np.zeros((n, entries), np.int32)
        offset = known.linked
        postings = (
            epoch.postings.starts, epoch.postings.entries, epoch.postings.run_starts,
            epoch.postings.runs, epoch.postings.block_bits,
        )  # fmt: skip
        of_epoch = _of_epoch(epoch.terms, starts, counts.columns, counts.counts)
        threads = max(min(processors(), n // _TASK), 1)
        self._make_room(threads, int(np.diff(asked.starts).max(initial=0)))
        new = known.held

        def search(begin: int) -> None:
            scratch = self._scratch.get()
            search_rows(
                offset + begin, offset + min(begin + _TASK, last), offset, asked, postings,
                later, self._old, new, self.first, epoch.mean_square, (POSTINGS, POOL),
                scratch, values, found,
            )  # fmt: skip
            self._scratch.put(scratch)

        with ThreadPoolExecutor(threads) as pool:
            for first in range(0, n, _TOGETHER):
                last = min(first + _TOGETHER, n)
                known.link(*_piece(of_epoch, first, last), lengths[first:last])
                later = known.later
                each = map if threads == 1 else pool.map
                deque(each(search, range(first, last, _TASK)), maxlen=0)
        return values, found

    def _make_room(self, threads: int, longest: int) -> None:
        """Have memory for so many threads, and for documents of so many terms."""
        positions, features = self.after, len(self._epoch.cut.mean)
        room = self._room
        if room.threads < threads or room.positions < positions or room.terms < longest:
            positions += positions // 8
            room = _Room(*map(max, room, (threads, positions, longest)))
            self._room, self._scratch = room, SimpleQueue()
            for _ in range(room.threads):
                self._scratch.put(Scratch.of(room.positions, features, room.terms))

    @lazy_property
    def _old(self) -> Held:
        cut = self._epoch.cut
        return Held(
            cut.starts,
            cut.features,
            cut.document_scalars,
            boosts(cut.document_scalars, cut.scales[:, 1]),
        )

    def _reverse(
        self, values: _Values, found: npt.NDArray[np.int32], first: int
    ) -> tuple[npt.NDArray[np.int32], _Values]:
        """Entries of the rows from the other side, where they are strong enough for it."""
        rows, columns = np.nonzero(values)
        before, strength = found[rows, columns], values[rows, columns]
        strong = strength >= self._known.weakest(before.astype(np.int64))
        entries = np.column_stack((before, first + rows.astype(np.int32)))[strong]
        order = np.lexsort(entries.T[::-1])
        return entries[order], strength[strong][order]


def _starts(sizes: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def _packed(values: _Values, found: npt.NDArray[np.int32]) -> tuple[_Rows, _Values]:
    """Rows as `lowrank.sparse_expansion` has them, and their steps."""
    steps = values[:, 0] / np.float32(LEVELS)
    held = values > 0
    levels = np.rint(np.divide(values, steps[:, None], out=np.zeros_like(values), where=held))
    packed = (found.astype(np.uint32) << np.uint32(8)) | np.maximum(levels, 1).astype(np.uint32)
    return np.where(held, packed, np.uint32(0)), steps


def _of_epoch(
    terms: int,
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int32],
) -> _Counts:
    """The counts of terms that the epoch knows."""
    known = columns < terms
    before = np.concatenate(([0], np.cumsum(known)))
    return before[starts], columns[known], counts[known]


def _piece(counts: _Counts, first: int, after: int) -> _Counts:
    """Counts of some documents."""
    starts, columns, times = counts
    entries = slice(starts[first], starts[after])
    return starts[first : after + 1], columns[entries], times[entries]
