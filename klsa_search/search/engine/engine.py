"""The engines: from term numbers to the k best documents, by BM25 or the default ranking."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds
from klsa_search.core.compiling import not_compiled
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.lowrank.sparse_expansion import NO_ROWS_ELSEWHERE, RowsElsewhere, SparseExpansion
from klsa_search.search.engine.bm25 import search
from klsa_search.search.engine.candidates import FILTER
from klsa_search.search.engine.formulas import (
    DocFeatures,
    distinct_known,
    fits_engine,
    query_impacts,
)
from klsa_search.search.engine.klsa import find_seeds, search_expanded, search_shared
from klsa_search.search.engine.mask import FEW, Mask
from klsa_search.search.engine.reference import ReferenceEngine
from klsa_search.search.engine.reverse_neighbours import MAX_REVERSE, ReverseNeighbours
from klsa_search.search.engine.scan import LANES
from klsa_search.search.engine.seeds import (
    MAX_SEEDS,
    PARAMETERS,
    KlsaParams,
    RerankDepths,
    parameters_record,
)
from klsa_search.search.engine.shared_seeds import (
    LocalSeeds,
    SharedSeeds,
    shared_record,
)
from klsa_search.search.engine.workspace import (
    MAX_RETAINED,
    MAX_TERMS,
    SCAN_CHUNK,
    TERM_GROUP,
    EngineQuery,
    IndexArrays,
    PostingArrays,
    Queries,
    Scratch,
    TopDocs,
    Workspace,
)
from klsa_search.search.query.terms import QueryTerms

RESULTS: Final = 2**20
"""Results of one call of the compiled search, at most."""


class ThreadBuffers(threading.local):
    """Buffers of each thread, which engines of the same postings use in turn."""

    scratch: Scratch | None = None
    state: _ThreadState | None = None


class Bm25Engine:
    """Exact BM25 over postings; immutable and thread-safe.

    Each thread has its own buffers: a block of scores and 40 bytes per result. Buffers of queries
    for more than 16,384 results are not retained. Results equal the best of `Postings.steps` to the
    bit, for any number of threads. Queries of more than 256 distinct terms are scored by it.

    live     mask of the live documents, if some are deleted
    buffers  of another engine of the same postings, to share them
    """

    def __init__(
        self, kernel: QueryKernel, live: Mask | None = None, buffers: ThreadBuffers | None = None
    ) -> None:
        self._kernel, self._live = kernel, live
        self._postings = PostingArrays.of(kernel, live)
        self.buffers = buffers or ThreadBuffers()

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> list[TopDocs]:
        """Return the k best documents of each query, in one call that runs without the GIL.

        queries  term numbers in query order, repetitions included, negative if unknown
        mask     documents that may be returned, a subset of the live ones; None for all of them
        totals   whether to count the documents that contain a term
        Cost     0.5 ns for each posting in blocks that can contain one of the k best, and 3 µs; a
                 mask or totals need one pass over the postings.
        Memory   8 MB besides the results, or 8 bytes per result of one query if that is more
        """
        request = EngineQuery(min(k, self._kernel.size), mask, totals)
        if not request.k or not_compiled(search):
            return [self._top_from_scores(terms, request) for terms in queries]
        answers: list[TopDocs] = []
        batch = max(1, RESULTS // request.k)
        for begin in range(0, len(queries), batch):
            part = queries[begin : begin + batch]
            results = self._search(part, request, self._scratch(request.k)).top_docs()
            answers += [
                top or self._top_from_scores(terms, request)
                for terms, top in zip(part, results, strict=True)
            ]
        return answers

    def steps(
        self, terms: Sequence[int], k: int, mask: Mask | None = None, *, totals: bool = False
    ) -> tuple[DocIds, npt.NDArray[np.int64], int]:
        """Return doc ids and scores in steps of the k best documents of a query, and the total.

        For merging results of several engines. Parameters and cost as of `top`.
        """
        request = EngineQuery(min(k, self._kernel.size), mask, totals)
        if not request.k or not fits_engine(terms) or not_compiled(search):
            return self._steps_from_scores(terms, request)
        scratch = self._scratch(request.k)
        queries = self._search([terms], request, scratch)
        (count, total), documents = queries.counts[0].tolist(), queries.documents[0]
        return documents[:count], scratch.buffers.keys[0, :count] >> 32, total

    def _search(
        self, terms: Sequence[Sequence[int]], request: EngineQuery, scratch: Scratch
    ) -> Queries:
        queries = Queries.of(terms, request.k)
        postings = self._postings
        search(
            scratch.context,
            *request.arguments(postings),
            *queries,
            *scratch.buffers,
            *postings.arrays,
        )
        return queries

    def _scratch(self, k: int) -> Scratch:
        """Return buffers of this thread, larger ones if needed.

        Those for more than `MAX_RETAINED` results are not retained.
        """
        scratch = self.buffers.scratch
        if scratch is None or scratch.capacity < k:
            scratch = Scratch(self._kernel.postings, k)
            if k <= MAX_RETAINED:
                self.buffers.scratch = scratch
        return scratch.prepared(self._kernel)

    def _top_from_scores(self, terms: Sequence[int], request: EngineQuery) -> TopDocs:
        doc_ids, steps, total = self._steps_from_scores(terms, request)
        return TopDocs(doc_ids, (steps * self._kernel.postings.step).astype(np.float32), total)

    def _steps_from_scores(
        self, terms: Sequence[int], request: EngineQuery
    ) -> tuple[DocIds, npt.NDArray[np.int64], int]:
        query = QueryTerms.of(terms)
        row = self._kernel.steps(query.numbers, query.counts)
        mask = request.mask or self._live
        if mask is not None:
            row = row * mask.allowed
        doc_ids, steps = top_z(row, request.k)
        return doc_ids, steps, int(np.count_nonzero(row)) if request.totals else 0


KLSA_RESULTS: Final = 2**18
"""Results of one call of the compiled search, at most."""

COVERAGE_DEPTH: Final = (144, 1024)
"""Candidates whose T is computed exactly: 8 per result, within these limits."""
SHARED_COVERAGE_DEPTH: Final = (72, 1024)
"""The same in each of several partitions, which has only some of the best candidates."""
EXPANSION_DEPTH: Final = (32, 192)
"""Candidates whose E is computed exactly: 3 per result, within these limits."""
FILTERED_DEPTH: Final = 200
"""The same for masks of few documents: 10 per result, at least this. At 300,000 documents the first
ten of 500 and of 1,000 are then as with an exact E for each, which would double the cost.
"""
ALL_CANDIDATES: Final = 1000
"""Number of results from which all candidates of a small collection are rescored."""


class KlsaEngine:
    """The default ranking; immutable and thread-safe.

    Each thread has its own buffers: 4 bytes per document, 2 per feature, 50 per candidate and, for
    each of the best, 4 per term. Those of queries for more than 16,384 results are not retained.
    `klsa` says what is exact. Results do not depend on the number of threads.

    small    whether deep rankings rescore all candidates
    live     mask of the live documents, if some are deleted
    reverse  entries of later documents, if any
    rows_elsewhere  entries of the rows in other partitions, if there are some
    buffers  of another engine of the same postings and expansion, to share them
    """

    def __init__(
        self,
        kernel: QueryKernel,
        expansion: SparseExpansion,
        dimensions: int,
        neighbours: int,
        *,
        small: bool,
        live: Mask | None = None,
        reverse: ReverseNeighbours | None = None,
        rows_elsewhere: RowsElsewhere = NO_ROWS_ELSEWHERE,
        buffers: ThreadBuffers | None = None,
    ) -> None:
        self._kernel, self._small, self._live = kernel, small, live
        self._postings = PostingArrays.of(kernel, live)
        self._index = IndexArrays.of(
            kernel, expansion, reverse or ReverseNeighbours.none(), rows_elsewhere
        )
        self._neighbours = min(neighbours, expansion.rows.shape[1])
        self._dimensions, self._features = dimensions, len(expansion.mean)
        self._reference = ReferenceEngine(kernel, self._index, self._neighbours, dimensions, live)
        self.buffers = buffers or ThreadBuffers()

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        params: KlsaParams,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> list[TopDocs | None]:
        """Return the k best documents of each query, in one call that runs without the GIL.

        Parameters as of `Bm25Engine.top`; a mask changes no score. None for queries of more than
        256 distinct terms, for more than 1,500 seeds, and for an index without documents.
        """
        request = EngineQuery(min(k, self._kernel.size), mask, totals)
        if params.seeds > MAX_SEEDS or not request.k:
            return [None] * len(queries)
        if not_compiled(search_expanded):
            return [self._uncompiled(terms, request, params) for terms in queries]
        answers: list[TopDocs | None] = []
        batch = max(1, KLSA_RESULTS // request.k)
        for begin in range(0, len(queries), batch):
            answers += self._compiled(queries[begin : begin + batch], request, params)
        return answers

    def seeds(self, terms: Sequence[int], params: KlsaParams) -> LocalSeeds | None:
        """Return the best documents of a query among these, with doc ids: see `shared_seeds`.

        None for an index without documents. Queries of more than `MAX_TERMS` distinct terms are
        ranked by the reference, in some ms. At most `MAX_SEEDS` seeds are allowed.
        """
        request = EngineQuery(min(params.best, self._kernel.size))
        if not request.k:
            return None
        if not_compiled(find_seeds) or not fits_engine(terms):
            return self._reference.seeds(terms, params)
        state, queries = self._thread_state(request, params), Queries.of([terms], request.k)
        scratch, numbers = state.scratch, distinct_known(terms)
        steps, latent = np.zeros(request.k, np.int64), np.zeros(params.seeds, np.int32)
        facts, impacts = np.zeros(2), np.zeros((request.k, len(numbers)), np.float32)
        find_seeds(
            scratch.context, state.record, steps, latent, facts, numbers, impacts,
            *queries, *scratch.buffers, *self._postings.arrays, *self._index, *state.workspace,
        )  # fmt: skip
        count = int(queries.counts[0, 0])
        documents = queries.documents[0, :count]
        return LocalSeeds(
            steps[:count],
            documents.astype(np.int64),
            query_impacts(self._kernel, self._index, terms, impacts[:count]),
            latent[:count],
            DocFeatures.of(self._index, documents[: params.seeds]),
            float(facts[0]),
            np.float32(facts[1]),
        )

    def top_shared(
        self,
        terms: Sequence[int],
        k: int,
        params: KlsaParams,
        shared: SharedSeeds,
        mask: Mask | None = None,
        *,
        totals: bool = False,
    ) -> TopDocs:
        """Return the k best of these documents by the seeds of all partitions. See `top`.

        shared  with doc ids of these documents instead of ordinals in `near`
        """
        request = EngineQuery(min(k, self._kernel.size), mask, totals)
        if not request.k:
            return TopDocs(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
        if not_compiled(search_shared) or not fits_engine(terms):
            depths = self.shared_depths(request, params)
            found = self._reference.top(terms, request, params, depths, shared)
            if found is not None:
                return found
        state, queries = self._thread_state(request, params), Queries.of([terms], request.k)
        scratch, depths = state.scratch, self.shared_depths(request, params)
        search_shared(
            scratch.context, *request.arguments(self._postings), parameters_record(params, depths),
            shared_record(shared), *shared.scorer.arrays,
            shared.near.astype(np.int32), shared.estimates,
            distinct_known(terms), *shared.elsewhere,
            *queries, *scratch.buffers, *self._postings.arrays, *self._index, *state.workspace,
        )  # fmt: skip
        (found,) = queries.top_docs()
        assert found is not None  # the reference ranks queries of too many terms
        return found

    def _compiled(
        self, terms: Sequence[Sequence[int]], request: EngineQuery, params: KlsaParams
    ) -> list[TopDocs | None]:
        state, postings = self._thread_state(request, params), self._postings
        queries = Queries.of(terms, request.k)
        scratch = state.scratch
        search_expanded(
            scratch.context, *request.arguments(postings), state.record,
            *queries, *scratch.buffers, *postings.arrays, *self._index, *state.workspace,
        )  # fmt: skip
        return queries.top_docs()

    def _uncompiled(
        self, terms: Sequence[int], request: EngineQuery, params: KlsaParams
    ) -> TopDocs | None:
        """Search by the reference engine, or wait for compiled code if it cannot."""
        if not fits_engine(terms):
            return None
        top = self._reference.top(terms, request, params, self.depths(request, params))
        return self._compiled([terms], request, params)[0] if top is None else top

    def _thread_state(self, request: EngineQuery, params: KlsaParams) -> _ThreadState:
        """Return buffers of this thread, larger ones if needed.

        Those for more than `MAX_RETAINED` results are not retained.
        """
        state = self.buffers.state
        # The depths depend on these alone.
        shape = (
            request.k,
            -1 if request.mask is None else min(request.mask.size, FEW + 1),
            self._kernel.documents,
        )
        if state is not None:
            state.scratch.prepared(self._kernel)
        if state is not None and state.shape == shape and state.params is params:
            return state
        depths = self.depths(request, params)
        matched, best = max(request.k, params.best) + depths.filtered, params.best
        seeds = params.seeds
        if state is None or state.matched < matched or state.best < best or state.seeds < seeds:
            if state is not None:
                matched, best = max(matched, state.matched), max(best, state.best)
                seeds = max(seeds, state.seeds)
            workspace = self._workspace(matched, best, seeds)
            scratch = Scratch(self._kernel.postings, matched).prepared(self._kernel)
            state = _ThreadState(matched, best, seeds, scratch, workspace)
            if matched <= MAX_RETAINED:
                self.buffers.state = state
        state.shape, state.params = shape, params
        state.record = parameters_record(params, depths)
        return state

    def _workspace(self, matched: int, best: int, seeds: int) -> Workspace:
        documents = self._kernel.size
        from_rows = seeds * (self._index.rows.shape[1] + MAX_REVERSE)
        size = matched + min(documents, from_rows) + 1
        scores = np.zeros(size + LANES, np.float32)
        return Workspace(
            slots=np.zeros(self._kernel.size, np.int32),
            is_best=np.zeros(self._kernel.size // 32 + 1, np.uint32),
            documents=np.zeros(size, np.int32),
            lexical=np.zeros(matched + 1, np.float32),
            expanded=np.zeros(size, np.float32),
            covered=np.zeros(matched + 1, np.float32),
            scores=scores,
            bits=scores.view(np.int32),
            chosen=np.zeros(size, np.int32),
            keys=np.zeros(size, np.int64),
            sort_buffer=np.zeros(size, np.int64),
            remaining=np.zeros(best + 1, np.int32),
            impacts=np.zeros(MAX_TERMS * (best + 1), np.float32),
            near=np.zeros(self._neighbours + 1, np.int32),
            shares=np.zeros(self._neighbours + 1, np.float32),
            hits=np.zeros(SCAN_CHUNK, np.uint32),
            term_weights=np.zeros(MAX_TERMS, np.float32),
            neighbour_impacts=np.zeros(TERM_GROUP, np.float32),
            exact=np.zeros(size, np.float32),
            half=np.ones(MAX_TERMS, np.float32),
            weights=np.zeros(seeds, np.float32),
            sums=np.zeros(self._features, np.int16),
            query_vector=np.zeros(self._index.document_vectors.shape[1], np.int16),
            query_floats=np.zeros(self._dimensions, np.float32),
            elsewhere=np.zeros(best, np.uint32),
            elsewhere_filter=np.zeros(FILTER, np.bool_),
        )

    def shared_depths(self, request: EngineQuery, params: KlsaParams) -> RerankDepths:
        """Return how many candidates are rescored in one of several partitions."""
        return self.depths(request, params, SHARED_COVERAGE_DEPTH)

    def depths(
        self,
        request: EngineQuery,
        params: KlsaParams,
        coverage: tuple[int, int] = COVERAGE_DEPTH,
    ) -> RerankDepths:
        """Return how many candidates are rescored.

        coverage  limits of the number whose T is computed exactly
        """
        documents, mask = self._kernel.size, request.mask
        filtered = 0 if mask is None else max(request.k, params.best)
        if mask is not None and mask.size <= FEW:
            depth = max(FILTERED_DEPTH, 10 * request.k)
            if mask.size <= depth:
                depth = documents
            return RerankDepths(documents, depth, mask.size, True)
        if self._small and request.k >= min(ALL_CANDIDATES, self._kernel.documents):
            return RerankDepths(documents, documents, filtered, False)
        return RerankDepths(
            min(max(coverage[0], 8 * request.k), coverage[1]),
            min(max(EXPANSION_DEPTH[0], 3 * request.k), EXPANSION_DEPTH[1]),
            filtered,
            False,
        )


@dataclass(slots=True)
class _ThreadState:
    matched: int  # capacity for results of the query kernel
    best: int
    seeds: int
    scratch: Scratch
    workspace: Workspace
    # of the last query
    shape: tuple[int, int, int] | None = None
    params: KlsaParams | None = None
    record: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(1, PARAMETERS))
