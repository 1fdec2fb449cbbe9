"""The arrays of all partitions of an index in one process, one after the other, as of one index.

For exploration, which needs the arrays of all documents. These have the rows of their partition
after those of the partitions before it. Partitions share the training, so features, coordinates
and vectors of terms are comparable. Each partition numbers the terms of later writes; here they
are numbered again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from klsa_search.core.array_types import DocIds, Numbers, starts_of
from klsa_search.core.lazy import lazy_property
from klsa_search.kernels.postings import Segment, Segments
from klsa_search.kernels.query_kernel import DocumentCounts, QueryKernel
from klsa_search.kernels.vector_space import VectorRows, VectorSpaces
from klsa_search.kernels.vocabulary import Vocabulary
from klsa_search.lowrank.sparse_expansion import NO_REMOTE_ROWS, SegmentedExpansion
from klsa_search.search.engine.evidence import AnswerCache
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.snapshot import FIRST_LATER, IndexArrays, Snapshot
from klsa_search.search.parts.reading import global_doc_ids, local_doc_ids, positions_of

if TYPE_CHECKING:
    from scipy import sparse


@dataclass(frozen=True)
class JoinedArrays(IndexArrays):
    """The arrays of several partitions, which share those that do not depend on documents.

    partitions   in order
    starts       (partitions + 1,) first row of each, and the number of all
    numbers      of the terms of each partition among those of all
    """

    partitions: tuple[Snapshot, ...] = ()
    starts: Numbers = field(default_factory=lambda: np.zeros(1, np.int64))
    numbers: tuple[Numbers, ...] = ()

    def rows_of(self, doc_ids: Sequence[int] | DocIds) -> Numbers:
        """Return the rows of doc ids of the index in arrays of all documents: (n,)."""
        return positions_of(np.asarray(doc_ids, np.int64), np.diff(self.starts).tolist())

    def doc_ids_at(self, rows: DocIds) -> Numbers:
        """Return the doc ids of the index of rows in arrays of all documents: (n,)."""
        numbers = np.searchsorted(self.starts, rows, "right") - 1
        return global_doc_ids(numbers, rows - self.starts[numbers])

    def nearest(self, document: int) -> DocIds:
        """Return the rows of the documents in a row of D, in all partitions, strongest first."""
        (number,), (local,) = local_doc_ids(self.doc_ids_at(np.array([document])))
        partition = self.partitions[number]
        row = partition.klsa_engine.rows(np.array([local]))
        ordinals = row.documents[0][row.levels[0] > 0]
        doc_ids, is_here = partition.doc_ids_of(ordinals)
        sorted_, rows = self._by_ordinal
        remote = rows[np.minimum(np.searchsorted(sorted_, ordinals), len(rows) - 1)]
        nearest: Numbers = np.where(is_here, self.starts[number] + doc_ids, remote)
        return nearest

    def counts_of(self, documents: DocIds) -> sparse.csr_array:
        """Return f(t,d) of documents: (n, V) sparse."""
        from scipy import sparse

        terms = len(self.vocabulary)
        partition_numbers = np.searchsorted(self.starts, documents, "right") - 1
        blocks = [sparse.csr_array((0, terms), dtype=np.float32)]
        order: list[Numbers] = []
        for number, partition in enumerate(self.partitions):
            order.append(np.flatnonzero(partition_numbers == number))
            rows = partition.counts_of(documents[order[-1]] - self.starts[number])
            columns = self.numbers[number][rows.indices]
            shape = rows.shape[0], terms
            blocks.append(sparse.csr_array((rows.data, columns, rows.indptr), shape=shape))
        counts = sparse.vstack(blocks, format="csr")[np.argsort(np.concatenate(order))]
        counts.sort_indices()
        return counts

    @lazy_property
    def _by_ordinal(self) -> tuple[Numbers, Numbers]:
        """All ordinals, ascending, and the row of each."""
        assert self.ordinals is not None
        rows = np.argsort(self.ordinals)
        return self.ordinals[rows], rows


def joined(
    partitions: Sequence[Snapshot], unrestricted: Callable[[], IndexArrays] | None = None
) -> JoinedArrays:
    """Return the arrays of several partitions in one state.

    unrestricted  returns those that these are a restriction of, if they are one
    Cost: O(max_doc + V); what is large is copied when it is used.
    """
    first = partitions[0]
    vocabulary, numbers = _vocabulary_of(partitions)
    starts = starts_of(np.array([len(partition) for partition in partitions], np.int64))
    terms = len(vocabulary)
    ordinals = np.concatenate([p.ordinals_of(np.arange(len(p))) for p in partitions])
    is_later = ordinals >= FIRST_LATER
    ordinals[is_later] = FIRST_LATER + np.flatnonzero(is_later)  # partition by partition
    frequencies, occurrences = np.zeros((2, terms), np.int64)
    frequencies[numbers[0]] = first.query_kernel.counts.frequencies
    occurrences[numbers[0]] = first.query_kernel.counts.occurrences
    counts = DocumentCounts(first.query_kernel.counts.documents, frequencies, occurrences)
    common = np.sort(numbers[0][first.common])
    segments = [
        Segment.of(int(start) + part.first, part.postings, term_numbers[part.numbers()])
        for start, term_numbers, partition in zip(starts, numbers, partitions, strict=False)
        for part in partition.query_kernel.postings.parts
    ]
    weighting = replace(first.query_kernel.weighting, common=common)
    shared = {array.name: getattr(first, array.name) for array in fields(IndexArrays)}
    has_deletions = any(partition.live is not None for partition in partitions)
    arrays = {
        "vocabulary": vocabulary.without(frequencies == 0),
        "query_kernel": QueryKernel.of(Segments(segments, terms), counts, weighting),
        "common": common,
        "lengths": np.concatenate([partition.lengths for partition in partitions]),
        "eigenvectors": np.zeros((starts[-1], 0), np.float32),
        "sparse_expansion": SegmentedExpansion(
            [segment for p in partitions for segment in p.sparse_expansion.segments]
        ),
        "live": Mask(np.concatenate([p.live_docs() for p in partitions]))
        if has_deletions
        else None,
        "reverse": None,
        "vectors": _spaces_of(partitions, starts),
        "ordinals": ordinals,
        "remote_rows": NO_REMOTE_ROWS,
        "unrestricted": None if unrestricted is None else unrestricted(),
        "answers": AnswerCache().present(),
    }
    return JoinedArrays(
        **shared | arrays, partitions=tuple(partitions), starts=starts, numbers=tuple(numbers)
    )


def _vocabulary_of(partitions: Sequence[Snapshot]) -> tuple[Vocabulary, list[Numbers]]:
    collection = partitions[0].collection
    assert collection is not None
    new: dict[str, int] = {}
    numbers: list[Numbers] = []
    for partition in partitions:
        of_later = [
            new.setdefault(term, len(collection) + len(new))
            for term in partition.vocabulary.terms[len(collection) :]
        ]
        numbers.append(np.array([*range(len(collection)), *of_later], np.int64))
    return collection.vocabulary.extended(list(new)), numbers


def _spaces_of(partitions: Sequence[Snapshot], starts: Numbers) -> VectorSpaces:
    return {
        name: replace(
            space,
            parts=tuple(
                VectorRows(part.rows, part.documents + np.int32(start), part.scales)
                for start, partition in zip(starts.tolist(), partitions, strict=False)
                for part in partition.vectors[name].parts
            ),
        )
        for name, space in partitions[0].vectors.items()
    }
