"""A shard: a range of documents, what it returns, and how results are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.messages import (
    Floats,
    RerankRequest,
    RerankScores,
    Rows,
    ShardCandidates,
    ShardHits,
    ShardRequest,
)
from klsa_search.core.array_types import DocIds, values_at
from klsa_search.kernels.postings import Postings
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.kernels.segments import ALIGNED, Segment, Segments
from klsa_search.search.engine.engine import Bm25Engine
from klsa_search.search.engine.formulas import (
    DocFeatures,
    Entries,
    QueryVector,
    coverage_scores,
    term_saturations,
)
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.reverse_neighbours import ReverseNeighbours
from klsa_search.search.engine.seeds import KlsaParams
from klsa_search.search.engine.workspace import IndexArrays
from klsa_search.search.snapshot import Snapshot

_Numbers = npt.NDArray[np.int64]


class Seeds(NamedTuple):
    """Data of the seeds, in their order."""

    rows: Rows
    features: DocFeatures
    vectors: npt.NDArray[np.int8]

    def nearest(self, count: int) -> Entries:
        """Return the nearest neighbours of each seed: (z, count)."""
        firsts = np.flatnonzero(np.diff(self.rows.documents, prepend=-1) != 0)
        return self.rows.entries[firsts][:, :count]


def merged(lists: Sequence[tuple[DocIds, _Numbers]], count: int) -> tuple[_Numbers, _Numbers]:
    """Merge lists of documents and integer scores into the best `count`; ties by doc id."""
    documents = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in lists)])
    steps = np.concatenate([np.zeros(0, np.int64), *(each for _, each in lists)])
    order = np.lexsort((documents, -steps))[:count]
    return documents[order], steps[order]


def gathered(
    documents: _Numbers, returned: Sequence[DocIds], rows: Sequence[npt.NDArray[np.uint16]]
) -> npt.NDArray[np.uint16]:
    """Return the rows of some documents, from those that each shard returned for its own."""
    every = np.concatenate(returned)
    order = np.argsort(every)
    return np.concatenate(rows)[order[np.searchsorted(every[order], documents)]]


def seed_data(found: Sequence[ShardHits], seeds: _Numbers) -> Seeds:
    """Gather the data of the seeds from the answers of all shards."""
    of = {
        int(document): (each, at)
        for each in found
        for at, document in enumerate(each.documents[: len(each.vectors)])
    }
    documents, entries, steps, features, facts, vectors = [], [], [], [], [], []
    for seed in seeds.tolist():
        each, at = of[seed]
        own = np.flatnonzero(each.rows.documents == seed)
        documents.append(each.rows.documents[own])
        entries.append(each.rows.entries[own])
        steps.append(each.rows.steps[own])
        features.append(each.features.entries[slice(*each.features.starts[at : at + 2])])
        facts.append(each.features.document_scalars[at])
        vectors.append(each.vectors[at])
    starts = np.cumsum([0, *map(len, features)])
    return Seeds(
        Rows(np.concatenate(documents), np.concatenate(entries), np.concatenate(steps)),
        DocFeatures(starts, np.concatenate(features), np.array(facts, np.float32)),
        np.array(vectors, np.int8),
    )


def weighted_rows(
    rows: Rows, seeds: _Numbers, weights: Floats, params: KlsaParams
) -> Iterator[tuple[Entries, np.float32]]:
    """Yield the rows of seeds with positive weight, with the value of a quantisation step."""
    of = dict(zip(seeds.tolist(), weights, strict=True))
    for document, entries, step in zip(
        rows.documents.tolist(), rows.entries, rows.steps, strict=True
    ):
        weight = of[document]
        if weight > 0:
            yield entries, np.float32(params.slope) * weight * step


class Share:
    """Doc ids of a shard: a range of those of the build, and every n-th of later ones.

    built   number of doc ids of the build
    number  number of the shard, of `shards`
    """

    def __init__(self, built: int, number: int, shards: int) -> None:
        self.built, self.number, self.shards = built, number, shards
        edges = [built * each // shards // ALIGNED * ALIGNED for each in (number, number + 1)]
        self.first, self.after = edges[0], built if number + 1 == shards else edges[1]

    def of(self, array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return the elements of an array by doc id that belong to the shard."""
        later = array[self.built :][self._later(len(array) - self.built)]
        return np.concatenate((array[self.first : self.after], later))

    def spread(self, own: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.bool_]:
        """Return a mask of all doc ids from one of the shard's: (size,). Inverse of `of`."""
        allowed = np.zeros(size, np.bool_)
        width = self.after - self.first
        allowed[self.first : self.after] = own[:width]
        allowed[self.built :][self._later(size - self.built)] = own[width:]
        return allowed

    def holds(self, documents: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Return whether each document belongs to the shard."""
        own = (documents >= self.first) & (documents < self.after)
        later = documents - self.built
        return np.asarray(own | (later >= 0) & (later % self.shards == self.number))

    def held(self, size: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the doc ids of the shard: (size,)."""
        return self.spread(np.ones(self.count(size), np.bool_), size)

    def count(self, size: int) -> int:
        """Return the number of doc ids of the shard, of `size` in all."""
        return self.after - self.first + len(range(self.number, size - self.built, self.shards))

    def _later(self, count: int) -> slice:
        return slice(self.number, count, self.shards)


def shard_postings(snapshot: Snapshot, share: Share) -> Postings:
    """Return the postings of the documents of a shard that are of the build: see `between`."""
    return snapshot.query_kernel.postings.parts[0].postings.between(share.first, share.after)


class Shard:
    """Searches the documents of a shard; immutable.

    snapshot  snapshot of the whole index; its arrays are memory-mapped
    share     doc ids of the shard
    postings  postings of those of the build, which snapshots share
    """

    def __init__(self, snapshot: Snapshot, share: Share, postings: Postings) -> None:
        cut = snapshot.sparse_expansion
        if cut is None:
            raise ValueError("shards need a sparse expansion")
        self._share = share
        own = share.held(len(snapshot))
        self._own = Mask(own if snapshot.live is None else own & snapshot.live.allowed)
        whole = snapshot.query_kernel
        parts = Segment(share.first, postings), *whole.postings.parts[1:]
        segments = Segments(parts, whole.postings.terms)
        # `documents` tells the engine how many of the postings belong to live documents.
        held = int(np.count_nonzero(self._own.allowed))
        self._kernel: QueryKernel = replace(whole, postings=segments, documents=held)
        self._engine = Bm25Engine(self._kernel, self._own)
        self._held = IndexArrays.of(whole, cut, snapshot.reverse or ReverseNeighbours.none())
        self._neighbours = min(snapshot.neighbour_count, cut.rows.shape[1])

    @property
    def size(self) -> int:
        """Number of doc ids of the shard, including deleted documents."""
        return self._share.count(len(self._own.allowed))

    def mask(self, allowed: npt.NDArray[np.bool_]) -> Mask:
        """Return a mask of all doc ids from one of the shard's."""
        return Mask(self._share.spread(allowed, len(self._own.allowed)) & self._own.allowed)

    def best(self, request: ShardRequest, mask: Mask | None) -> ShardHits:
        """Answer round 1. Cost: a search by the query kernel, and another one with a mask."""
        counting = request.totals and mask is None
        documents, steps, total = self._steps(request, request.results, None, counting)
        allowed, allowed_steps = documents[:0], steps[:0]
        if mask is not None:
            allowed, allowed_steps, total = self._steps(
                request, request.within, mask, request.totals
            )
        seeds, held = documents[: request.seeds], self._held
        best = documents[: request.best]
        return ShardHits(
            documents.copy(),
            steps.copy(),
            allowed.copy(),
            allowed_steps.copy(),
            total,
            term_saturations(self._kernel.postings, request.query.terms, best),
            self._rows(seeds),
            DocFeatures.of(held, seeds),
            held.document_vectors[seeds],
        )

    def scores(self, request: RerankRequest, candidates: ShardCandidates) -> RerankScores:
        """Answer round 2. Cost: reads the vectors of the candidates, and the features of some."""
        scores = self._initial_scores(request, candidates)
        return self._rescore(request, candidates, scores, _highest(scores, request.depth))

    def _steps(
        self, request: ShardRequest, count: int, mask: Mask | None, totals: bool
    ) -> tuple[DocIds, npt.NDArray[np.int64], int]:
        if not count:
            return np.zeros(0, np.int32), np.zeros(0, np.int64), 0
        return self._engine.steps(request.numbers, count, mask, totals=totals)

    def _initial_scores(self, request: RerankRequest, candidates: ShardCandidates) -> Floats:
        """Return the scores of the candidates with the latent part."""
        if not request.latent:
            return candidates.scores
        place = QueryVector(request.place, np.float32(0))
        cosines = place.cosines(self._held.document_vectors[candidates.documents], clip=request.cut)
        return candidates.scores + request.factors.latent * cosines

    def _rescore(
        self,
        request: RerankRequest,
        candidates: ShardCandidates,
        scores: Floats,
        chosen: npt.NDArray[np.int64],
    ) -> RerankScores:
        documents = candidates.documents[chosen]
        gained = self._coverage_gain(request, candidates, chosen)
        exact = request.compared(DocFeatures.of(self._held, documents))
        compared = request.factors.expansion * (exact - candidates.expanded[chosen])
        return RerankScores(
            documents, scores[chosen], gained, compared, self._count_unmatched(request, candidates)
        )

    def _count_unmatched(self, request: RerankRequest, candidates: ShardCandidates) -> int:
        """Count the candidates that contain no term of the query."""
        if not len(request.count_terms):
            return 0
        held = term_saturations(self._kernel.postings, request.count_terms, candidates.documents)
        return int(np.count_nonzero(~held.any(axis=1)))

    def _coverage_gain(
        self, request: RerankRequest, candidates: ShardCandidates, chosen: npt.NDArray[np.int64]
    ) -> Floats:
        """Return what the coverage of their neighbours adds to some of the candidates."""
        if not request.has_coverage:
            return np.zeros(len(chosen), np.float32)
        documents = candidates.documents[chosen]
        near = self._held.rows[documents, : self._neighbours]
        exact = coverage_scores(
            near, _places(request, near >> np.uint32(8)), _places(request, documents), request.terms
        )
        return np.asarray(request.factors.coverage * (exact - candidates.own_coverage[chosen]))

    def _rows(self, documents: DocIds) -> Rows:
        held = self._held
        of, entries, steps = [], [held.rows[:0]], []
        for document in documents.tolist():
            of.append(document)
            entries.append(held.rows[document : document + 1])
            steps.append(held.scales[document, 0])
            if len(held.reverse_row) and held.reverse_row[document]:
                later = held.reverse_row[document] - 1
                row = np.zeros((1, held.rows.shape[1]), np.uint32)
                row[0, : held.reverse_rows.shape[1]] = held.reverse_rows[later]
                of.append(document)
                entries.append(row)
                steps.append(held.reverse_steps[later])
        return Rows(np.array(of, np.int32), np.concatenate(entries), np.array(steps, np.float32))


def _places(request: RerankRequest, documents: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return the rank of each document among the best, or -1."""
    return values_at(documents, request.best, request.places, missing=-1)


def _highest(scores: Floats, count: int) -> npt.NDArray[np.int64]:
    """Return the indices of the highest scores with ties; all if few are above 0."""
    if len(scores) <= count or np.count_nonzero(scores > 0) <= count:
        return np.arange(len(scores))
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    return np.flatnonzero(scores >= least)
