"""Documents divided into shards, and summaries of shards that say which of them a query should ask.

Each summary gives a shard a number for a query; the shards are asked from the largest on.

    terms     n_t of each shard, as CORI has it [Callan, Lu, Croft 1995]
    bounds    the strongest saturation of each term in the shard: with the weights of the terms the
              most a document of it can score, by which a search of shards can end surely, as one of
              blocks of postings does [Ding, Suel 2011]
    sample    a central index of a hundredth of each shard; its hundred best of a query give their
              scores to their shards: ReDDE.top [Arguello, Callan, Diaz 2009] of ReDDE [Si, Callan
              2003], as selective search has it [Kulkarni, Callan 2010, 2015]
    tenth     the same of a tenth of each shard
    centroid  the cosine of the query and the middle of the shard in the latent space

Not of the shards alone, but of the seeds, when the first round has found them:

    rows      what the rows of the seeds hold of each shard's documents
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Matrix, Positions, Scores
from klsa_search.expansion.cut import CutExpansion
from klsa_search.expansion.packing import LEVELS
from klsa_search.kernel import Postings
from klsa_search.search.query import QueryTerms
from klsa_search.search.snapshot import Snapshot

ROUNDS: Final = 12
"""Rounds of k-means."""

SAMPLES: Final = {"sample": 0.01, "tenth": 0.1}
"""Shares of the documents of a shard in a central sample, at least one."""

VOTES: Final = 100
"""Documents of the sample that give their scores to their shards."""

PAIR: Final = 4
"""Bytes of what is kept of a term in a shard: two for the shard, two for the number."""

Ints = npt.NDArray[np.int64]


def at_random(size: int, shards: int, seed: int) -> Ints:
    """Divide documents evenly by chance: (size,) the shard of each."""
    return np.random.default_rng(seed).permutation(size) % shards


def by_topic(points: Matrix, shards: int, seed: int) -> Ints:
    """Divide documents by their directions, into shards of at most ⌈N / shards⌉: (N,).

    points  (N, m) of length 1, or 0
    Spherical k-means; then each middle takes the nearest of those it is the nearest to, as many as
    it has room for, and the rest go on to the nearest that has room. Cost O(N · shards · m) a
    round; memory 4 N · shards bytes.
    """
    rng = np.random.default_rng(seed)
    points = points.astype(np.float32)
    middles = points[rng.choice(len(points), shards, replace=False)]
    for _ in range(ROUNDS):
        middles = middles_of(points, (points @ middles.T).argmax(axis=1), shards)
    labels = np.empty(len(points), np.int64)
    left, near = np.arange(len(points)), points @ middles.T
    room = np.full(shards, -(-len(points) // shards))
    while len(left):
        wish = near.argmax(axis=1)
        order = np.lexsort((-near[np.arange(len(left)), wish], wish))
        place = np.arange(len(left)) - np.searchsorted(wish[order], wish[order])
        taken = np.zeros(len(left), np.bool_)
        taken[order[place < room[wish[order]]]] = True
        labels[left[taken]] = wish[taken]
        room -= np.bincount(wish[taken], minlength=shards)
        left, near = left[~taken], near[~taken]
        near[:, room == 0] = -np.inf
    return labels


def middles_of(points: Matrix, labels: Ints, shards: int) -> Matrix:
    """The direction of the sum of each shard's points: (shards, m), 0 where there is none."""
    sums = np.zeros((shards, points.shape[1]), np.float32)
    np.add.at(sums, labels, points)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.asarray(np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0))


@dataclass(frozen=True)
class TermTable:
    """Which shards hold a term.

    starts  (V + 1,) where each term's pairs begin
    shards  (n,) the shard of a pair
    held    (n,) documents of it that hold the term
    best    (n,) their strongest saturation
    """

    starts: Ints
    shards: Ints
    held: Ints
    best: Ints

    @classmethod
    def of(cls, postings: Postings, labels: Ints, shards: int) -> TermTable:
        """Cost O(nnz log nnz)."""
        terms = len(postings.starts) - 1
        documents, saturations = postings.of_terms(0, terms)
        keys = np.repeat(np.arange(terms), postings.frequencies) * shards + labels[documents]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        pairs = keys[firsts]
        return cls(
            np.searchsorted(pairs, np.arange(terms + 1) * shards),
            pairs % shards,
            np.diff(firsts, append=len(keys)),
            np.maximum.reduceat(saturations[order], firsts).astype(np.int64),
        )

    def pairs_of(self, term: int) -> slice:
        """The pairs of one term."""
        return slice(self.starts[term], self.starts[term + 1])


class Summaries:
    """The summaries of the shards of an index without later documents.

    labels  (N,) the shard of each document
    bytes   of each, as it could be packed; a sample with the postings of its documents
    """

    def __init__(self, snapshot: Snapshot, labels: Ints, shards: int, seed: int) -> None:
        latent = snapshot.latent
        assert latent is not None  # the default settings ask for it
        self._kernel, self._latent = snapshot.bm25, latent
        self.labels, self.shards = labels, shards
        self.table = TermTable.of(snapshot.bm25.postings.parts[0].postings, labels, shards)
        self._words = np.bincount(labels, snapshot.lengths, minlength=shards)
        self._middles = middles_of(latent.documents, labels, shards)
        self._samples = {
            name: sampled(labels, shards, share, seed) for name, share in SAMPLES.items()
        }
        self.bytes = {
            "terms": PAIR * len(self.table.shards),
            "bounds": PAIR * len(self.table.shards),
            "centroid": self._middles.size,
            **{
                name: PAIR * snapshot.counts_of(some).nnz + 2 * len(some)
                for name, some in self._samples.items()
            },
        }

    def scores(self, query: QueryTerms) -> dict[str, Scores]:
        """Of each summary a number for each shard: (shards,)."""
        return {
            "terms": self.by_terms(query),
            "bounds": self.bounds(query),
            "centroid": self.by_centroid(query),
            **{name: self.by_sample(query, some) for name, some in self._samples.items()},
        }

    def by_terms(self, query: QueryTerms) -> Scores:
        """CORI's belief, without the constant that all shards have."""
        found = np.zeros(self.shards)
        rest = 50 + 150 * self._words / self._words.mean()
        for term, count in zip(query.numbers, query.counts, strict=True):
            pairs = self.table.pairs_of(term)
            where, held = self.table.shards[pairs], self.table.held[pairs]
            rarity = np.log((self.shards + 0.5) / len(where)) / np.log(self.shards + 1)
            found[where] += count * held / (held + rest[where]) * rarity
        return found

    def bounds(self, query: QueryTerms) -> Scores:
        """The most that a document of the shard can score, in steps of the query kernel."""
        found = np.zeros(self.shards, np.int64)
        weights = self._kernel.weighed(query.numbers, query.counts)
        for term, weight in zip(query.numbers, weights, strict=True):
            pairs = self.table.pairs_of(term)
            found[self.table.shards[pairs]] += 1 + ((weight * self.table.best[pairs]) >> 16)
        return found.astype(np.float64)

    def by_sample(self, query: QueryTerms, some: Ints) -> Scores:
        """Scores of a sample's best, summed by shard; ties go by those of all of the sample."""
        row = self._kernel.query_row(query.numbers, query.counts)[some].astype(np.float64)
        order = np.argsort(-row, kind="stable")
        where = self.labels[some][order]
        votes = np.bincount(where[:VOTES], row[order][:VOTES], minlength=self.shards)
        return np.asarray(votes + 1e-6 * np.bincount(where, row[order], minlength=self.shards))

    def by_centroid(self, query: QueryTerms) -> Scores:
        """Proportional to the cosine of the query and the middle of the shard."""
        weights = query.counts * self._kernel.bursts[query.numbers]
        return np.asarray(self._middles @ (weights @ self._latent.terms[query.numbers]))


def sampled(labels: Ints, shards: int, share: float, seed: int) -> Ints:
    """A share of the documents of each shard, at least one, by chance; ascending."""
    order = np.random.default_rng(seed).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    place = np.arange(len(labels)) - np.searchsorted(labels[order], labels[order])
    sizes = np.bincount(labels, minlength=shards)
    return np.sort(order[place < np.maximum(1, np.rint(share * sizes))[labels[order]]])


def by_rows(
    cut: CutExpansion, seeds: Positions, weights: Scores, labels: Ints, shards: int
) -> Scores:
    """What the rows of D of weighted seeds hold of each shard's documents, their own entry too."""
    found = np.bincount(labels[seeds], weights * cut.scales[seeds, 1], minlength=shards)
    rows = cut.rows[seeds]
    worth = (rows & np.uint32(LEVELS)) * (weights * cut.scales[seeds, 0])[:, None]
    found += np.bincount(labels[rows >> np.uint32(8)].ravel(), worth.ravel(), minlength=shards)
    return np.asarray(found)


def kept_within(cut: CutExpansion, labels: Ints) -> float:
    """Share of the entries of all rows that are of documents of the row's own shard."""
    entries = cut.rows[: len(labels)]
    held = entries > 0
    same = labels[entries >> np.uint32(8)] == labels[:, None]
    return float(same[held].mean())
