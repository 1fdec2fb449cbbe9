"""Documents written after the build: delta segments and their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import vectors_of
from klsa_search.core.array_types import DocIds, GrowableArray, GrowableLists, Integers, SparseRows
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.delta.saturated_postings import SaturatedPostings
from klsa_search.delta.segment import DeltaSegment, SegmentCache
from klsa_search.delta.statistics import open_statistics
from klsa_search.kernels.postings import Postings, Segment, Segments
from klsa_search.kernels.query_kernel import DocumentCounts, QueryKernel, TermWeighting
from klsa_search.kernels.vector_space import VectorRows, VectorSpace, VectorSpaces, scales_of
from klsa_search.kernels.weighting import length_norms, live_length
from klsa_search.lowrank.sparse_expansion import SegmentedExpansion
from klsa_search.search.batches import Drift
from klsa_search.search.engine.answer_cache import AnswerCache
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.reverse_neighbours import ReverseNeighboursBuilder
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.columns.declared import forms_of
from klsa_search.storage.columns.growing_columns import LaterColumns
from klsa_search.storage.documents import DocumentReader, RecordsPart, record_of
from klsa_search.storage.forward_index import Forward
from klsa_search.storage.log import Write

if TYPE_CHECKING:
    from klsa_search.search.state.state import State


_MERGE_SIZE: Final = 128
"""Documents from which a segment is kept instead of being rebuilt with every write."""


class _Segment(NamedTuple):
    begin: int
    end: int
    segment: Segment


class DeltaSegments:
    """Segments of the postings of later documents.

    The last segment is rebuilt with every write up to a hundred documents; others are merged in
    pairs, so their number is logarithmic. The division into segments changes no bit of any score.
    Memory: 4 bytes a posting.

    first       first doc id
    block_bits, k1, b  as in the postings of the build
    """

    def __init__(self, first: int, block_bits: int, *, k1: float, b: float) -> None:
        self._first, self._block_bits, self._k1, self._b = first, block_bits, k1, b
        self._segments: list[_Segment] = []
        self._average = 0.0

    def segments(
        self,
        forward: Forward,
        lengths: npt.NDArray[np.int32],
        latest: SparseRows,
        average: float,
    ) -> list[Segment]:
        """Return segments of all documents, saturated by a quantised mean length.

        forward, lengths  of these documents and those of the build
        latest  counts of the last of them
        Cost: the documents after the last kept segment, and some merges; all documents if the
        length has changed.
        """
        if average != self._average:
            self._segments, self._average = [], average
        begin, end = self._segments[-1].end if self._segments else self._first, len(lengths)
        if end - begin >= _MERGE_SIZE:
            while (
                self._segments and end - begin >= self._segments[-1].end - self._segments[-1].begin
            ):
                begin = self._segments.pop().begin
            self._segments.append(self._segment_of(begin, end, forward, lengths, latest))
            begin = end
        segments_ = [kept.segment for kept in self._segments]
        if begin == end:
            return segments_
        return [*segments_, self._segment_of(begin, end, forward, lengths, latest).segment]

    def _segment_of(
        self,
        begin: int,
        end: int,
        forward: Forward,
        lengths: npt.NDArray[np.int32],
        latest: SparseRows,
    ) -> _Segment:
        is_latest = end - begin == latest.shape[0]
        rows = latest if is_latest else forward.rows(np.arange(begin, end))
        numbers, term_numbers = _distinct(rows.indices)
        counts = rows._replace(indices=term_numbers, shape=(end - begin, len(numbers)))
        norms = length_norms(lengths[begin:end], self._average, k1=self._k1, b=self._b)
        postings = Postings.of(counts, norms, self._k1, block_bits=self._block_bits)
        return _Segment(begin, end, Segment.of(begin, postings, numbers))


def _distinct(terms: Integers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the distinct terms, ascending, and the index of each among them. Cost: O(V + n)."""
    present = np.zeros(terms.max(initial=-1) + 1, np.bool_)
    present[terms] = True
    numbers = np.flatnonzero(present)
    positions = np.empty(len(present), np.int32)
    positions[numbers] = np.arange(len(numbers), dtype=np.int32)
    return numbers, positions[terms]


class _Later(NamedTuple):
    rows: GrowableArray
    documents: GrowableArray
    scales: GrowableArray


class DeltaVectors:
    """Spaces of vectors to which documents are appended; those returned do not change.

    built  of the generation
    """

    def __init__(self, built: VectorSpaces) -> None:
        self._built = built
        self._later: dict[str, _Later] = {}

    def extend(self, documents: Sequence[Document], doc_id: int) -> None:
        """Append documents, of which the first has this doc id."""
        for number, document in enumerate(documents, doc_id):
            for name, rows in vectors_of(document).items():
                later = self._later.setdefault(
                    name,
                    _Later(
                        GrowableArray(np.int8, rows.shape[1]),
                        GrowableArray(np.int32),
                        GrowableArray(np.float32),
                    ),
                )
                later.rows.extend(rows)
                later.documents.extend(np.full(len(rows), number, np.int32))
                later.scales.extend(scales_of(rows))

    def spaces(self) -> VectorSpaces:
        """Return the spaces of all documents so far."""
        spaces = dict(self._built)
        for name, (rows, documents, scales) in self._later.items():
            space = spaces.get(name, VectorSpace(name, rows.rows.shape[1], ()))
            part = VectorRows(rows.rows, documents.rows, scales.rows)
            spaces[name] = replace(space, parts=(*space.parts, part))
        return spaces


class DeltaIndex:
    """Applies writes in memory; its snapshots do not change.

    The result depends on the generation and the sequence of writes, not on how writes are grouped.
    For one thread at a time.

    state  of a generation, without later documents
    """

    def __init__(self, state: State) -> None:
        base, info = state.snapshot, state.info
        self._base, self._documents = base, state.documents
        self._settings = settings = info.settings
        statistics = open_statistics(info.path, settings, base.vocabulary, base.forward)
        self._builder = DeltaBuilder(statistics)
        self._segment_cache = SegmentCache(info.path, info.manifest, len(base.vocabulary))
        self._codes, self._records = GrowableLists(np.uint8), GrowableLists(np.uint8)
        (self._base_segment,) = base.query_kernel.postings.parts
        self._saturated = SaturatedPostings(
            info.path, info.manifest, self._base_segment.postings, base.lengths
        )
        # Quantised mean lengths: of the training, of stored postings, of live documents, and of
        # `_base_segment`.
        self._words = int(base.lengths.sum(dtype=np.int64))  # of live documents
        self._first_length = self._stored_length = statistics.trained.length
        if base.ordinals is None:
            self._stored_length = live_length(self._first_length, self._words / max(len(base), 1))
        self._length = self._base_length = self._stored_length
        bits = self._base_segment.postings.block_bits
        self._fields = LaterColumns(
            state.fields,
            info.manifest.fields,
            settings.declared(),
            len(base),
            forms_of(settings),
        )
        self._delta_segments = DeltaSegments(len(base), bits, k1=settings.k1, b=settings.b)
        self._vocabulary = base.vocabulary
        self._new_terms: list[str] = []  # terms of the delta
        self._answers = base.answers.extended()
        self._doc_ids: dict[str, list[int]] = {}  # of later documents, which all readers share
        self._reverse = ReverseNeighboursBuilder()
        self._vectors = DeltaVectors(base.vectors)
        self._live = GrowableArray(np.bool_)
        self._live.extend(np.ones(len(base), np.bool_))
        self._lengths = GrowableArray(np.int32)
        self._lengths.extend(base.lengths)
        self._later_common = statistics.common - base.vocabulary.numbers.keys()
        counts = base.query_kernel.local_counts
        self._frequencies, self._occurrences = GrowableArray(np.int64), GrowableArray(np.int64)
        self._frequencies.extend(counts.frequencies)
        self._occurrences.extend(counts.occurrences)
        self._latest = base.forward.rows(np.zeros(0, np.int64))  # of the documents added last
        # Documents of the training are the first ones, and its terms have the first numbers.
        trained = info.manifest.trained
        self._trained = len(base) if trained is None else trained
        self._trained_terms = len(base.vocabulary) if trained is None else statistics.terms
        self._deleted = self._deleted_of_training = 0
        self._before = info.drift
        self._later_words, self._unseen = info.drift.words, info.drift.unseen

    def next_size(self) -> int:
        """Return how many documents to apply at once at most: up to the end of the block."""
        return self._segment_cache.next_size()

    def apply(self, writes: Sequence[Write]) -> None:
        """Apply writes in order. Cost: see `delta.folding`, and 10 µs a deletion."""
        documents = [write.document for write in writes if write.document is not None]
        doc_id = self._builder.after
        if documents:
            segment, rows = self._segment(documents)
            self._latest = rows
            records = [b"".join(record_of(document)) for document in documents]
            starts = np.array([0, *accumulate(map(len, records))], np.int64)
            self._records.extend(np.frombuffer(b"".join(records), np.uint8), starts)
            self._fields.extend(documents)
            self._vectors.extend(documents, doc_id)
            self._vocabulary = self._vocabulary.extended(segment.new_terms)
            self._reverse.append(segment.after, segment.reverse, segment.reverse_values)
            self._live.extend(np.ones(len(documents), np.bool_))
            self._lengths.extend(segment.lengths)
            self._count_words(np.arange(doc_id, segment.after), rows, 1)
        deleted: dict[int, None] = {}
        for write in writes:
            later = self._doc_ids.get(write.id)
            previous = later[-1] if later else self._documents.find(write.id)
            if previous is not None and self._live.rows[previous]:
                deleted[previous] = None
            if write.document is not None:
                self._doc_ids.setdefault(write.id, []).append(doc_id)
                doc_id += 1
        self._delete(np.array([*deleted], np.int64))
        length = live_length(self._first_length, self._mean_length())
        if length != self._length:
            self._length = length
            self._answers.forget()

    def drift(self) -> Drift:
        """Return the drift from the training. Cost: none."""
        passed = self._deleted - self._deleted_of_training
        return Drift(
            added=self._builder.after - self._trained - passed,
            deleted=self._before.deleted + self._deleted_of_training,
            passed=passed,
            words=self._later_words,
            unseen=self._unseen,
            bytes=sum(
                part.bytes for part in (self._builder, self._codes, self._records, self._reverse)
            ),
        )

    def snapshot(
        self, statistics: CollectionStatistics | None = None
    ) -> tuple[Snapshot, DocumentReader, Fields]:
        """Return the present state. Cost O(max_doc + V), 3 ms for 300,000 documents.

        statistics  of all partitions; None for an index without partitions
        """
        base = self._base
        live = self._live.rows.copy()
        mask = None if live.all() else Mask(live)
        vocabulary, counts_of_all = self._vocabulary, None
        length, answers, spaces = self._length, self._answers, self._vectors.spaces()
        if statistics is not None:
            assert base.collection is not None
            words = list(dict.fromkeys((*self._new_terms, *statistics.changes.later)))
            vocabulary = base.collection.vocabulary.extended(words)
            counts_of_all = statistics.counts(base.collection, words)
            length, answers = statistics.length, AnswerCache()  # of other numbers of terms
            spaces = statistics.spaces(spaces)
        terms = len(vocabulary)
        forward = self._forward(terms)
        segments = Segments(self._segments(forward, length), terms)
        _ = segments.best  # computed here, so that no query waits for it
        numbers = vocabulary.numbers
        later = sorted(numbers[term] for term in self._later_common if term in numbers)
        common = np.concatenate((base.common, np.array(later, np.int64)))
        settings = self._settings
        weighting = TermWeighting(settings.burstiness, common, settings.common_weight, settings.idf)
        later_terms = np.zeros(terms - len(self._frequencies), np.int64)
        counts = DocumentCounts(
            self._count(),
            np.concatenate((self._frequencies.rows, later_terms)),
            np.concatenate((self._occurrences.rows, later_terms)),
        )
        query_kernel = QueryKernel.of(segments, counts, weighting, counts_of_all)
        snapshot_ = replace(
            base,
            vocabulary=vocabulary.without(query_kernel.frequencies == 0),
            query_kernel=query_kernel,
            common=common,
            lengths=self._lengths.rows,
            eigenvectors=np.zeros((len(live), 0), np.float32),
            has_spectrum=False,
            expansion=None,
            sparse_expansion=SegmentedExpansion(
                [base.sparse_expansion.built, self._builder.expansion]
            ),
            forward=forward,
            live=mask,
            reverse=self._reverse.build(len(live)),
            average_length=length,
            vectors=spaces,
            answers=answers.present(),
        )
        reader = self._documents.extended(
            RecordsPart(self._records.numbers, self._records.starts),
            self._doc_ids,
            live,
        )
        return snapshot_, reader, self._fields.fields(live, only_built=statistics is not None)

    def _segment(self, documents: Sequence[Document]) -> tuple[DeltaSegment, SparseRows]:
        """Return the segment of the next documents, stored or new, and their counts."""
        segment = self._segment_cache.get(documents)
        rows = None
        if segment is None:
            segment = self._builder.fold(documents)
            self._segment_cache.append(segment)
        else:
            rows = self._builder.add_segment(segment)
        self._codes.extend(segment.forward_codes, segment.forward_starts)
        self._new_terms += segment.new_terms
        if rows is None:
            rows = self._counts(np.arange(segment.first, segment.after))
        return segment, rows

    def _counts(self, doc_ids: DocIds) -> SparseRows:
        """Return the counts of documents."""
        return self._forward(len(self._base.vocabulary) + len(self._new_terms)).rows(doc_ids)

    def _forward(self, terms: int) -> Forward:
        """Return the forward index of all documents and terms."""
        return self._base.forward.extended((self._codes.numbers, self._codes.starts), terms)

    def _mean_length(self) -> float:
        """Return the mean length of the live documents; 0 without any."""
        return self._words / max(self._count(), 1)

    def _count(self) -> int:
        """Return the number of live documents."""
        return self._builder.after - self._deleted

    def _segments(self, forward: Forward, length: float) -> list[Segment]:
        """Return segments of all postings, saturated by a quantised mean length.

        Cost: if the length has changed, that of `SaturatedPostings.at`.
        """
        if length != self._base_length:
            (self._base_segment,) = self._base.query_kernel.postings.parts
            if length != self._stored_length:
                self._base_segment = self._base_segment._replace(
                    postings=self._saturated.at(length)
                )
            self._base_length = length
        later = self._delta_segments.segments(forward, self._lengths.rows, self._latest, length)
        return [self._base_segment, *later]

    def _delete(self, doc_ids: DocIds) -> None:
        """Mark documents as deleted."""
        if not len(doc_ids):
            return
        self._count_words(doc_ids, self._counts(doc_ids), -1)
        self._deleted += len(doc_ids)
        self._deleted_of_training += int((doc_ids < self._trained).sum())
        self._live.rows[doc_ids] = False

    def _count_words(self, doc_ids: DocIds, rows: SparseRows, sign: int) -> None:
        """Add the words of documents to the statistics of live documents, or subtract them."""
        terms = len(self._base.vocabulary) + len(self._new_terms)
        numbers, counts = rows.indices, rows.data.astype(np.int64)
        self._answers.write(_distinct(numbers)[0].tolist(), terms)
        for array in (self._frequencies, self._occurrences):
            array.extend(np.zeros(terms - len(array), np.int64))
        np.add.at(self._frequencies.rows, numbers, sign)
        np.add.at(self._occurrences.rows, numbers, sign * counts)
        lengths = self._lengths.rows[doc_ids].astype(np.int64)
        self._words += sign * int(lengths.sum())
        self._later_words += sign * int(lengths[doc_ids >= self._trained].sum())
        self._unseen += sign * int(counts[numbers >= self._trained_terms].sum())
