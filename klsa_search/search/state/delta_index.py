"""Documents written after the build, and the snapshot of an index with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import vectors_of
from klsa_search.core.array_types import DocumentMask, GrowableArray, GrowableLists, SparseRows
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.delta.postings import DeltaPostings, SaturatedPostings, distinct_terms
from klsa_search.delta.segment import DeltaSegment, SegmentCache
from klsa_search.delta.statistics import open_statistics, trained_documents
from klsa_search.kernels.postings import Segments
from klsa_search.kernels.query_kernel import DocumentCounts, QueryKernel, TermWeighting
from klsa_search.kernels.vector_space import VectorRows, VectorSpace, VectorSpaces, scales_of
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.lowrank.sparse_expansion import SegmentedExpansion
from klsa_search.search.batches import Drift
from klsa_search.search.engine.answer_cache import AnswerCache
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.reverse_neighbours import ReverseNeighboursBuilder
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.state.live_statistics import LiveStatistics, Training
from klsa_search.storage.columns.columns import Fields
from klsa_search.storage.columns.declared import forms_of
from klsa_search.storage.columns.growing_columns import LaterColumns
from klsa_search.storage.documents import DocumentReader, RecordsPart, record_of
from klsa_search.storage.write_log import Write

if TYPE_CHECKING:
    from klsa_search.search.state.state import State


class LaterRecords:
    """Records to whose end documents are appended; readers that it returned do not change.

    built  reads the documents of the build
    """

    def __init__(self, built: DocumentReader) -> None:
        self._built = built
        self._records = GrowableLists(np.uint8)
        self._doc_ids: dict[str, list[int]] = {}  # of later documents, which all readers share

    @property
    def bytes(self) -> int:
        """Return the bytes of all records."""
        return self._records.bytes

    def append(self, writes: Sequence[Write]) -> list[tuple[int, int | None]]:
        """Append the documents of writes.

        Return the doc ids of the documents before them that they replace or delete, which may be
        deleted already, with those of the documents that replace them; in order.
        """
        doc_id = len(self._built) + len(self._records)
        replaced, records = list[tuple[int, int | None]](), list[bytes]()
        for write in writes:
            later = self._doc_ids.get(write.id)
            previous = later[-1] if later else self._built.find(write.id)
            if previous is not None:
                after = doc_id + len(records) if write.document is not None else None
                replaced.append((previous, after))
            if write.document is not None:
                self._doc_ids.setdefault(write.id, []).append(doc_id + len(records))
                records.append(b"".join(record_of(write.document)))
        if records:
            starts = np.array([0, *accumulate(map(len, records))], np.int64)
            self._records.extend(np.frombuffer(b"".join(records), np.uint8), starts)
        return replaced

    def reader(self, live: npt.NDArray[np.bool_]) -> DocumentReader:
        """Return a reader of all documents; `live` is (N,), whether a doc id has a document."""
        part = RecordsPart(self._records.numbers, self._records.starts)
        return self._built.extended(part, self._doc_ids, live)


class _GrowingRows(NamedTuple):
    """The arrays of `VectorRows`."""

    rows: GrowableArray
    documents: GrowableArray
    scales: GrowableArray

    @classmethod
    def empty(cls, dimension: int) -> _GrowingRows:
        """Return no vectors of a space."""
        rows = GrowableArray(np.int8, dimension)
        return cls(rows, GrowableArray(np.int32), GrowableArray(np.float32))


class DeltaVectors:
    """Spaces of vectors to which documents are appended; those returned do not change.

    built  of the generation
    """

    def __init__(self, built: VectorSpaces) -> None:
        self._built = built
        self._later: dict[str, _GrowingRows] = {}

    def extend(self, documents: Sequence[Document], doc_id: int) -> None:
        """Append documents, of which the first has this doc id."""
        for number, document in enumerate(documents, doc_id):
            for name, rows in vectors_of(document).items():
                if name not in self._later:
                    self._later[name] = _GrowingRows.empty(rows.shape[1])
                later = self._later[name]
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


class _Collection(NamedTuple):
    """What depends on the documents of all partitions.

    vocabulary  all terms
    counts      by which terms are weighed; None for those of the only part
    length      quantised mean length
    answers     what was read of the documents
    spaces      of vectors
    """

    vocabulary: Vocabulary
    counts: DocumentCounts | None
    length: float
    answers: AnswerCache
    spaces: VectorSpaces


class DeltaIndex:
    """Applies writes in memory; its snapshots do not change.

    The result depends on the generation and the sequence of writes, not on how writes are grouped.
    For one thread at a time.

    state  of a generation, without later documents
    """

    def __init__(self, state: State) -> None:
        base, info = state.snapshot, state.info
        settings, manifest = info.settings, info.manifest
        trained = open_statistics(info.path, settings, base.vocabulary, base.forward)
        self._base, self._settings = base, settings
        terms = len(base.vocabulary) if manifest.trained is None else trained.terms
        documents = trained_documents(info.path, manifest)
        training = Training(documents, terms, trained.trained.length)
        counts = base.query_kernel.local_counts
        self._statistics = LiveStatistics(base.lengths, counts, training, info.drift)
        # Partitions are stored with the mean length of the training of all of them.
        stored = training.length if base.ordinals is not None else self._statistics.length
        self._length = stored
        (segment,) = base.query_kernel.postings.parts
        saturated = SaturatedPostings(info.path, manifest, segment.postings, base.lengths, stored)
        self._postings = DeltaPostings(segment, saturated, settings.b)
        self._folded = DeltaBuilder(trained)
        self._segments = SegmentCache(info.path, manifest, len(base.vocabulary))
        self._records = LaterRecords(state.documents)
        declared, forms = settings.declared(), forms_of(settings)
        self._fields = LaterColumns(state.fields, manifest.fields, declared, len(base), forms)
        self._vectors = DeltaVectors(base.vectors)
        self._reverse = ReverseNeighboursBuilder()
        self._vocabulary = base.vocabulary
        self._later_common = trained.common - base.vocabulary.numbers.keys()
        self._answers = base.answers.extended()

    def next_size(self) -> int:
        """Return how many documents to apply at once at most: up to the end of the block."""
        return self._segments.next_size()

    def apply(self, writes: Sequence[Write]) -> None:
        """Apply writes in order. Cost: see `delta.folding`, and 10 µs a deletion."""
        documents = [write.document for write in writes if write.document is not None]
        if documents:
            segment = self._fold(documents)
            self._vocabulary = self._vocabulary.extended(segment.new_terms)
            self._fields.extend(documents)
            self._vectors.extend(documents, segment.first)
            self._reverse.append(segment.after, segment.reverse, segment.reverse_values)
            self._statistics.add(segment.lengths, self._folded.latest, len(self._vocabulary))
            self._outdate_answers(self._folded.latest)
        replaced = self._records.append(writes)
        deleted = self._statistics.live_among([doc_id for doc_id, _ in replaced])
        if len(deleted):
            rows = self._folded.counts(deleted)
            kept = self._statistics.kept(replaced, self._folded.counts)
            self._statistics.delete(deleted, rows, kept)
            self._outdate_answers(rows)
        if self._length != self._statistics.length:
            self._length = self._statistics.length
            self._answers.forget()

    def _fold(self, documents: Sequence[Document]) -> DeltaSegment:
        segment = self._segments.get(documents)
        if segment is None:
            segment = self._folded.fold(documents)
            self._segments.append(segment)
        else:
            self._folded.add_segment(segment)
        return segment

    def drift(self) -> Drift:
        """Return the drift from the training. Cost: none."""
        growing = (self._folded, self._records, self._reverse)
        return self._statistics.drift(sum(part.bytes for part in growing))

    def trained(self) -> DocumentMask:
        """Return which documents have the words of one of the training: (N,)."""
        return self._statistics.trained

    def snapshot(
        self, statistics: CollectionStatistics | None = None
    ) -> tuple[Snapshot, DocumentReader, Fields]:
        """Return the present state. Cost O(max_doc + V), 3 ms for 300,000 documents.

        statistics  of all partitions; None for an index without partitions
        """
        base, live = self._base, self._statistics.live.copy()
        collection = self._collection(statistics)
        terms, later = len(collection.vocabulary), collection.vocabulary.later
        forward, lengths = self._folded.forward(terms), self._statistics.lengths
        segments = Segments(
            self._postings.segments(forward, lengths, self._folded.latest, collection.length),
            terms,
        )
        _ = segments.best  # computed here, so that no query waits for it
        later_common = sorted(later[term] for term in self._later_common & later.keys())
        common = np.concatenate((base.common, np.array(later_common, np.int64)))
        settings = self._settings
        weighting = TermWeighting(settings.burstiness, common, settings.common_weight, settings.idf)
        counts = self._statistics.counts(terms)
        query_kernel = QueryKernel.of(segments, counts, weighting, collection.counts)
        snapshot = replace(
            base,
            vocabulary=collection.vocabulary.without(query_kernel.frequencies == 0),
            query_kernel=query_kernel,
            common=common,
            lengths=lengths,
            eigenvectors=np.zeros((len(live), 0), np.float32),
            has_spectrum=False,
            expansion=None,
            sparse_expansion=SegmentedExpansion(
                [base.sparse_expansion.built, self._folded.expansion]
            ),
            forward=forward,
            live=None if live.all() else Mask(live),
            reverse=self._reverse.build(len(live)),
            average_length=collection.length,
            vectors=collection.spaces,
            answers=collection.answers.present(),
        )
        fields = self._fields.fields(live, only_built=statistics is not None)
        return snapshot, self._records.reader(live), fields

    def _collection(self, statistics: CollectionStatistics | None) -> _Collection:
        spaces = self._vectors.spaces()
        if statistics is None:
            return _Collection(self._vocabulary, None, self._length, self._answers, spaces)
        built = self._base.collection
        assert built is not None
        new_terms = self._vocabulary.terms[len(built) :]
        words = list(dict.fromkeys((*new_terms, *statistics.changes.later)))
        return _Collection(
            built.vocabulary.extended(words),
            statistics.counts(built, words),
            statistics.length,
            AnswerCache(),  # of other numbers of terms
            statistics.spaces(spaces),
        )

    def _outdate_answers(self, rows: SparseRows) -> None:
        self._answers.write(distinct_terms(rows.indices)[0].tolist(), len(self._vocabulary))
