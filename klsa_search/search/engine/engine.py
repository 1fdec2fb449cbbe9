"""The engines: from term numbers to the k best documents, by BM25 or the default ranking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import IntFlag
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search._native import LocalSeeds, SharedSeeds
from klsa_search.core.array_types import DocIds, DocumentMask, Integers, Numbers, Scores
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.lowrank.sparse_expansion import LEVELS, SegmentedExpansion
from klsa_search.search.engine.mask import FEW, Mask
from klsa_search.search.engine.reverse_neighbours import ReverseNeighbours
from klsa_search.search.engine.top_docs import (
    ALL_CANDIDATES,
    NO_HITS,
    NOTHING,
    ResultArrays,
    TopDocs,
)

MAX_SEEDS: Final = 1_500
"""Seeds of a query: each may round up the sum of a feature, of 16 bits, by half a step."""


class KlsaParams(NamedTuple):
    """Parameters of the default ranking, see `search.rankers.klsa`."""

    seeds: int  # z, at most N
    best: int  # at least `seeds`, at most N
    alpha: float  # largest share of expansion, coverage and latent together
    hold_back: float  # part of alpha subtracted if the first document contains the whole query
    expansion: float  # shares within alpha
    coverage: float
    latent: float
    sharpness: float
    lexical_sharpness: float
    coverage_power: float
    unit_length: bool
    slope: float  # of D over K
    mean_square: float


class RerankDepths(NamedTuple):
    """How many candidates are rescored."""

    coverage_depth: int  # candidates whose T is computed exactly
    expansion_depth: int  # candidates whose E is computed exactly
    filtered: int  # best documents within a mask that are candidates
    look_up_all: bool  # the mask has at most `filtered` documents: look up each


class DocFeatures(NamedTuple):
    """Features of some documents.

    starts   (n + 1,) offsets of each document in `entries`
    entries  of a feature: its number in the upper 24 bits, a level in the lower 8
    document_scalars  (n, 3) float32: their step, S and SΦμ
    """

    starts: Numbers
    entries: npt.NDArray[np.uint32]
    document_scalars: npt.NDArray[np.float32]

    @classmethod
    def of(cls, expansion: SegmentedExpansion, documents: DocIds) -> DocFeatures:
        """Return the features of documents of an index. Cost: their entries."""
        return cls(*expansion.features(documents), expansion.document_scalars(documents))

    def at(self, position: int) -> tuple[Numbers, npt.NDArray[np.float64]]:
        """Return numbers and values of the features of one of the documents."""
        entries = self.entries[self.starts[position] : self.starts[position + 1]]
        levels = (entries & np.uint32(LEVELS)).astype(np.float64)
        return (entries >> np.uint32(8)).astype(np.int64), self.document_scalars[
            position, 0
        ] * levels


class SeedRows(NamedTuple):
    """Rows of D of n documents, with their entries in all partitions.

    documents  (n, w) ordinals of the entries, strongest first, then reverse entries
    levels     (n, w) of the entries, 0 for none
    steps      (n, 2) value of one level, and of one level of reverse entries
    width      number of entries of a row that are not reverse entries
    near       number of entries of a row that count for coverage, the first ones
    """

    documents: Numbers
    levels: npt.NDArray[np.uint8]
    steps: npt.NDArray[np.float32]
    width: int
    near: int

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """Return the value of one level of each entry: (n, w)."""
        reverse = self.documents.shape[1] - self.width
        return np.repeat(self.steps, (self.width, reverse), axis=1)


class Exact(IntFlag):
    """Parts of a score of the default ranking that are not estimates."""

    EXPANSION = 1
    COVERAGE = 2
    LEXICAL = 4
    ALL = 7


class ScoreDetails(NamedTuple):
    """What the scores of n documents by the default ranking consist of, in units of the score.

    alpha      α(q)
    seeds      (z,) doc ids; none if they are of several partitions: see `SharedSeeds`
    weights    (z,) of the seeds
    exact      (n,) which parts are not estimates: see `Exact`
    expansion, latent, lexical  (n,)
    by_seed    (n, z) what each seed adds to the exact expansion, but for rounding
    coverage   (n, terms) what each distinct term of the query adds, in its order
    impacts    (n, terms) of the terms in the document, if it is among the best, in steps of BM25
    neighbours  (n, h) documents that lend it terms: doc ids, -1 for none, -2 - i for the i-th
               remote one of `SharedSeeds`
    lent       (n, h, terms) what each lends, in steps of BM25
    """

    alpha: float
    seeds: DocIds
    weights: Scores
    exact: npt.NDArray[np.uint8]
    expansion: Scores
    latent: Scores
    lexical: Scores
    by_seed: npt.NDArray[np.float32]
    coverage: npt.NDArray[np.float32]
    impacts: npt.NDArray[np.float32]
    neighbours: npt.NDArray[np.int32]
    lent: npt.NDArray[np.float32]


class Bm25Engine:
    """Exact BM25 over postings; immutable and thread-safe.

    Searches at the same time use buffers of their own: a block of scores and 40 bytes per result.
    Those of queries for more than 16,384 results are not reused. Results equal the best of
    `Postings.steps` to the bit, for any number of threads.

    live  mask of the live documents, if some are deleted
    """

    def __init__(self, kernel: QueryKernel, live: Mask | None = None) -> None:
        self._size = kernel.size
        self._engine = _engine(kernel, live)

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        mask: Mask | None = None,
        *,
        totals: bool = False,
        matches: bool = False,
    ) -> list[TopDocs]:
        """Return the k best documents of each query, in one call that runs without the GIL.

        queries  term numbers in query order, repetitions included, negative if unknown
        mask     documents that may be returned, a subset of the live ones; None for all of them
        totals   whether to count the documents that contain a term
        matches  whether to count them and to return which they are
        Cost     0.3 ns for each posting in blocks that can contain one of the k best, and 3 µs; a
                 mask or totals need one pass over the postings.
        Memory   8 bytes for each of k results of each query
        """
        k = min(k, self._size)
        if not k:
            return [NOTHING] * len(queries)
        results = ResultArrays(len(queries), k, self._size, matches=matches)
        counts = self._engine.bm25(
            queries, _words(mask), totals, results.matches, results.documents, results.scores
        )
        return results.tops(counts, estimates=False)

    def containing_all(self, terms: Iterable[int]) -> DocIds:
        """Return the documents that contain all of some terms, at least one, ascending.

        Deleted ones are among them. Cost: the postings of the rarest term.
        """
        return self._engine.containing_all([*terms])

    def containing_any(self, terms: Iterable[int]) -> DocumentMask:
        """Return which documents contain any of some terms: (N,). Cost: their postings."""
        return self._engine.containing_any([*terms])

    def counts_within(self, terms: Collection[int], allowed: DocumentMask) -> dict[int, int]:
        """Count the documents of a mask, (N,), that contain each term. Cost: its postings."""
        counts = self._engine.count_within([*terms], contiguous(allowed, np.bool_))
        return dict(zip(terms, counts.tolist(), strict=True))

    def saturations(self, terms: Integers, doc_ids: DocIds) -> npt.NDArray[np.uint16]:
        """Return the saturations of terms in documents, in 65,536ths, 0 for none: (n, terms).

        Cost: 50 ns for each.
        """
        return self._engine.saturations(contiguous(terms, np.int64), contiguous(doc_ids, np.int64))


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


class KlsaEngine:
    """The default ranking; immutable and thread-safe.

    Searches at the same time use buffers of their own: 4 bytes per document, 2 per feature, 60 per
    candidate and, for each of the best, 4 per term. Those of queries for more than 16,384 results
    are not reused. `native/engine/rank.hpp` says what is exact. Results do not depend on the number
    of threads. Parameters are those of a `Snapshot`.
    """

    def __init__(
        self,
        kernel: QueryKernel,
        model: _native.ExpansionModel,
        live: Mask | None,
        reverse: ReverseNeighbours | None,
        *,
        small: bool,
    ) -> None:
        self._kernel, self._size, self._small = kernel, kernel.size, small
        self._engine = _engine(kernel, live, model, reverse)

    def top(
        self,
        queries: Sequence[Sequence[int]],
        k: int,
        params: KlsaParams,
        mask: Mask | None = None,
        *,
        totals: bool = False,
        matches: bool = False,
    ) -> list[TopDocs] | None:
        """Return the k best documents of each query, in one call that runs without the GIL.

        Parameters as of `Bm25Engine.top`; a mask changes no score. None for more than 1,500 seeds,
        and for an index without documents.
        """
        k = min(k, self._size)
        if params.seeds > MAX_SEEDS or not k:
            return None
        results = ResultArrays(len(queries), k, self._size, matches=matches)
        depths = self.depths(k, mask, params)
        return results.tops(
            self._engine.score(queries, params, depths, _words(mask), totals, *results.arrays)
        )

    def explain(
        self,
        terms: Sequence[int],
        doc_ids: DocIds,
        exact: npt.NDArray[np.uint8],
        params: KlsaParams,
        shared: SharedSeeds | None = None,
    ) -> ScoreDetails:
        """Return what the scores of documents consist of.

        exact   which parts of each score are not estimates: see `TopDocs`
        shared  as of `top_shared`, with names
        Parts add up to the score, but for rounding of single floats. Cost: of `top`, and for each
        document that of its features and those of all seeds: some 10 µs.
        """
        documents = contiguous(doc_ids, np.int32)
        return ScoreDetails(*self._engine.explain(terms, documents, exact, params, shared))

    def seeds(self, terms: Sequence[int], params: KlsaParams) -> LocalSeeds | None:
        """Return the best documents of a query among these: see `share_seeds`.

        None for an index without documents. At most `MAX_SEEDS` seeds are allowed.
        """
        if not self._size:
            return None
        return self._engine.seeds(terms, params)

    def rows(self, documents: DocIds) -> SeedRows:
        """Return the rows of D of documents, with their entries in all partitions."""
        return SeedRows(*self._engine.rows(contiguous(documents, np.int64)))

    def top_shared(
        self,
        terms: Sequence[int],
        k: int,
        params: KlsaParams,
        shared: SharedSeeds,
        mask: Mask | None = None,
        *,
        totals: bool = False,
        matches: bool = False,
        local: LocalSeeds | None = None,
    ) -> TopDocs:
        """Return the k best of these documents by the seeds of all partitions. See `top`.

        local  what `seeds` returned for the query, so that postings are not read again
        """
        k = min(k, self._size)
        if not k:
            return NO_HITS
        results = ResultArrays(1, k, self._size, matches=matches)
        depths, words = self.depths(k, mask, params, SHARED_COVERAGE_DEPTH), _words(mask)
        count = self._engine.score_shared(
            terms, params, depths, shared, local, words, totals, *results.arrays
        )
        return results.tops([count])[0]

    @staticmethod
    def top_of_all(
        parts: Sequence[tuple[KlsaEngine, Sequence[int], KlsaParams]], k: int
    ) -> list[TopDocs]:
        """Return the k best documents of each partition of this process by the seeds of all.

        parts  engine of each partition, the query by its numbers of terms, and parameters
        One call that runs without the GIL, with results and totals of `seeds` and `top_shared`.
        """
        tops = [NO_HITS] * len(parts)
        numbers = [number for number, (engine, *_) in enumerate(parts) if engine._size]
        if not numbers:
            return tops
        k = min(k, max(parts[number][0]._size for number in numbers))
        results = ResultArrays(len(numbers), k, 0)
        searched = []
        for number in numbers:
            engine, terms, params = parts[number]
            depths = engine.depths(min(k, engine._size), None, params, SHARED_COVERAGE_DEPTH)
            searched.append((engine._engine, terms, params, depths))
        step = parts[numbers[0]][0]._kernel.postings.step
        counts = _native.Engine.score_all(searched, step, True, *results.arrays[1:])
        for number, top in zip(numbers, results.tops(counts), strict=True):
            tops[number] = top
        return tops

    def depths(
        self,
        k: int,
        mask: Mask | None,
        params: KlsaParams,
        coverage: tuple[int, int] = COVERAGE_DEPTH,
    ) -> RerankDepths:
        """Return how many candidates are rescored for k results.

        coverage  limits of the number whose T is computed exactly: `SHARED_COVERAGE_DEPTH` in one
                  partition of several
        """
        documents = self._size
        if mask is not None and mask.size <= FEW:
            depth = max(FILTERED_DEPTH, 10 * k)
            if mask.size <= depth:
                depth = documents
            return RerankDepths(documents, depth, mask.size, True)
        filtered = 0 if mask is None else max(k, params.best)
        if self._small and k >= min(ALL_CANDIDATES, self._kernel.counts.documents):
            return RerankDepths(documents, documents, filtered, False)
        return _depths(k, filtered, coverage)


@lru_cache
def _depths(k: int, filtered: int, coverage: tuple[int, int]) -> RerankDepths:
    by_coverage = min(max(coverage[0], 8 * k), coverage[1])
    by_expansion = min(max(EXPANSION_DEPTH[0], 3 * k), EXPANSION_DEPTH[1])
    return RerankDepths(by_coverage, by_expansion, filtered, False)


def _words(mask: Mask | None) -> npt.NDArray[np.uint64] | None:
    return None if mask is None else mask.words


def _engine(
    kernel: QueryKernel,
    live: Mask | None,
    model: _native.ExpansionModel | None = None,
    reverse: ReverseNeighbours | None = None,
) -> _native.Engine:
    postings = kernel.postings
    return _native.Engine(
        segments=[
            (part.first, part.postings.native, part.terms, part.local_terms)
            for part in postings.parts
        ],
        weights=kernel.native,
        best=contiguous(postings.best, np.uint16),
        step=postings.step,
        deleted=postings.size - kernel.local_counts.documents,
        live=None if live is None else live.words,
        model=model,
        reverse=None if reverse is None else (reverse.row_of, reverse.rows, reverse.steps),
    )


def contiguous(array: npt.NDArray[Any], kind: Any) -> Any:
    """View an array as native code takes it, or copy it if it has another type or order."""
    return np.ascontiguousarray(array, kind)
