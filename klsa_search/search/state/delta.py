"""Documents written after the build of a generation, and of its passages: the state with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.collection.vectors import vectors_of
from klsa_search.core.array_types import DocumentMask, GrowableArray, GrowableLists, SparseRows
from klsa_search.delta.folding import DeltaBuilder
from klsa_search.delta.postings import DeltaPostings, SaturatedPostings, distinct_terms
from klsa_search.delta.segment import SegmentCache
from klsa_search.delta.statistics import open_statistics
from klsa_search.kernels.postings import Segments
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.kernels.vector_space import VectorRows, VectorSpace, VectorSpaces, scales_of
from klsa_search.lowrank.sparse_expansion import SegmentedExpansion
from klsa_search.search.engine.collection_statistics import CollectionStatistics
from klsa_search.search.engine.evidence import AnswerCache
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.reverse_neighbours import ReverseNeighboursBuilder
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.filters.masks import FilterCache
from klsa_search.search.state.live_statistics import LiveStatistics
from klsa_search.search.state.passages import PassageIndex, PassageWrites
from klsa_search.search.state.state import State
from klsa_search.storage.columns.declared import forms_of
from klsa_search.storage.columns.growing_columns import LaterColumns
from klsa_search.storage.documents import DocumentReader, RecordsPart, record_of
from klsa_search.storage.write_log import LogPosition, Write


class LaterRecords:
    """Records to which documents are appended; readers that it returned do not change.

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


class DeltaVectors:
    """Spaces of vectors to which documents are appended; those returned do not change.

    built  of the generation
    """

    def __init__(self, built: VectorSpaces) -> None:
        self._built = built
        self._later: dict[str, tuple[GrowableArray, ...]] = {}  # the arrays of `VectorRows`

    def extend(self, documents: Sequence[Document], doc_id: int) -> None:
        """Append documents, of which the first has this doc id."""
        for number, document in enumerate(documents, doc_id):
            for name, rows in vectors_of(document).items():
                if name not in self._later:
                    arrays = GrowableArray(np.int8, rows.shape[1]), GrowableArray(np.int32)
                    self._later[name] = *arrays, GrowableArray(np.float32)
                vectors, doc_ids, scales = self._later[name]
                vectors.extend(rows)
                doc_ids.extend(np.full(len(rows), number, np.int32))
                scales.extend(scales_of(rows))

    def spaces(self) -> VectorSpaces:
        """Return the spaces of all documents so far."""
        spaces = dict(self._built)
        for name, arrays in self._later.items():
            part = VectorRows(*(array.rows for array in arrays))
            space = spaces.get(name, VectorSpace(name, part.rows.shape[1], ()))
            spaces[name] = replace(space, parts=(*space.parts, part))
        return spaces


BATCH = 2_000
"""Writes that are applied at once."""


class Delta:
    """Applies writes to a generation, and to its passages, in memory; its states do not change.

    The result depends on the generation and the sequence of writes, not on how writes are grouped.
    For one thread at a time.

    built  state of the generation, without later documents
    """

    def __init__(self, built: State) -> None:
        base, info = built.snapshot, built.info
        settings, manifest = info.settings, info.manifest
        trained = open_statistics(info.path, settings, base.vocabulary, base.forward)
        self._built, self._base = built, base
        self._statistics = LiveStatistics(built, trained)
        # Partitions are stored with the mean length of the training of all of them.
        is_partition = base.ordinals is not None
        self._length = trained.trained.length if is_partition else self._statistics.length
        (segment,) = base.query_kernel.postings.parts
        saturated = SaturatedPostings(
            info.path, manifest, segment.postings, base.lengths, self._length
        )
        self._postings = DeltaPostings(segment, saturated)
        self._folded = DeltaBuilder(trained)
        self._segments = SegmentCache(info.path, manifest, len(base.vocabulary))
        self._records = LaterRecords(built.documents)
        declared, forms = settings.declared(), forms_of(settings)
        self._fields = LaterColumns(built.fields, manifest.fields, declared, len(base), forms)
        self._vectors = DeltaVectors(base.vectors)
        self._reverse = ReverseNeighboursBuilder()
        self._vocabulary = base.vocabulary
        self._later_common = trained.common - base.vocabulary.numbers.keys()
        self._answers = base.answers.extended()
        self._filters, self._texts = built.filters.extended(), built.texts.extended()
        self._batch: list[Write] = []
        self._puts = self._size = 0  # documents of the batch, and those that end it
        self._passages: Delta | None = None
        if built.passages is not None:
            self._passages = Delta(built.passages.state)
            self._of_passages = PassageWrites(built, built.passages)

    def add(self, write: Write) -> None:
        """Add the next write. Batches end where stored segments do.

        Cost: see `delta.folding`, and 10 µs a deletion.
        """
        if not self._batch:
            self._size = self._segments.next_size()
        self._batch.append(write)
        self._puts += write.document is not None
        if self._puts == self._size or len(self._batch) == BATCH:
            self._apply()
        if self._passages is not None:
            for passage_write in self._of_passages.of(write):
                self._passages.add(passage_write)

    def state(self, last: LogPosition, statistics: CollectionStatistics | None = None) -> State:
        """Return the state after all writes. Cost O(max_doc + V), 3 ms for 300,000 documents.

        last        the last of them
        statistics  of all partitions; None for an index without partitions
        """
        self._apply()
        built, live = self._built, self._statistics.live.copy()
        snapshot = self._snapshot(live, statistics)
        documents = self._records.reader(live)
        fields = self._fields.fields(live, only_built=statistics is not None)
        self._filters = FilterCache(fields, len(snapshot), documents.existing, self._filters)
        passages = None
        if self._passages is not None:
            of_passages = None if statistics is None else statistics.passages
            state = self._passages.state(last, of_passages)
            passages = PassageIndex.of(state, self._of_passages.document_of, documents)
        growing = (self._folded, self._records, self._reverse)
        return replace(
            built,
            info=replace(
                built.info,
                documents=snapshot.query_kernel.local_counts.documents,
                last=last,
                drift=replace(self._statistics.drift, bytes=sum(part.bytes for part in growing)),
                trained=self._statistics.trained.copy() if statistics is None else None,
            ),
            snapshot=snapshot,
            documents=documents,
            passages=passages,
            fields=fields,
            filters=self._filters,
            texts=self._texts,
        )

    def _apply(self) -> None:
        """Apply the writes of the batch in order."""
        writes, self._batch, self._puts = self._batch, [], 0
        documents = [write.document for write in writes if write.document is not None]
        if documents:
            segment = self._segments.get(documents)
            if segment is None:
                segment = self._folded.fold(documents)
                self._segments.append(segment)
            else:
                self._folded.add_segment(segment)
            self._vocabulary = self._vocabulary.extended(segment.new_terms)
            self._fields.extend(documents)
            self._vectors.extend(documents, segment.first)
            self._reverse.append(segment.after, segment.reverse, segment.reverse_values)
            self._statistics.add(segment.lengths, self._folded.latest, len(self._vocabulary))
            self._outdate_answers(self._folded.latest)
        replaced = self._records.append(writes)
        live, before = self._statistics.live, dict.fromkeys(doc_id for doc_id, _ in replaced)
        deleted = np.array([doc_id for doc_id in before if live[doc_id]], np.int64)
        if len(deleted):
            rows = self._folded.counts(deleted)
            kept = self._statistics.kept(replaced, self._folded.counts)
            self._statistics.delete(deleted, rows, kept)
            self._outdate_answers(rows)
        if self._length != self._statistics.length:
            self._length = self._statistics.length
            self._answers.forget()

    def _snapshot(self, live: DocumentMask, statistics: CollectionStatistics | None) -> Snapshot:
        base, vocabulary, of_all, length = self._base, self._vocabulary, None, self._length
        answers, spaces = self._answers, self._vectors.spaces()
        if statistics is not None:
            built = base.collection
            assert built is not None
            words = list(
                dict.fromkeys((*vocabulary.terms[len(built) :], *statistics.changes.later))
            )
            vocabulary, of_all = built.vocabulary.extended(words), statistics.counts(built, words)
            length, spaces = statistics.length, statistics.spaces(spaces)
            answers = AnswerCache()  # of other numbers of terms
        terms, later = len(vocabulary), vocabulary.later
        forward, lengths = self._folded.forward(terms), self._statistics.lengths
        segments = Segments(
            self._postings.segments(forward, lengths, self._folded.latest, length), terms
        )
        _ = segments.best  # computed here, so that no query waits for it
        later_common = sorted(later[term] for term in self._later_common & later.keys())
        common = np.concatenate((base.common, np.array(later_common, np.int64)))
        weighting = replace(base.query_kernel.weighting, common=common)
        counts = self._statistics.counts(terms)
        query_kernel = QueryKernel.of(segments, counts, weighting, of_all)
        return replace(
            base,
            vocabulary=vocabulary.without(query_kernel.counts.frequencies == 0),
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
            average_length=length,
            vectors=spaces,
            answers=answers.present(),
        )

    def _outdate_answers(self, rows: SparseRows) -> None:
        terms, numbers = self._vocabulary.terms, distinct_terms(rows.indices)[0].tolist()
        self._answers.write({number: terms[number] for number in numbers}, len(terms))
