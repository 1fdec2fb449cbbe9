"""Arrays and records that the compiled engine reads and writes.

Compiled functions take arrays in named tuples and numbers in one record.

Each candidate has a slot, numbered from 1: first the seeds, then the other best documents by the
query kernel, then documents that only the expansion matrix finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.compiling import internal
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.kernels.segments import Segment, Segments
from klsa_search.lowrank.sparse_expansion import NO_ROWS_ELSEWHERE, RowsElsewhere, SparseExpansion
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.reverse_neighbours import ReverseNeighbours

MAX_TERMS: Final = 256
"""Distinct terms of one query; the parser leaves out the lightest of more."""

MAX_RETAINED: Final = 2**14
"""Largest number of results for which a thread retains its buffers (some MB)."""

MAX_SEGMENTS: Final = 64
"""Segments of one index."""

CHUNK: Final = 2048
"""Scores of a block that are scanned at once."""

_INDEX: Final = (
    "documents",  # doc ids, deleted ones included
    "segments",
    "blocks",  # of all segments
    "block_bits",
    "deleted",  # documents
)
_QUERY: Final = (
    "masked",  # whether a mask applies, besides that of live documents
    "count_totals",
    "count",  # terms
    "total",  # documents counted so far that contain a term
)
_OF_SEGMENT: Final = (
    "base",  # its first doc id
    "length",  # in documents
    "block_count",
    "term_count",
    "first_start",  # offset in `SegmentArrays.starts` and `run_starts`
    "first_term",  # offset in `global_terms` and `local_terms`
    "has_local_terms",
)
_OF_TERM: Final = (
    "query_terms",  # in query order, repetitions included unless the query is too long for them
    "query_times",  # how often each occurs
    # distinct terms, lowest maximum impact first; offsets are those in `SegmentArrays`
    "term",
    "query_counts",  # f(t, q)
    "weight",  # f(t, q) · h(t) · w(t), in steps
    "max_impact",  # in steps
    "posting",  # next posting
    "run",  # next run
    "last_run",  # end of its runs
    # its postings in the current block
    "first",
    "after",
    "bound",  # upper bound of their impacts, in steps
)

QUERY_CONTEXT: Final = np.dtype(
    [(name, "i8") for name in (*_INDEX, *_QUERY)]
    + [("step", "f8")]  # value of one step of a score
    + [(name, "i8", (MAX_TERMS,)) for name in _OF_TERM]
    + [(name, "i8", (MAX_SEGMENTS,)) for name in _OF_SEGMENT]
)
QueryContext = Any  # one element of type QUERY_CONTEXT, which numba cannot name


class SegmentArrays(NamedTuple):
    """Postings of one segment, or of several concatenated: see `Postings`.

    starts, run_starts  offsets in the concatenated postings and runs
    runs                flat, three numbers per run
    global_terms        `Segment.terms`, and `local_terms` its `own`; empty for the first segment
    """

    starts: npt.NDArray[np.int64]
    entries: npt.NDArray[np.uint32]
    run_starts: npt.NDArray[np.int64]
    runs: npt.NDArray[np.uint16]
    global_terms: npt.NDArray[np.int64]
    local_terms: npt.NDArray[np.int64]

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> SegmentArrays:
        """Concatenate segments; the arrays of a single segment are not copied."""
        starts, entries, run_starts, runs = [], [], [], []
        global_terms, local_terms = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        posting, run = 0, 0
        for segment in segments:
            postings = segment.postings
            starts.append(postings.starts + posting if posting else postings.starts)
            run_starts.append(postings.run_starts + run if run else postings.run_starts)
            entries.append(postings.entries)
            runs.append(postings.runs.reshape(-1))
            posting, run = posting + int(postings.starts[-1]), run + int(postings.run_starts[-1])
            if segment.terms is not None and segment.own is not None:
                global_terms.append(segment.terms)
                local_terms.append(segment.own)
        return cls(
            _concatenate(starts, np.int64),
            _concatenate(entries, np.uint32),
            _concatenate(run_starts, np.int64),
            _concatenate(runs, np.uint16),
            _concatenate(global_terms[1:], np.int64),
            _concatenate(local_terms[1:], np.int64),
        )


class PostingArrays(NamedTuple):
    """Read-only arrays of the postings.

    weights  (V,) term weights
    best     (V, 4) see `Postings`
    live     words of the `Mask` of live documents; empty if all are live
    main     the first segment
    delta    all other segments, concatenated
    """

    weights: npt.NDArray[np.int64]
    best: npt.NDArray[np.uint16]
    live: npt.NDArray[np.uint64]
    main: SegmentArrays
    delta: SegmentArrays

    @classmethod
    def of(cls, kernel: QueryKernel, live: Mask | None) -> PostingArrays:
        """Return the arrays of an index. Cost: a copy of the postings of delta segments."""
        postings = kernel.postings
        words = np.zeros(0, np.uint64) if live is None else live.words
        return cls(
            read_only(kernel.weights, np.int64),
            read_only(postings.best, np.uint16),
            read_only(words, np.uint64),
            SegmentArrays.of(postings.parts[:1]),
            SegmentArrays.of(postings.parts[1:]),
        )

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """All arrays as a flat tuple."""
        return (*self[:3], *self.main, *self.delta)


class SearchBuffers(NamedTuple):
    """Buffers of one thread.

    accumulator      a score for each document of a block
    keys             (2, n) keys, and as many to sort them. After a search: the keys that the query
                     kernel found, best first, with the score in steps in the upper 32 bits
    hits             (CHUNK,)
    posting_offsets  (MAX_TERMS, blocks + segments) start of each term's postings in each block, and
                     the end of the last block of each segment
    """

    accumulator: npt.NDArray[np.int32]
    keys: npt.NDArray[np.int64]
    hits: npt.NDArray[np.int32]
    posting_offsets: npt.NDArray[np.int64]


class Queries(NamedTuple):
    """A batch of queries and space for their results.

    terms      the end of each query, then the term numbers of all
    documents  (queries, k) doc ids found
    scores     (queries, k)
    counts     (queries, 2) number of results, -1 for more than MAX_TERMS distinct terms; and the
               total, if requested
    """

    terms: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, queries: Sequence[Sequence[int]], k: int) -> Queries:
        """Encode queries, given as term numbers."""
        count, ends = len(queries), accumulate(map(len, queries))
        return cls(
            np.array([*ends, *chain.from_iterable(queries)], np.int64),
            np.empty((count, k), np.int32),
            np.empty((count, k), np.float32),
            np.empty((count, 2), np.int64),
        )

    def top_docs(self) -> list[TopDocs | None]:
        """Return the result of each query, or None for more than MAX_TERMS distinct terms.

        Results are views of arrays that the batch shares.
        """
        return [
            TopDocs(self.documents[query, :count], self.scores[query, :count], total)
            if count >= 0
            else None
            for query, (count, total) in enumerate(self.counts.tolist())
        ]


class TopDocs(NamedTuple):
    """The best documents of a query, best first, ties by doc id.

    doc_ids, scores  of documents that pass the mask and score above 0, at most k
    total            how many documents match, whatever k; 0 if not requested
    """

    doc_ids: DocIds
    scores: Scores
    total: int


class EngineQuery(NamedTuple):
    """Options that all queries of a batch share."""

    k: int
    mask: Mask | None = None
    totals: bool = False

    def arguments(self, postings: PostingArrays) -> tuple[npt.NDArray[np.uint64], bool, bool]:
        """Return the arguments of a compiled search: words of a mask, masked, count_totals."""
        if self.mask is None:
            return postings.live, False, self.totals
        return self.mask.words, True, self.totals


class Scratch:
    """Buffers of one thread for queries of at most `capacity` results, to kernels of some postings.

    context  (1,) of type QUERY_CONTEXT
    """

    def __init__(self, postings: Segments, capacity: int) -> None:
        if len(postings.parts) > MAX_SEGMENTS:
            raise ValueError(f"{len(postings.parts)} segments, more than {MAX_SEGMENTS}")
        self.capacity = capacity
        self.buffers = SearchBuffers(
            np.zeros(1 << postings.block_bits, np.int32),
            np.zeros((2, _buffer_size(capacity)), np.int64),
            np.zeros(CHUNK, np.int32),
            np.zeros((MAX_TERMS, postings.blocks + len(postings.parts)), np.int64),
        )
        self.context = np.zeros(1, QUERY_CONTEXT)
        context = self.context[0]
        context["documents"], context["segments"] = postings.size, len(postings.parts)
        context["blocks"], context["block_bits"] = postings.blocks, postings.block_bits
        context["step"] = postings.step
        _write_segments(context, postings)

    def prepared(self, kernel: QueryKernel) -> Scratch:
        """Return these buffers, prepared for a kernel of their postings."""
        self.context[0]["deleted"] = kernel.postings.documents - kernel.own_documents
        return self


def _write_segments(context: Any, postings: Segments) -> None:
    """Write the offsets of each segment in its `SegmentArrays`."""
    first_start, first_term = 0, 0
    for number, segment in enumerate(postings.parts):
        own = segment.postings
        values = {
            "base": segment.first,
            "length": own.size,
            "block_count": own.blocks,
            "term_count": len(own.starts) - 1,
            "first_start": first_start,
            "first_term": first_term,
            "has_local_terms": segment.terms is not None,
        }
        for name, value in values.items():
            context[name][number] = value
        first_start += len(own.starts)
        first_term += 0 if segment.terms is None else len(segment.terms)
        if number == 0:
            first_start = first_term = 0


def read_only(array: npt.NDArray[Any], kind: Any) -> Any:
    """View an array as compiled code expects it: contiguous, of one type, read-only.

    Code is compiled for each type, and memory-mapped arrays are read-only.
    """
    view = np.ascontiguousarray(array, kind).view(np.ndarray)
    view.flags.writeable = False
    return view


def _concatenate(arrays: Sequence[npt.NDArray[Any]], kind: Any) -> Any:
    if len(arrays) == 1:
        return read_only(arrays[0], kind)
    return read_only(np.concatenate([np.zeros(0, kind), *arrays], dtype=kind), kind)


def _buffer_size(k: int) -> int:
    """Return how many keys are collected before the k largest are selected, at about equal cost."""
    return max(2 * k, k + 32)


buffer_size = internal(_buffer_size)


_Ints = npt.NDArray[np.int32]
_Longs = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float32]


class IndexArrays(NamedTuple):
    """Arrays of the expansion: see `SparseExpansion`, `LatentSpace` and `ReverseNeighbours`.

    term_weights  (V,) h(t) · w(t): see `QueryKernel`
    burstiness    (V,) b(t)
    document_vectors   (N, w) coordinates in the latent space, followed by three scalars
    document_scalars   the same memory as float32; its last three columns are the scalars
    rows_elsewhere, levels_elsewhere
                  (N, entries) entries of the rows in other partitions: see `RowsElsewhere`
    term_vectors  (V, w) coordinates, followed by their step
    term_steps    the same memory as float32; its last column is the step
    """

    term_weights: _Floats
    burstiness: _Floats
    rows: npt.NDArray[np.uint32]
    scales: _Floats
    feature_starts: _Longs
    features: npt.NDArray[np.uint32]
    document_vectors: npt.NDArray[np.int8]
    document_scalars: _Floats
    term_vectors: npt.NDArray[np.int8]
    term_steps: _Floats
    reverse_row: _Ints
    reverse_rows: npt.NDArray[np.uint32]
    reverse_steps: _Floats
    rows_elsewhere: npt.NDArray[np.uint32]
    levels_elsewhere: npt.NDArray[np.uint8]

    @classmethod
    def of(
        cls,
        kernel: QueryKernel,
        expansion: SparseExpansion,
        reverse: ReverseNeighbours,
        rows_elsewhere: RowsElsewhere = NO_ROWS_ELSEWHERE,
    ) -> IndexArrays:
        """Return the arrays in the types and the order that compiled code expects."""
        document_vectors = read_only(expansion.document_vectors, np.int8)
        term_vectors = read_only(expansion.terms, np.int8)
        return cls(
            term_weights=read_only(kernel.term_weights, np.float32),
            burstiness=read_only(kernel.burstiness, np.float32),
            rows=read_only(expansion.rows, np.uint32),
            scales=read_only(expansion.scales, np.float32),
            feature_starts=read_only(expansion.starts, np.int64),
            features=read_only(expansion.features, np.uint32),
            document_vectors=document_vectors,
            document_scalars=read_only(document_vectors.view(np.float32), np.float32),
            term_vectors=term_vectors,
            term_steps=read_only(term_vectors.view(np.float32), np.float32),
            reverse_row=read_only(reverse.row_of, np.int32),
            reverse_rows=read_only(reverse.rows, np.uint32),
            reverse_steps=read_only(reverse.steps, np.float32),
            rows_elsewhere=read_only(rows_elsewhere.documents, np.uint32),
            levels_elsewhere=read_only(rows_elsewhere.levels, np.uint8),
        )


TERM_GROUP: Final = 8
"""Terms whose coverage is summed pairwise, so in the same order on every machine."""

SCAN_CHUNK: Final = 256
"""Postings that are scanned at once."""


class Workspace(NamedTuple):
    """Memory of one thread: M candidates, Q from the query kernel, B best, z seeds, F features.

    slots         (N,) slot of a document, 0 for none; all 0 between queries
    is_best       (N / 32,) uint32, a bit for each document that is one of the best; likewise
    documents     (M + 1,) document of a slot
    lexical       (Q + 1,) k_q divided by its maximum
    expanded      (M + 1,) E: exact for seeds, otherwise from the rows of the seeds
    covered       (Q + 1,) T of the best: exact for seeds, otherwise without neighbours
    scores        (M + 65,) padded to whole vectors
    bits          the same memory as int32
    chosen        (M + 1,) slots selected for rescoring
    keys, sort_buffer  (M + 1,)
    remaining     (B + 1,) score in steps, less the impacts of the terms looked up
    impacts       (B + 1, stride) impact of each term in steps: row 0 is 0, then the best of this
                  partition, then the documents of `elsewhere`
    near          (neighbours + 1,) offsets in `impacts` of neighbours that are among the best
    shares        (neighbours + 1,) their levels
    hits          (SCAN_CHUNK,) uint32, postings of the best documents
    term_weights  (stride,) f(t,q) · h(t) · w(t), 0 beyond the last term
    neighbour_impacts  (TERM_GROUP,) weighted impacts of the neighbours
    exact         (M + 1,) T of the rescored candidates
    half          (stride,) impact at which g is one half, in steps; 1 beyond the last term
    weights       (z,) of the seeds
    sums          (F,) int16, weighted sum of the seeds' features, in steps; all 0 between queries
    query_vector  (w,) int16, the query in the latent space, in steps
    query_floats  (m,) the same before rounding
    elsewhere     (B,) ordinals of the best documents of other partitions, ascending, padded with
                  `NO_DOCUMENT`
    elsewhere_filter  (FILTER,) whether one of them has these lowest bits; all False between queries
    """

    slots: _Ints
    is_best: npt.NDArray[np.uint32]
    documents: _Ints
    lexical: _Floats
    expanded: _Floats
    covered: _Floats
    scores: _Floats
    bits: _Ints
    chosen: _Ints
    keys: _Longs
    sort_buffer: _Longs
    remaining: _Ints
    impacts: _Floats
    near: _Ints
    shares: _Floats
    hits: npt.NDArray[np.uint32]
    term_weights: _Floats
    neighbour_impacts: _Floats
    exact: _Floats
    half: _Floats
    weights: _Floats
    sums: npt.NDArray[np.int16]
    query_vector: npt.NDArray[np.int16]
    query_floats: _Floats
    elsewhere: npt.NDArray[np.uint32]
    elsewhere_filter: npt.NDArray[np.bool_]
