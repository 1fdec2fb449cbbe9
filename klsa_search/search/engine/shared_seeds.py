"""The seeds of a query over several partitions of an index.

Each partition finds its best documents by the query kernel (`LocalSeeds`). The best of all give the
seeds of the query and the documents whose words count for coverage. By these, every partition then
scores its own documents (`SharedSeeds`). With one partition, scores have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search._native import weigh_seeds
from klsa_search.core.array_types import values_at
from klsa_search.search.engine.local_seeds import (
    FIRST_LATER,
    PARTITION_STEP,
    DocFeatures,
    LocalSeeds,
    QueryImpacts,
    SeedRows,
    ordinals_of_keys,
)
from klsa_search.search.engine.params import KlsaParams

_F = np.float32


class SeedSums(NamedTuple):
    """The features of the seeds of a query, added up.

    numbers  (n,) of the features, ascending; `sums` (n,) of each, in steps of 1 / `step`
    scale, mean, mean_square  terms of centring
    """

    numbers: npt.NDArray[np.uint32]
    sums: npt.NDArray[np.int16]
    scale: float
    mean: float
    mean_square: float
    step: float


class Factors(NamedTuple):
    """Shares of E, T, L (in steps) and X; divided by their lengths if parts are scaled."""

    expansion: float
    coverage: float
    latent: float
    lexical: float


class SeedDetails(NamedTuple):
    """What explanations need of the seeds of a query over several partitions.

    alpha     α(q)
    names     (z,) ID and title of each seed
    weights   (z,) of the seeds
    features  of the seeds
    rows      of the seeds, without later documents of other partitions
    names_elsewhere  (m,) ID and title of each of `RemoteBest.documents`
    """

    alpha: float
    names: tuple[tuple[str, str], ...]
    weights: npt.NDArray[np.float32]
    features: DocFeatures
    rows: SeedRows
    names_elsewhere: tuple[tuple[str, str], ...] = ()


class RemoteBest(NamedTuple):
    """Documents of other partitions that are among the best of all.

    documents  (m,) ordinals, ascending, without later documents, which no row here contains
    impacts    (m, n) of the distinct terms of the query, in its order
    """

    documents: npt.NDArray[np.uint32]
    impacts: npt.NDArray[np.float32]

    def positions_of(self, ordinals: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Return the places of ordinals in `documents`, -1 for those that it does not contain."""
        if not len(self.documents):
            return np.full(ordinals.shape, -1)
        positions = np.minimum(np.searchsorted(self.documents, ordinals), len(self.documents) - 1)
        return np.where(self.documents[positions] == ordinals, positions, -1)


NONE_ELSEWHERE: Final = RemoteBest(np.zeros(0, np.uint32), np.zeros((0, 0), np.float32))


class SharedSeeds(NamedTuple):
    """The seeds of a query, as one partition needs them.

    first      k_q of the first seed, in steps
    best       number of documents of the partition that are among the best of all
    seeds      number of documents of the partition that are seeds
    scorer     sums of the features of the seeds, which give E
    factors    of the parts of a score
    near       (n,) ordinals of the documents in the rows of the seeds
    estimates  (n,) E of these by the rows
    remote  best documents of other partitions
    details    for a request that explains scores
    """

    first: int
    best: int
    seeds: int
    scorer: SeedSums
    factors: Factors
    near: npt.NDArray[np.integer[Any]]
    estimates: npt.NDArray[np.float32]
    remote: RemoteBest
    details: SeedDetails | None = None


class _Best(NamedTuple):
    """The best documents of all partitions, best first.

    steps      (b,) k_q in steps
    partition  (b,) number of the partition of each
    position   (b,) of each among the best of its partition
    keys       (b,) of the documents
    """

    steps: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]

    def at(self, chosen: Any) -> _Best:
        """Return the chosen ones, by places, a mask or a slice."""
        return _Best(*(column[chosen] for column in self))


class MergedSeeds(NamedTuple):
    """The seeds of all partitions, and what weighs them.

    steps    (z,) k_q
    impacts  (b, n), and the other columns of `QueryImpacts`
    near     (z, near) places of the neighbours of the seeds among the best, -1 for others
    levels   (z, near) of these
    starts, entries, scalars  as of `DocFeatures`
    latent, share, angle      as of `LocalSeeds`; the last two of the first seed
    step     value of one step of k_q
    """

    steps: npt.NDArray[np.int64]
    impacts: npt.NDArray[np.float32]
    term_weights: npt.NDArray[np.float32]
    half: npt.NDArray[np.float32]
    near: npt.NDArray[np.int32]
    levels: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    entries: npt.NDArray[np.uint32]
    scalars: npt.NDArray[np.float32]
    latent: npt.NDArray[np.int32]
    share: float
    angle: float
    step: float


def shared_seeds(
    of_parts: Sequence[LocalSeeds | None], params: KlsaParams, step: float
) -> Sequence[SharedSeeds | None]:
    """Return the seeds of a query for each partition; None for all if no document has its words.

    of_parts  best documents of each partition; None for a partition that does not answer
    step   value of one step of k_q
    Documents with equal scores are in the order of their ordinals; later ones follow, partition by
    partition.
    """
    answered = [_NO_SEEDS if part is None else part for part in of_parts]
    best = _best_of(answered, params.best)
    if not len(best.steps):
        return [None] * len(of_parts)
    seeds = best.at(slice(params.seeds))
    leading, first = answered[seeds.partition[0]], int(seeds.steps[0])
    impacts = _impacts_of(answered, best)
    rows, features = (
        _rows_of([seeds_of.rows for seeds_of in answered], seeds),
        _features_of(answered, seeds),
    )
    merged = MergedSeeds(
        seeds.steps,
        impacts,
        leading.terms.term_weights,
        leading.terms.half,
        _near(rows, best),
        np.ascontiguousarray(rows.levels[:, : rows.near]),
        *features,
        np.array([answered[at].latent[position] for at, position in _positions(seeds)], np.int32),
        leading.share,
        leading.angle,
        step,
    )
    alpha, weights, sums, factors = weigh_seeds(merged, params)
    near, estimates = _sum_of_rows(rows, _F(params.slope) * weights)
    shared = []
    for number in range(len(of_parts)):
        local = best.partition == number
        remote = np.flatnonzero(~local & (best.keys < FIRST_LATER))
        remote = remote[np.argsort(best.keys[remote])]
        is_known = _is_numbered(near, number)
        details = None
        if leading.names:
            names, remote_names = _names(answered, seeds), _names(answered, best.at(remote))
            local_rows = rows.among(_is_numbered(rows.documents, number))
            details = SeedDetails(alpha, names, weights, features, local_rows, remote_names)
        shared.append(
            SharedSeeds(
                first,
                int(local.sum()),
                int(local[: params.seeds].sum()),
                SeedSums(*sums),
                Factors(*factors),
                ordinals_of_keys(near[is_known]),
                estimates[is_known],
                RemoteBest(best.keys[remote].astype(np.uint32), impacts[remote]),
                details,
            )
        )
    return shared


def _is_numbered(keys: npt.NDArray[np.integer[Any]], partition: int) -> npt.NDArray[np.bool_]:
    """Return which keys a partition may know: all but those of later documents of others."""
    is_numbered: npt.NDArray[np.bool_] = (keys < FIRST_LATER) | (
        keys // PARTITION_STEP == FIRST_LATER // PARTITION_STEP + partition
    )
    return is_numbered


def _best_of(of_parts: Sequence[LocalSeeds], count: int) -> _Best:
    """Return the `count` best documents of all partitions."""
    sizes = [len(part.steps) for part in of_parts]
    partition = np.repeat(np.arange(len(of_parts)), sizes)
    position = np.concatenate([np.arange(size) for size in sizes])
    steps = np.concatenate([part.steps for part in of_parts])
    ordinals = np.concatenate([part.documents for part in of_parts])
    order = np.lexsort((partition, np.minimum(ordinals, FIRST_LATER), -steps))[:count]
    partition = partition[order]
    return _Best(steps[order], partition, position[order], _keys(ordinals[order], partition))


def _keys(ordinals: npt.NDArray[np.int64], partition: Any) -> npt.NDArray[np.int64]:
    """Return the keys of documents by ordinal.

    partition  number of the partition of all, or of each
    """
    keys: npt.NDArray[np.int64] = ordinals + (ordinals >= FIRST_LATER) * (
        partition * PARTITION_STEP
    )
    return keys


def _positions(chosen: _Best) -> Iterator[tuple[int, int]]:
    """Yield the partition of each document, and its place there."""
    return zip(chosen.partition.tolist(), chosen.position.tolist(), strict=True)


def _names(of_parts: Sequence[LocalSeeds], chosen: _Best) -> tuple[tuple[str, str], ...]:
    return tuple(of_parts[at].names[position] for at, position in _positions(chosen))


def _impacts_of(of_parts: Sequence[LocalSeeds], best: _Best) -> npt.NDArray[np.float32]:
    """Return the impacts of the terms of the query in the best documents: (b, n)."""
    starts = np.concatenate(([0], np.cumsum([len(part.steps) for part in of_parts])))
    width = max(part.terms.impacts.shape[1] for part in of_parts)
    filled = [part.terms.impacts for part in of_parts if len(part.steps)]
    impacts: npt.NDArray[np.float32] = np.concatenate([np.zeros((0, width), _F), *filled])
    return impacts[starts[best.partition] + best.position]


def _rows_of(of_parts: Sequence[SeedRows], seeds: _Best) -> SeedRows:
    """Return the rows of the seeds, with keys instead of ordinals."""
    width, at = max(rows.documents.shape[1] for rows in of_parts), seeds.partition
    shape = len(at), width
    documents, levels = np.zeros(shape, np.int64), np.zeros(shape, np.uint8)
    steps = np.zeros((len(at), 2), np.float32)
    for number, rows in enumerate(of_parts):
        local, size = at == number, rows.documents.shape[1]
        position = seeds.position[local]
        documents[local, :size] = _keys(rows.documents[position].astype(np.int64), number)
        levels[local, :size], steps[local] = rows.levels[position], rows.steps[position]
    leading = of_parts[at[0]]
    return SeedRows(documents, levels, steps, leading.width, leading.near)


def _near(rows: SeedRows, best: _Best) -> npt.NDArray[np.int32]:
    """Return the places of the neighbours of seeds among the best, -1 for others: (z, near)."""
    order = np.argsort(best.keys)
    positions = values_at(rows.documents[:, : rows.near], best.keys[order], order, missing=-1)
    return np.ascontiguousarray(positions, np.int32)


def _sum_of_rows(
    rows: SeedRows, weights: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return the weighted sum of rows: keys of documents, ascending, and the sum of each.

    Values are added row by row, as the engine does.
    """
    is_entry = (rows.levels > 0) & (weights > 0)[:, None]
    values = (weights[:, None] * rows.values) * rows.levels.astype(_F)
    distinct, at = np.unique(rows.documents[is_entry], return_inverse=True)
    sums = np.zeros(len(distinct), _F)
    np.add.at(sums, at, values[is_entry])
    return distinct, sums


def _features_of(of_parts: Sequence[LocalSeeds], seeds: _Best) -> DocFeatures:
    """Return the features of the seeds."""
    sizes, pieces, scalars = [0], [], []
    for at, position in _positions(seeds):
        features = of_parts[at].features
        first, after = features.starts[position], features.starts[position + 1]
        sizes.append(after - first)
        pieces.append(features.entries[first:after])
        scalars.append(features.document_scalars[position])
    return DocFeatures(np.cumsum(sizes), np.concatenate(pieces), np.array(scalars))


_NO_SEEDS: Final = LocalSeeds(
    np.zeros(0, np.int32),
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    QueryImpacts(np.zeros((0, 0), _F), np.zeros(0, _F), np.zeros(0, _F)),
    np.zeros(0, np.int32),
    DocFeatures(np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros((0, 3), _F)),
    0.0,
    0.0,
)
"""Those of a partition that does not answer."""
