"""The seeds of a query over several partitions of an index.

Each partition finds its own seeds (`LocalSeeds`); the best of all are the seeds of the query
(`SharedSeeds`), by which every partition then scores its own documents. For one partition this is
the ranking of `klsa`, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.lowrank.coverage import effective_alpha
from klsa_search.search.engine.formulas import (
    DocFeatures,
    ExpansionScorer,
    Factors,
    part_factors,
    power,
    seed_weights,
)
from klsa_search.search.engine.seeds import KlsaParams

_F = np.float32

TERMS: Final = 12
"""Terms of the seeds by which each partition looks for documents near to them."""

MOST_REPEATED: Final = 4
"""Repetitions of the heaviest of these terms: the others have less."""

NEAREST: Final = 48
"""Documents that a partition finds by them, as many as a row of D has."""


class SeedTerms(NamedTuple):
    """The heaviest terms of documents, by numbers that all partitions share.

    starts   (n + 1,) offsets of each document
    numbers  of the terms, and their `weights` in the document
    """

    starts: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]


NO_TERMS: Final = SeedTerms(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))


class LocalSeeds(NamedTuple):
    """The best documents of one partition by the query kernel, at most z.

    steps      (n,) k_q in steps, highest first
    documents  (n,) their doc ids, or numbers that order them among those of all partitions
    coverage   (n,) T
    latent     (n,) L in steps of a cosine
    features   of these documents
    share      share of the query that the first contains, by term weights
    angle      one step of a cosine of the query
    names      ID and title of each, for a request that explains scores
    terms      of these documents; `NO_TERMS` if there is one partition only
    """

    steps: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]
    coverage: npt.NDArray[np.float32]
    latent: npt.NDArray[np.int32]
    features: DocFeatures
    share: float
    angle: np.float32
    names: tuple[tuple[str, str], ...] = ()
    terms: SeedTerms = NO_TERMS


class SeedDetails(NamedTuple):
    """The seeds of a query over several partitions, as explanations name them.

    alpha     of the query
    names     (z,) ID and title of each
    weights   (z,)
    features  of these documents
    """

    alpha: float
    names: tuple[tuple[str, str], ...]
    weights: npt.NDArray[np.float32]
    features: DocFeatures


class SharedSeeds(NamedTuple):
    """What all partitions need of the seeds of a query.

    first    k_q of the first seed, in steps
    scorer   E by the features of the seeds
    factors  of the parts of a score
    details  for a request that explains scores
    terms    the heaviest terms of the seeds, repeated by their weights
    """

    first: int
    scorer: ExpansionScorer
    factors: Factors
    details: SeedDetails | None = None
    terms: Sequence[int] = ()


SHARED: Final = np.dtype(
    [
        *(("first", "i8"), ("step", "f8"), ("scale", "f4"), ("mean", "f4"), ("mean_square", "f4")),
        *((name, "f4") for name in Factors._fields),
    ]
)
"""The numbers of `SharedSeeds` as one record."""


def shared_record(seeds: SharedSeeds) -> npt.NDArray[np.void]:
    """Return the numbers as compiled code takes them: (1,) of type `SHARED`."""
    scorer = seeds.scorer
    centre = scorer.step, scorer.scale, scorer.mean, scorer.mean_square
    return np.array([(seeds.first, *centre, *seeds.factors)], SHARED)


def shared_seeds(
    found: Sequence[LocalSeeds], params: KlsaParams, step: float
) -> SharedSeeds | None:
    """Return the seeds of a query; None if no partition has a document with a word of it.

    step  value of one step of k_q
    Documents with equal scores are in the order of their numbers, then of the partitions.
    """
    of = np.repeat(np.arange(len(found)), [len(each.steps) for each in found])
    if not len(of):
        return None
    steps = np.concatenate([each.steps for each in found])
    numbers = np.concatenate([each.documents for each in found])
    order = np.lexsort((of, numbers, -steps))[: params.seeds]
    steps = steps[order]
    first = found[of[order[0]]]
    coverage = np.concatenate([each.coverage for each in found])[order]
    latent = np.concatenate([each.latent for each in found])[order].astype(_F)
    features = _features_of([each.features for each in found], order)
    lexical, top = steps.astype(_F) / _F(steps[0]), _F(steps[0]) * _F(step)
    weights = seed_weights(top, lexical, coverage if params.coverage > 0 else None, params)
    scorer = ExpansionScorer.of(features, weights, params)
    if params.unit_length:
        latent = np.maximum(latent, _F(0))
    alpha = effective_alpha(params.alpha, params.hold_back, first.share)
    factors = part_factors(
        alpha, params, first.angle, top,
        scorer(features), coverage, latent, power(lexical, params.lexical_sharpness),
    )  # fmt: skip
    names, details = [name for each in found for name in each.names], None
    if names:
        chosen = tuple(names[place] for place in order.tolist())
        details = SeedDetails(alpha, chosen, weights, features)
    terms = _heaviest([each.terms for each in found], order, weights)
    return SharedSeeds(int(steps[0]), scorer, factors, details, terms)


def _heaviest(
    found: Sequence[SeedTerms], order: npt.NDArray[np.int64], weights: npt.NDArray[np.float32]
) -> list[int]:
    """Return the heaviest terms of the seeds, by places among those of all partitions."""
    starts = np.concatenate(([0], np.cumsum([n for each in found for n in np.diff(each.starts)])))
    if starts[-1] == 0:
        return []
    of_seeds = np.concatenate([np.arange(starts[at], starts[at + 1]) for at in order.tolist()])
    sizes = np.diff(starts)[order]
    numbers = np.concatenate([each.numbers for each in found])[of_seeds]
    values = np.concatenate([each.weights for each in found])[of_seeds] * np.repeat(weights, sizes)
    terms, at = np.unique(numbers, return_inverse=True)
    sums = np.bincount(at, values)
    heaviest = np.lexsort((terms, -sums))[:TERMS]
    times = np.ceil(MOST_REPEATED * sums[heaviest] / sums[heaviest[0]]).astype(np.int64)
    return np.repeat(terms[heaviest], times).tolist()


def _features_of(found: Sequence[DocFeatures], order: npt.NDArray[np.int64]) -> DocFeatures:
    """Return the features of documents by their places among those of all partitions."""
    entries = np.concatenate([each.entries for each in found])
    sizes = np.concatenate([np.diff(each.starts) for each in found])
    scalars = np.concatenate([each.document_scalars for each in found])
    starts = np.concatenate(([0], np.cumsum(sizes)))
    pieces = [entries[starts[place] : starts[place + 1]] for place in order.tolist()]
    kept = np.concatenate(([0], np.cumsum(sizes[order])))
    return DocFeatures(kept, np.concatenate(pieces), scalars[order])
