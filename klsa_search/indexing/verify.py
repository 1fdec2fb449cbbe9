"""Deep verification: compare an index with its documents, analysed again.

Checksums show that files are unchanged; this shows that their content is right, also for documents
written after the build.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.searched_text import analysed_texts
from klsa_search.analysis.workers import TermNumbering
from klsa_search.collection.model import Document
from klsa_search.collection.vectors import vectors_of
from klsa_search.core.progress import DOCUMENTS, Progress, of_passages, open_progress
from klsa_search.core.wording import counted
from klsa_search.delta.statistics import trained_statistics
from klsa_search.errors import IndexDamaged
from klsa_search.indexing.partitions import verify_collection_terms
from klsa_search.kernels.bm25 import average_length, length_norms, live_length, quantised_length
from klsa_search.kernels.counts import Block
from klsa_search.kernels.postings import Postings, Segment, postings_arrays
from klsa_search.kernels.vector_space import scales_of
from klsa_search.search.parts.generation import OpenGeneration
from klsa_search.search.state.passages import PassageIndex
from klsa_search.search.state.state import State
from klsa_search.storage.current import current_build, step_for
from klsa_search.storage.forward_index import encoded
from klsa_search.storage.maintenance import verify
from klsa_search.storage.manifest import Manifest
from klsa_search.storage.names import MANIFEST
from klsa_search.storage.partitions import documents_of, is_partitioned, partition_of
from klsa_search.storage.passages import passages_of

_BATCH: Final = 500


def verify_deep(path: str | Path, *, progress: Progress | bool | None = None) -> Manifest:
    """Verify checksums as `verify` does, then compare data of BM25 and passages with the documents.

    Each live document is looked up by its ID and analysed again; its terms, its length and its
    vectors are compared, then the frequencies of all terms, and the postings. Passages are cut
    again, and compared likewise. Raise IndexDamaged with the first difference. Cost: the analysis
    on one processor, and about ten bytes of memory for each term of a document.

    >>> verify_deep("index/reports").counts.documents
    6
    """
    path = Path(path)
    manifest = verify(path)
    with open_progress(progress) as report:
        if is_partitioned(path):
            verify_collection_terms(path)
        generations = documents_of(current_build(path))
        for number, generation in enumerate(generations):
            _compare_generation(generation, report, number, len(generations))
    return manifest


def _compare_generation(generation: Path, report: Progress, number: int, partitions: int) -> None:
    """Raise IndexDamaged unless a generation, one of several partitions, matches its documents."""
    opened = OpenGeneration(generation)
    base, state = opened.built, opened.state
    _Comparison(state, base).run(report)
    if state.passages is not None and base.passages is not None:
        _compare_passages(state, state.passages)
        _Comparison(state.passages.state, base.passages.state).run(of_passages(report))
    if partitions == 1:
        return
    for id_ in state.documents.ids(state.documents.live_doc_ids()):
        if partition_of(id_, partitions) != number:
            raise _damaged(state, f"document {id_!r} belongs to another partition")


def _compare_passages(state: State, passages: PassageIndex) -> None:
    """Raise IndexDamaged unless the passages are those of the live documents."""
    words = state.info.settings.passage_words
    stored = passages.state.documents
    count = 0
    for doc_id in state.documents.live_doc_ids():
        (document,) = state.documents.at([doc_id])
        for passage in passages_of(document, words):
            row = stored.find(passage.id)
            if (
                row is None
                or passages.document_of[row] != doc_id
                or not stored.equals(row, passage)
            ):
                raise _damaged(state, f"passage {passage.id!r} is not that of its document")
            count += 1
    if count != passages.state.info.documents:
        raise _damaged(state, "it has passages of other documents")


def _damaged(state: State, fact: str) -> IndexDamaged:
    path = state.info.path
    return IndexDamaged(
        f"`{path}` does not match its documents ({fact}); {step_for(path / MANIFEST)}"
    )


class _Comparison:
    """Compares a state of an index with its documents.

    built  the state without later writes
    """

    def __init__(self, state: State, built: State) -> None:
        self._state, self._snapshot, self._built = state, state.snapshot, built.snapshot
        self._settings = state.info.settings
        self._forward = self._snapshot.forward
        self._numbering = TermNumbering(state.info.analyzer)
        self._numbers: list[int] = []  # term of each number of the numbering
        self._frequencies = np.zeros(len(self._snapshot.vocabulary), np.int64)
        self._tokens = 0

    def run(self, report: Progress) -> None:
        doc_ids = np.flatnonzero(self._snapshot.live_docs())
        for first in range(0, len(doc_ids), _BATCH):
            self._compare(doc_ids[first : first + _BATCH])
            report(DOCUMENTS, min(first + _BATCH, len(doc_ids)), len(doc_ids))
        if len(doc_ids) != self._state.info.documents:
            raise self._damaged(
                f"it has {counted(len(doc_ids), 'document')}, but reports another number"
            )
        kernel = self._snapshot.query_kernel
        if not np.array_equal(kernel.counts.frequencies, self._frequencies):
            raise self._damaged("the document frequency of a term does not match the documents")
        trained, lengths = trained_statistics(self._state.info.path), self._built.lengths
        is_partition = self._built.ordinals is not None  # the mean length is that of all documents
        training = quantised_length(average_length(lengths)) if trained is None else trained.length
        average = training
        if not is_partition:
            average = live_length(training, int(lengths.sum(dtype=np.int64)) / max(len(lengths), 1))
        for segment in self._built.query_kernel.postings.parts:
            self._compare_postings(segment, average)
        if self._snapshot.average_length is not None:  # writes may have changed it
            average = self._snapshot.average_length
            mean = self._tokens / max(len(doc_ids), 1)
            if not is_partition and live_length(training, mean) != average:
                raise self._damaged("the mean length does not match the documents")
            for segment in kernel.postings.parts:
                self._compare_postings(segment, average)

    def _compare(self, doc_ids: npt.NDArray[np.int64]) -> None:
        documents = self._state.documents.at(doc_ids.tolist())
        by_id = self._state.documents.doc_ids([document.id for document in documents])
        codes, sizes = encoded(self._analysed(documents), self._forward.ranks)
        ends = np.cumsum(sizes)
        for i, (document, doc_id) in enumerate(zip(documents, doc_ids.tolist(), strict=True)):
            if by_id[i] != doc_id:
                raise self._damaged(f"its id {document.id!r} leads to another document")
            if codes[ends[i] - sizes[i] : ends[i]].tobytes() != self._forward.codes[doc_id]:
                raise self._damaged(f"the terms of document {document.id!r} are not its text's")
            self._compare_vectors(document, doc_id)
        counts = self._forward.counts(doc_ids)
        lengths = np.asarray(counts.sum(axis=1), np.int64).ravel()
        for i in np.flatnonzero(lengths != self._snapshot.lengths[doc_ids])[:1]:
            raise self._damaged(f"the length of document {documents[i].id!r} is not its text's")
        self._tokens += int(lengths.sum())
        self._frequencies += np.bincount(counts.indices, minlength=len(self._frequencies))

    def _compare_vectors(self, document: Document, doc_id: int) -> None:
        expected, spaces = vectors_of(document), self._snapshot.vectors
        same = expected.keys() <= spaces.keys()
        for name, space in spaces.items():
            rows = expected.get(name, np.zeros((0, space.dimension), np.int8))
            stored_rows, scales = [], []
            for part in space.parts:
                first, after = np.searchsorted(part.documents, [doc_id, doc_id + 1])
                stored_rows.append(part.rows[first:after])
                scales.append(part.scales[first:after])
            same = (
                same
                and np.array_equal(np.concatenate(stored_rows), rows)
                and np.array_equal(np.concatenate(scales), scales_of(rows))
            )
        if not same:
            raise self._damaged(f"the vectors of document {document.id!r} are not its own")

    def _analysed(self, documents: Sequence[Document]) -> Block:
        fields = self._settings.searched_fields
        texts = self._numbering.numbered(
            analysed_texts(documents, fields, self._settings.language_field)
        )
        numbers = self._snapshot.vocabulary.numbers
        for term in texts.terms:
            if term not in numbers:
                raise self._damaged(f"its vocabulary lacks the term {term!r} of its documents")
            self._numbers.append(numbers[term])
        words = np.frombuffer(texts.numbers, np.int32).copy()
        has_term = words >= 0
        words[has_term] = np.array(self._numbers, np.int32)[words[has_term]]
        return Block(
            words,
            np.frombuffer(texts.lengths, np.int32),
            np.full(len(documents), len(fields.names), np.int32),
        )

    def _compare_postings(self, segment: Segment, average: float) -> None:
        actual, settings = segment.postings, self._settings
        doc_ids = np.arange(segment.first, segment.first + actual.size)
        counts = self._forward.counts(doc_ids)[:, segment.numbers()]
        counts.sort_indices()
        norms = length_norms(self._snapshot.lengths[doc_ids], average, k1=settings.k1, b=settings.b)
        computed = Postings.of(counts, norms, settings.k1, block_bits=actual.block_bits)
        expected = postings_arrays(computed)
        for name, array in postings_arrays(actual).items():
            if not np.array_equal(array, expected[name]):
                raise self._damaged(
                    f"{name} from position {segment.first:,} on does not match the counts"
                )

    def _damaged(self, fact: str) -> IndexDamaged:
        return _damaged(self._state, fact)
