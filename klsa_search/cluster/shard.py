"""A shard: a range of documents, what it returns, and how results are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.messages import (
    Candidates,
    Floats,
    Found,
    Known,
    Rows,
    Scored,
    ShardRequest,
)
from klsa_search.core.array_types import Positions, values_at
from klsa_search.kernels.postings import Postings
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.kernels.segments import ALIGNED, Segment, Segments
from klsa_search.search.engine.engine import Engine
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
    """What was returned for the seeds, in their order."""

    rows: Rows
    features: DocFeatures
    cards: npt.NDArray[np.int8]

    def nearest(self, count: int) -> Entries:
        """The nearest of each: (z, count)."""
        firsts = np.flatnonzero(np.diff(self.rows.documents, prepend=-1) != 0)
        return self.rows.entries[firsts][:, :count]


def merged(lists: Sequence[tuple[Positions, _Numbers]], count: int) -> tuple[_Numbers, _Numbers]:
    """The best of several lists of documents and steps, ties by document order."""
    documents = np.concatenate([np.zeros(0, np.int64), *(each for each, _ in lists)])
    steps = np.concatenate([np.zeros(0, np.int64), *(each for _, each in lists)])
    order = np.lexsort((documents, -steps))[:count]
    return documents[order], steps[order]


def gathered(
    documents: _Numbers, returned: Sequence[Positions], rows: Sequence[npt.NDArray[np.uint16]]
) -> npt.NDArray[np.uint16]:
    """Rows of some documents out of those returned, of each shard for its own documents."""
    every = np.concatenate(returned)
    order = np.argsort(every)
    return np.concatenate(rows)[order[np.searchsorted(every[order], documents)]]


def of_seeds(found: Sequence[Found], seeds: _Numbers) -> Seeds:
    """Gather what was returned for the seeds."""
    of = {
        int(document): (each, at)
        for each in found
        for at, document in enumerate(each.documents[: len(each.cards)])
    }
    documents, entries, steps, features, facts, cards = [], [], [], [], [], []
    for seed in seeds.tolist():
        each, at = of[seed]
        own = np.flatnonzero(each.rows.documents == seed)
        documents.append(each.rows.documents[own])
        entries.append(each.rows.entries[own])
        steps.append(each.rows.steps[own])
        features.append(each.features.entries[slice(*each.features.starts[at : at + 2])])
        facts.append(each.features.document_scalars[at])
        cards.append(each.cards[at])
    starts = np.cumsum([0, *map(len, features)])
    return Seeds(
        Rows(np.concatenate(documents), np.concatenate(entries), np.concatenate(steps)),
        DocFeatures(starts, np.concatenate(features), np.array(facts, np.float32)),
        np.array(cards, np.int8),
    )


def weighed(
    rows: Rows, seeds: _Numbers, weights: Floats, mix: KlsaParams
) -> Iterator[tuple[Entries, np.float32]]:
    """Rows of the seeds that count, and what a level of each is worth."""
    of = dict(zip(seeds.tolist(), weights, strict=True))
    for document, entries, step in zip(
        rows.documents.tolist(), rows.entries, rows.steps, strict=True
    ):
        weight = of[document]
        if weight > 0:
            yield entries, np.float32(mix.slope) * weight * step


class Share:
    """Which positions are of a shard: consecutive ones of the build, and every so many later ones.

    built          positions of the build
    number, shards  which of how many it is
    """

    def __init__(self, built: int, number: int, shards: int) -> None:
        self.built, self.number, self.shards = built, number, shards
        edges = [built * each // shards // ALIGNED * ALIGNED for each in (number, number + 1)]
        self.first, self.after = edges[0], built if number + 1 == shards else edges[1]

    def of(self, array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Of an array of all positions, those of the shard, one after the other."""
        later = array[self.built :][self._later(len(array) - self.built)]
        return np.concatenate((array[self.first : self.after], later))

    def spread(self, own: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.bool_]:
        """Of all positions those that `own` has of the shard's: (size,)."""
        allowed = np.zeros(size, np.bool_)
        width = self.after - self.first
        allowed[self.first : self.after] = own[:width]
        allowed[self.built :][self._later(size - self.built)] = own[width:]
        return allowed

    def holds(self, documents: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Whether each of these documents is the shard's."""
        own = (documents >= self.first) & (documents < self.after)
        later = documents - self.built
        return np.asarray(own | (later >= 0) & (later % self.shards == self.number))

    def held(self, size: int) -> npt.NDArray[np.bool_]:
        """Whether each position is the shard's: (size,)."""
        return self.spread(np.ones(self.count(size), np.bool_), size)

    def count(self, size: int) -> int:
        """Positions of the shard."""
        return self.after - self.first + len(range(self.number, size - self.built, self.shards))

    def _later(self, count: int) -> slice:
        return slice(self.number, count, self.shards)


def own_postings(snapshot: Snapshot, share: Share) -> Postings:
    """Cut the postings of the build's documents in a shard out of all. Cost: see `between`."""
    return snapshot.bm25.postings.parts[0].postings.between(share.first, share.after)


class Shard:
    """Answers for its documents as a whole index would; immutable.

    snapshot  of the whole index: arrays of all documents are mapped, and read for its own alone
    share     which these are
    postings  of the build's among them, which a snapshot after writes shares with one before
    """

    def __init__(self, snapshot: Snapshot, share: Share, postings: Postings) -> None:
        cut = snapshot.sparse_expansion
        if cut is None:
            raise ValueError("shards need a sparse expansion")
        self._share = share
        own = share.held(len(snapshot))
        self._own = Mask(own if snapshot.live is None else own & snapshot.live.allowed)
        whole = snapshot.bm25
        parts = Segment(share.first, postings), *whole.postings.parts[1:]
        segments = Segments(parts, whole.postings.terms)
        # What is looked for is how many of its own postings are of no document of its own.
        held = int(np.count_nonzero(self._own.allowed))
        self._kernel: QueryKernel = replace(whole, postings=segments, documents=held)
        self._engine = Engine(self._kernel, self._own)
        self._held = IndexArrays.of(whole, cut, snapshot.reverse or ReverseNeighbours.none())
        self._neighbours = min(snapshot.neighbour_count, cut.rows.shape[1])

    @property
    def size(self) -> int:
        """Positions it has, those of documents that are gone among them."""
        return self._share.count(len(self._own.allowed))

    def mask(self, allowed: npt.NDArray[np.bool_]) -> Mask:
        """The mask of which these are the shard's positions, in their order."""
        return Mask(self._share.spread(allowed, len(self._own.allowed)) & self._own.allowed)

    def best(self, wanted: ShardRequest, mask: Mask | None) -> Found:
        """Answer the first round. Cost: a search by the query kernel, with a mask another one."""
        counting = wanted.totals and mask is None
        documents, steps, total = self._steps(wanted, wanted.results, None, counting)
        allowed, allowed_steps = documents[:0], steps[:0]
        if mask is not None:
            allowed, allowed_steps, total = self._steps(wanted, wanted.within, mask, wanted.totals)
        seeds, held = documents[: wanted.seeds], self._held
        best = documents[: wanted.best]
        return Found(
            documents.copy(),
            steps.copy(),
            allowed.copy(),
            allowed_steps.copy(),
            total,
            term_saturations(self._kernel.postings, wanted.query.terms, best),
            self._rows(seeds),
            DocFeatures.of(held, seeds),
            held.document_vectors[seeds],
        )

    def scores(self, known: Known, asked: Candidates) -> Scored:
        """Answer the second round. Cost: the cards of the candidates, the features of some."""
        scores = self._first(known, asked)
        foremost = _foremost(scores, known.foremost)
        return self._looked_at(known, asked, scores, foremost)

    def _steps(
        self, wanted: ShardRequest, count: int, mask: Mask | None, totals: bool
    ) -> tuple[Positions, npt.NDArray[np.int64], int]:
        if not count:
            return np.zeros(0, np.int32), np.zeros(0, np.int64), 0
        return self._engine.steps(wanted.numbers, count, mask, totals=totals)

    def _first(self, known: Known, asked: Candidates) -> Floats:
        """First scores of the candidates: what is left of them is where they lie."""
        if not known.latent:
            return asked.scores
        place = QueryVector(known.place, np.float32(0))
        cosines = place.cosines(self._held.document_vectors[asked.documents], clip=known.cut)
        return asked.scores + known.factors.latent * cosines

    def _looked_at(
        self, known: Known, asked: Candidates, scores: Floats, chosen: npt.NDArray[np.int64]
    ) -> Scored:
        documents = asked.documents[chosen]
        gained = self._gained(known, asked, chosen)
        exact = known.compared(DocFeatures.of(self._held, documents))
        compared = known.factors.expansion * (exact - asked.expanded[chosen])
        return Scored(documents, scores[chosen], gained, compared, self._without(known, asked))

    def _without(self, known: Known, asked: Candidates) -> int:
        """Count the candidates that contain no term of the query."""
        if not len(known.counted):
            return 0
        held = term_saturations(self._kernel.postings, known.counted, asked.documents)
        return int(np.count_nonzero(~held.any(axis=1)))

    def _gained(self, known: Known, asked: Candidates, chosen: npt.NDArray[np.int64]) -> Floats:
        """What a look at what is near adds to some of the candidates."""
        if not known.covers:
            return np.zeros(len(chosen), np.float32)
        documents = asked.documents[chosen]
        near = self._held.rows[documents, : self._neighbours]
        exact = coverage_scores(
            near, _places(known, near >> np.uint32(8)), _places(known, documents), known.terms
        )
        return np.asarray(known.factors.coverage * (exact - asked.alone[chosen]))

    def _rows(self, documents: Positions) -> Rows:
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


def _places(known: Known, documents: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Which of the best each document is; -1 for others."""
    return values_at(documents, known.best, known.places, missing=-1)


def _foremost(scores: Floats, wanted: int) -> npt.NDArray[np.int64]:
    """Places of the highest scores, and of those equal to the last; all where few are above 0."""
    if len(scores) <= wanted or np.count_nonzero(scores > 0) <= wanted:
        return np.arange(len(scores))
    least = np.partition(scores, len(scores) - wanted)[len(scores) - wanted]
    return np.flatnonzero(scores >= least)
