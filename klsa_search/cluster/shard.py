"""A shard: some of the documents of an index, and what they answer for themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions, values_at
from klsa_search.cluster.messages import Candidates, Floats, Found, Known, Rows, Scored, Wanted
from klsa_search.kernel.postings import Postings
from klsa_search.kernel.query import QueryKernel
from klsa_search.kernel.segments import ALIGNED, Segment, Segments
from klsa_search.search.engine import Engine, Mask
from klsa_search.search.engine.comparing import Features, Place
from klsa_search.search.engine.formulas import covered, saturations_of
from klsa_search.search.engine.reverse import Reverse
from klsa_search.search.engine.room import Held
from klsa_search.search.snapshot import Snapshot


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
        cut = snapshot.cut
        if cut is None:
            raise ValueError("shards need a sparse expansion")
        self._share = share
        own = share.held(len(snapshot))
        self._own = Mask(own if snapshot.living is None else own & snapshot.living.allowed)
        whole = snapshot.bm25
        parts = Segment(share.first, postings), *whole.postings.parts[1:]
        segments = Segments(parts, whole.postings.terms)
        # What is looked for is how many of its own postings are of no document of its own.
        held = int(np.count_nonzero(self._own.allowed))
        self._kernel: QueryKernel = replace(whole, postings=segments, documents=held)
        self._engine = Engine(self._kernel, self._own)
        self._held = Held.of(whole, cut, snapshot.reverse or Reverse.none())
        self._neighbours = min(snapshot.neighbour_count, cut.rows.shape[1])

    @property
    def size(self) -> int:
        """Positions it has, those of documents that are gone among them."""
        return self._share.count(len(self._own.allowed))

    def mask(self, allowed: npt.NDArray[np.bool_]) -> Mask:
        """The mask of which these are the shard's positions, in their order."""
        return Mask(self._share.spread(allowed, len(self._own.allowed)) & self._own.allowed)

    def best(self, wanted: Wanted, mask: Mask | None) -> Found:
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
            saturations_of(self._kernel.postings, wanted.query.terms, best),
            self._rows(seeds),
            Features.held(held, seeds),
            held.cards[seeds],
        )

    def scores(self, known: Known, asked: Candidates) -> Scored:
        """Answer the second round. Cost: the cards of the candidates, the features of some."""
        scores = self._first(known, asked)
        foremost = _foremost(scores, known.foremost)
        return self._looked_at(known, asked, scores, foremost)

    def _steps(
        self, wanted: Wanted, count: int, mask: Mask | None, totals: bool
    ) -> tuple[Positions, npt.NDArray[np.int64], int]:
        if not count:
            return np.zeros(0, np.int32), np.zeros(0, np.int64), 0
        return self._engine.steps(wanted.numbers, count, mask, totals=totals)

    def _first(self, known: Known, asked: Candidates) -> Floats:
        """First scores of the candidates: what is left of them is where they lie."""
        if not known.latent:
            return asked.scores
        place = Place(known.place, np.float32(0))
        cosines = place.cosines(self._held.cards[asked.documents], cut=known.cut)
        return asked.scores + known.factors.latent * cosines

    def _looked_at(
        self, known: Known, asked: Candidates, scores: Floats, chosen: npt.NDArray[np.int64]
    ) -> Scored:
        documents = asked.documents[chosen]
        gained = self._gained(known, asked, chosen)
        exact = known.compared(Features.held(self._held, documents))
        compared = known.factors.expansion * (exact - asked.expanded[chosen])
        return Scored(documents, scores[chosen], gained, compared, self._without(known, asked))

    def _without(self, known: Known, asked: Candidates) -> int:
        """Count the candidates that contain no term of the query."""
        if not len(known.counted):
            return 0
        held = saturations_of(self._kernel.postings, known.counted, asked.documents)
        return int(np.count_nonzero(~held.any(axis=1)))

    def _gained(self, known: Known, asked: Candidates, chosen: npt.NDArray[np.int64]) -> Floats:
        """What a look at what is near adds to some of the candidates."""
        if not known.covers:
            return np.zeros(len(chosen), np.float32)
        documents = asked.documents[chosen]
        near = self._held.rows[documents, : self._neighbours]
        exact = covered(
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
            if len(held.reversed_of) and held.reversed_of[document]:
                later = held.reversed_of[document] - 1
                row = np.zeros((1, held.rows.shape[1]), np.uint32)
                row[0, : held.reversed.shape[1]] = held.reversed[later]
                of.append(document)
                entries.append(row)
                steps.append(held.reversed_steps[later])
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
