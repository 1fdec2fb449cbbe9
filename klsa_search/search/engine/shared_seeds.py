"""The seeds of a query over several partitions of an index.

Each partition finds its own best documents by the query kernel (`LocalSeeds`). Those of all
partitions give the seeds of the query and the documents whose words count for coverage, and every
partition then scores its own documents by them (`SharedSeeds`). For one partition this is the
ranking of `klsa`, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.lowrank.coverage import effective_alpha
from klsa_search.search.engine.formulas import (
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
from klsa_search.search.engine.seeds import KlsaParams
from klsa_search.search.engine.workspace import TERM_GROUP

_F = np.float32

LATER: Final = 2**40
"""Ordinal of the first later document: more than an index has documents."""

_PARTITION: Final = 2**32
"""Step between the ordinals of later documents of different partitions."""


class SeedRows(NamedTuple):
    """Rows of D of some documents, with their entries in all partitions.

    documents  (n, w) ordinals of the entries, strongest first, then reverse entries
    levels     (n, w) of the entries, 0 for none
    steps      (n, 2) value of one level, and of one of reverse entries
    width      entries of each that are not reverse
    near       entries of each that count for coverage, the first ones
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
        """Return some of the entries, (n, w), with ordinals instead of keys."""
        return self._replace(documents=_ordinals(self.documents), levels=self.levels * chosen)


NO_ROWS: Final = SeedRows(
    np.zeros((0, 0), np.int64), np.zeros((0, 0), np.uint8), np.zeros((0, 2), np.float32), 0, 0
)


class LocalSeeds(NamedTuple):
    """The best documents of one partition by the query kernel; the first z may be seeds.

    steps      (b,) k_q in steps, highest first
    documents  (b,) their doc ids, or their ordinals
    terms      what they contain of the query
    latent     (z,) L in steps of a cosine
    features   of the first z
    share      share of the query that the first contains, by term weights
    angle      one step of a cosine of the query
    rows       of the first z; `NO_ROWS` until the partition has added them
    names      ID and title of each of the best, for a request that explains scores
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
    """The seeds of a query over several partitions, as explanations name them.

    alpha     of the query
    names     (z,) ID and title of each
    weights   (z,)
    features  of these documents
    rows      their rows, without documents that are elsewhere or unknown there
    elsewhere (m,) ID and title of `BestElsewhere.documents`
    """

    alpha: float
    names: tuple[tuple[str, str], ...]
    weights: npt.NDArray[np.float32]
    features: DocFeatures
    rows: SeedRows
    elsewhere: tuple[tuple[str, str], ...] = ()


class BestElsewhere(NamedTuple):
    """Documents of other partitions that are among the best of all.

    documents  (m,) their ordinals, ascending; later documents, which are in no row, are left out
    impacts    (m, n) of the distinct terms of the query, in its order
    """

    documents: npt.NDArray[np.uint32]
    impacts: npt.NDArray[np.float32]

    def places_of(self, ordinals: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Return the places of documents by ordinal, -1 for others."""
        if not len(self.documents):
            return np.full(ordinals.shape, -1)
        places = np.minimum(np.searchsorted(self.documents, ordinals), len(self.documents) - 1)
        return np.where(self.documents[places] == ordinals, places, -1)


NO_BEST: Final = BestElsewhere(np.zeros(0, np.uint32), np.zeros((0, 0), np.float32))


class SharedSeeds(NamedTuple):
    """What a partition needs of the seeds of a query.

    first      k_q of the first seed, in steps
    best       number of its documents that are among the best of all
    seeds      number of its documents that are seeds
    scorer     E by the features of the seeds
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


SHARED: Final = np.dtype(
    [
        *(("first", "i8"), ("best", "i8"), ("seeds", "i8")),
        *(("step", "f8"), ("scale", "f4"), ("mean", "f4"), ("mean_square", "f4")),
        *((name, "f4") for name in Factors._fields),
    ]
)
"""The numbers of `SharedSeeds` as one record."""


def shared_record(seeds: SharedSeeds) -> npt.NDArray[np.void]:
    """Return the numbers as compiled code takes them: (1,) of type `SHARED`."""
    scorer = seeds.scorer
    centre = scorer.step, scorer.scale, scorer.mean, scorer.mean_square
    counts = seeds.first, seeds.best, seeds.seeds
    return np.array([(*counts, *centre, *seeds.factors)], SHARED)


class _Best(NamedTuple):
    """The best documents of all partitions, best first.

    steps      (b,) k_q in steps
    partition  (b,) number of the partition of each
    place      (b,) among the best of its partition
    keys       (b,) ordinals, made different for later documents of different partitions
    """

    steps: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]

    def at(self, chosen: Any) -> _Best:
        """Return some of them."""
        return _Best(*(column[chosen] for column in self))


def shared_seeds(
    found: Sequence[LocalSeeds | None], params: KlsaParams, step: float
) -> Sequence[SharedSeeds | None]:
    """Return the seeds of a query for each partition; None for all if none has a word of it.

    found  None for partitions that do not answer
    step   value of one step of k_q
    Documents with equal scores are in the order of their ordinals, then of the partitions.
    """
    known = [_NOTHING if each is None else each for each in found]
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
    near, estimates = _added(rows, _F(params.slope) * weights)
    shared = []
    for number in range(len(found)):
        own = best.partition == number
        elsewhere = np.flatnonzero(~own & (best.keys < LATER))
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
    """Return which keys may be of documents of a partition: not of later ones of others."""
    known: npt.NDArray[np.bool_] = (keys < LATER) | (
        keys // _PARTITION == LATER // _PARTITION + partition
    )
    return known


def _best_of(found: Sequence[LocalSeeds], count: int) -> _Best:
    """Return the best documents of all partitions."""
    sizes = [len(each.steps) for each in found]
    partition = np.repeat(np.arange(len(found)), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    steps = np.concatenate([each.steps for each in found])
    ordinals = np.concatenate([each.documents for each in found])
    order = np.lexsort((partition, ordinals, -steps))[:count]
    partition = partition[order]
    return _Best(steps[order], partition, place[order], _keys(ordinals[order], partition))


def _keys(ordinals: npt.NDArray[np.int64], partition: Any) -> npt.NDArray[np.int64]:
    """Return ordinals that differ between the later documents of different partitions."""
    keys: npt.NDArray[np.int64] = ordinals + (ordinals >= LATER) * (partition * _PARTITION)
    return keys


def _ordinals(keys: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """Return the ordinals of keys."""
    return narrow(np.where(keys < LATER, keys, LATER + keys % _PARTITION))


def narrow(ordinals: npt.NDArray[np.int64]) -> npt.NDArray[np.integer[Any]]:
    """Return ordinals in 32 bits if they fit, as they are sent to other processes."""
    return ordinals.astype(np.uint32) if ordinals.max(initial=0) < 2**32 else ordinals


def _places(chosen: _Best) -> Iterator[tuple[int, int]]:
    """Yield the partition and the place of documents."""
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
    """Return the rows of the seeds, with keys of the documents."""
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


def _added(
    rows: SeedRows, weights: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Add up rows: keys of the documents, ascending, and their sums, added row by row."""
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


_NOTHING: Final = LocalSeeds(
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    QueryImpacts(np.zeros((0, 0), _F), np.zeros(0, _F), np.zeros(0, _F), np.zeros(0, np.int64)),
    np.zeros(0, np.int32),
    DocFeatures(np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros((0, 3), _F)),
    0.0,
    _F(0),
)
"""Of a partition that does not answer."""
