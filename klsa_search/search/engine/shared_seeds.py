"""The seeds of a query over several partitions of an index.

Each partition finds its best documents by the query kernel (`LocalSeeds`). The best of all give the
seeds of the query and the documents whose words count for coverage. By these, every partition then
scores its own documents (`SharedSeeds`). With one partition, scores have the same bits.

Documents are named by ordinals, which are the same in all partitions: see `Snapshot.ordinals_of`.
Only later documents of different partitions can have equal ordinals; keys differ for these too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.lowrank.coverage import effective_alpha
from klsa_search.search.engine.formulas import (
    TERM_GROUP,
    DocFeatures,
    ExpansionScorer,
    Factors,
    QueryImpacts,
    TermImpacts,
    coverage_scores,
    part_factors,
    power,
    seed_weights,
)
from klsa_search.search.engine.params import KlsaParams

_F = np.float32

FIRST_LATER: Final = 2**40
"""Least ordinal of documents written after the build: more than an index has documents."""

_PARTITION_STEP: Final = 2**32
"""Step between the keys of later documents of different partitions."""


class SeedRows(NamedTuple):
    """Rows of D of n documents, with their entries in all partitions.

    documents  (n, w) ordinals or keys of the entries, strongest first, then reverse entries
    levels     (n, w) of the entries, 0 for none
    steps      (n, 2) value of one level, and of one level of reverse entries
    width      number of entries of a row that are not reverse entries
    near       number of entries of a row that count for coverage, the first ones
    """

    documents: npt.NDArray[np.integer[Any]]
    levels: npt.NDArray[np.uint8]
    steps: npt.NDArray[np.float32]
    width: int
    near: int

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """Return the value of one level of each entry: (n, w)."""
        reverse = self.documents.shape[1] - self.width
        return np.repeat(self.steps, (self.width, reverse), axis=1)

    def among(self, chosen: npt.NDArray[np.bool_]) -> SeedRows:
        """Return the rows with some of their entries, and ordinals instead of keys.

        chosen  (n, w) whether to keep each entry
        """
        return self._replace(documents=_ordinals(self.documents), levels=self.levels * chosen)


NO_ROWS: Final = SeedRows(
    np.zeros((0, 0), np.int64), np.zeros((0, 0), np.uint8), np.zeros((0, 2), np.float32), 0, 0
)


class LocalSeeds(NamedTuple):
    """The b best documents of one partition by the query kernel; the first z may be seeds.

    steps      (b,) k_q in steps, highest first
    documents  (b,) ordinals; doc ids until the partition replaces them
    terms      impacts of the terms of the query in the documents
    latent     (z,) L in steps of a cosine
    features   of the first z
    share      share of the query that the first contains, by term weights
    angle      one step of a cosine of the query
    rows       of the first z; none until the partition adds them
    names      (b,) ID and title of each, for a request that explains scores
    """

    steps: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]
    terms: QueryImpacts
    latent: npt.NDArray[np.int32]
    features: DocFeatures
    share: float
    angle: np.float32
    rows: SeedRows = NO_ROWS
    names: tuple[tuple[str, str], ...] = ()


class SeedDetails(NamedTuple):
    """What explanations need of the seeds of a query over several partitions.

    alpha     α(q)
    names     (z,) ID and title of each seed
    weights   (z,) of the seeds
    features  of the seeds
    rows      of the seeds, without later documents of other partitions
    names_elsewhere  (m,) ID and title of each of `BestElsewhere.documents`
    """

    alpha: float
    names: tuple[tuple[str, str], ...]
    weights: npt.NDArray[np.float32]
    features: DocFeatures
    rows: SeedRows
    names_elsewhere: tuple[tuple[str, str], ...] = ()


class BestElsewhere(NamedTuple):
    """Documents of other partitions that are among the best of all.

    documents  (m,) ordinals, ascending, without later documents, which no row here contains
    impacts    (m, n) of the distinct terms of the query, in its order
    """

    documents: npt.NDArray[np.uint32]
    impacts: npt.NDArray[np.float32]

    def places_of(self, ordinals: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Return the places of ordinals in `documents`, -1 for those that it does not contain."""
        if not len(self.documents):
            return np.full(ordinals.shape, -1)
        places = np.minimum(np.searchsorted(self.documents, ordinals), len(self.documents) - 1)
        return np.where(self.documents[places] == ordinals, places, -1)


NONE_ELSEWHERE: Final = BestElsewhere(np.zeros(0, np.uint32), np.zeros((0, 0), np.float32))


class SharedSeeds(NamedTuple):
    """The seeds of a query, as one partition needs them.

    first      k_q of the first seed, in steps
    best       number of documents of the partition that are among the best of all
    seeds      number of documents of the partition that are seeds
    scorer     computes E from the features of the seeds
    factors    of the parts of a score
    near       (n,) ordinals of the documents in the rows of the seeds
    estimates  (n,) E of these by the rows
    elsewhere  best documents of other partitions
    details    for a request that explains scores
    """

    first: int
    best: int
    seeds: int
    scorer: ExpansionScorer
    factors: Factors
    near: npt.NDArray[np.integer[Any]]
    estimates: npt.NDArray[np.float32]
    elsewhere: BestElsewhere
    details: SeedDetails | None = None

    def native(self) -> SharedSeeds:
        """Return the seeds with doc ids in `near` as native code takes them."""
        return self._replace(near=self.near.astype(np.int32))


class _Best(NamedTuple):
    """The best documents of all partitions, best first.

    steps      (b,) k_q in steps
    partition  (b,) number of the partition of each
    place      (b,) of each among the best of its partition
    keys       (b,) of the documents
    """

    steps: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]

    def at(self, chosen: Any) -> _Best:
        """Return the chosen ones, by places, a mask or a slice."""
        return _Best(*(column[chosen] for column in self))


def shared_seeds(
    found: Sequence[LocalSeeds | None], params: KlsaParams, step: float
) -> Sequence[SharedSeeds | None]:
    """Return the seeds of a query for each partition; None for all if no document has its words.

    found  best documents of each partition; None for a partition that does not answer
    step   value of one step of k_q
    Documents with equal scores are in the order of their ordinals, then of the partitions.
    """
    known = [_NO_SEEDS if each is None else each for each in found]
    best = _best_of(known, params.best)
    if not len(best.steps):
        return [None] * len(found)
    seeds = best.at(slice(params.seeds))
    leading, first = known[seeds.partition[0]], int(seeds.steps[0])
    impacts = _impacts_of(known, best)
    rows = _rows_of([each.rows for each in known], seeds)
    coverage = _coverage(rows, best, impacts, leading)
    lexical, top = seeds.steps.astype(_F) / _F(first), _F(first) * _F(step)
    weights = seed_weights(top, lexical, coverage if params.coverage > 0 else None, params)
    features = _features_of(known, seeds)
    scorer = ExpansionScorer.of(features, weights, params)
    latent = np.array([known[at].latent[place] for at, place in _places(seeds)], _F)
    if params.unit_length:
        latent = np.maximum(latent, _F(0))
    alpha = effective_alpha(params.alpha, params.hold_back, leading.share)
    factors = part_factors(
        alpha, params, leading.angle, top,
        scorer(features), coverage, latent, power(lexical, params.lexical_sharpness),
    )  # fmt: skip
    near, estimates = _sum_of_rows(rows, _F(params.slope) * weights)
    shared = []
    for number in range(len(found)):
        own = best.partition == number
        elsewhere = np.flatnonzero(~own & (best.keys < FIRST_LATER))
        elsewhere = elsewhere[np.argsort(best.keys[elsewhere])]
        is_known = _known(near, number)
        details = None
        if leading.names:
            names, others = _names(known, seeds), _names(known, best.at(elsewhere))
            own_rows = rows.among(_known(rows.documents, number))
            details = SeedDetails(alpha, names, weights, features, own_rows, others)
        shared.append(
            SharedSeeds(
                first,
                int(own.sum()),
                int(own[: params.seeds].sum()),
                scorer,
                factors,
                _ordinals(near[is_known]),
                estimates[is_known],
                BestElsewhere(best.keys[elsewhere].astype(np.uint32), impacts[elsewhere]),
                details,
            )
        )
    return shared


def _known(keys: npt.NDArray[np.integer[Any]], partition: int) -> npt.NDArray[np.bool_]:
    """Return which keys a partition may know: all but those of later documents of others."""
    known: npt.NDArray[np.bool_] = (keys < FIRST_LATER) | (
        keys // _PARTITION_STEP == FIRST_LATER // _PARTITION_STEP + partition
    )
    return known


def _best_of(found: Sequence[LocalSeeds], count: int) -> _Best:
    """Return the `count` best documents of all partitions."""
    sizes = [len(each.steps) for each in found]
    partition = np.repeat(np.arange(len(found)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    steps = np.concatenate([each.steps for each in found])
    ordinals = np.concatenate([each.documents for each in found])
    order = np.lexsort((partition, ordinals, -steps))[:count]
    partition = partition[order]
    return _Best(steps[order], partition, place[order], _keys(ordinals[order], partition))


def _keys(ordinals: npt.NDArray[np.int64], partition: Any) -> npt.NDArray[np.int64]:
    """Return the keys of documents by ordinal.

    partition  number of the partition of all, or of each
    """
    keys: npt.NDArray[np.int64] = ordinals + (ordinals >= FIRST_LATER) * (
        partition * _PARTITION_STEP
    )
    return keys


def _ordinals(keys: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """Return the ordinals of documents by key."""
    return narrow_ordinals(np.where(keys < FIRST_LATER, keys, FIRST_LATER + keys % _PARTITION_STEP))


def narrow_ordinals(ordinals: npt.NDArray[np.int64]) -> npt.NDArray[np.integer[Any]]:
    """Return ordinals in 32 bits if they fit, which halves what other processes are sent."""
    return ordinals.astype(np.uint32) if ordinals.max(initial=0) < 2**32 else ordinals


def _places(chosen: _Best) -> Iterator[tuple[int, int]]:
    """Yield the partition of each document, and its place there."""
    return zip(chosen.partition.tolist(), chosen.place.tolist(), strict=True)


def _names(found: Sequence[LocalSeeds], chosen: _Best) -> tuple[tuple[str, str], ...]:
    return tuple(found[at].names[place] for at, place in _places(chosen))


def _impacts_of(found: Sequence[LocalSeeds], best: _Best) -> npt.NDArray[np.float32]:
    """Return the impacts of the terms of the query in the best documents: (b, n)."""
    starts = np.concatenate(([0], np.cumsum([len(each.steps) for each in found])))
    width = max(each.terms.impacts.shape[1] for each in found)
    filled = [each.terms.impacts for each in found if len(each.steps)]
    impacts: npt.NDArray[np.float32] = np.concatenate([np.zeros((0, width), _F), *filled])
    return impacts[starts[best.partition] + best.place]


def _rows_of(found: Sequence[SeedRows], seeds: _Best) -> SeedRows:
    """Return the rows of the seeds, with keys instead of ordinals."""
    width, at = max(rows.documents.shape[1] for rows in found), seeds.partition
    shape = len(at), width
    documents, levels = np.zeros(shape, np.int64), np.zeros(shape, np.uint8)
    steps = np.zeros((len(at), 2), np.float32)
    for number, rows in enumerate(found):
        own, size = at == number, rows.documents.shape[1]
        place = seeds.place[own]
        documents[own, :size] = _keys(rows.documents[place].astype(np.int64), number)
        levels[own, :size], steps[own] = rows.levels[place], rows.steps[place]
    leading = found[at[0]]
    return SeedRows(documents, levels, steps, leading.width, leading.near)


def _coverage(
    rows: SeedRows, best: _Best, impacts: npt.NDArray[np.float32], leading: LocalSeeds
) -> npt.NDArray[np.float32]:
    """Return T of the seeds, the first of the best: (z,)."""
    order = leading.terms.order
    stride = -(-len(order) // TERM_GROUP) * TERM_GROUP
    padded = np.zeros((len(best.steps) + 1, stride), _F)
    padded[:-1, : len(order)] = impacts[:, order]
    weights, half = np.zeros(stride, _F), np.ones(stride, _F)
    weights[: len(order)] = leading.terms.term_weights[order]
    half[: len(order)] = leading.terms.half[order]
    by_key = np.argsort(best.keys)
    keys, wanted = best.keys[by_key], rows.documents[:, : rows.near]
    found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    places = np.where(keys[found] == wanted, by_key[found], -1)
    levels = rows.levels[:, : rows.near].astype(np.uint32)
    own = np.arange(len(wanted))
    return coverage_scores(levels, places, own, TermImpacts(padded, weights, half))


def _sum_of_rows(
    rows: SeedRows, weights: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the weighted sum of rows: keys of documents, ascending, and the sum of each.

    Values are added row by row, so the sums have the bits of `formulas.add_rows`.
    """
    is_entry = (rows.levels > 0) & (weights > 0)[:, None]
    values = (weights[:, None] * rows.values) * rows.levels.astype(_F)
    distinct, at = np.unique(rows.documents[is_entry], return_inverse=True)
    sums = np.zeros(len(distinct), _F)
    np.add.at(sums, at, values[is_entry])
    return distinct, sums


def _features_of(found: Sequence[LocalSeeds], seeds: _Best) -> DocFeatures:
    """Return the features of the seeds."""
    sizes, pieces, scalars = [0], [], []
    for at, place in _places(seeds):
        features = found[at].features
        first, after = features.starts[place], features.starts[place + 1]
        sizes.append(after - first)
        pieces.append(features.entries[first:after])
        scalars.append(features.document_scalars[place])
    return DocFeatures(np.cumsum(sizes), np.concatenate(pieces), np.array(scalars))


_NO_SEEDS: Final = LocalSeeds(
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    QueryImpacts(np.zeros((0, 0), _F), np.zeros(0, _F), np.zeros(0, _F), np.zeros(0, np.int64)),
    np.zeros(0, np.int32),
    DocFeatures(np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros((0, 3), _F)),
    0.0,
    _F(0),
)
"""Those of a partition that does not answer."""
