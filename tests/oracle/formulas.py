"""Steps of the default ranking as NumPy functions, equal to the native engine to the bit.

Floats are added in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search._native import SharedSeeds
from klsa_search.lowrank.sparse_expansion import (
    LEVELS,
)
from klsa_search.search.engine.engine import DocFeatures, KlsaParams
from klsa_search.search.engine.query_terms import distinct_known
from klsa_search.search.rankers.coverage import NEIGHBOURHOOD

_F = np.float32
_Floats = npt.NDArray[np.float32]
_Numbers = npt.NDArray[np.int64]

# As in klsa_search/native/engine:
SUMS: Final = 32_000.0  # largest sum of features
NEGLIGIBLE: Final = 0.002  # share of the first seed's weight below which a seed is ignored
TERM_GROUP: Final = 8  # terms whose coverage is summed in the same pairs everywhere


class ExpansionScorer(NamedTuple):
    """E from the features: of documents by that of the seeds.

    numbers  (n,) features of the seeds, ascending; `sums` (n,) the sum of each, in steps
    scale, mean, mean_square  terms of centring
    step     of the sums
    clip     whether parts are clipped at 0
    """

    numbers: npt.NDArray[np.uint32]
    sums: npt.NDArray[np.int16]
    scale: np.float32
    mean: np.float32
    mean_square: np.float32
    step: float
    clip: bool

    @classmethod
    def of(cls, features: DocFeatures, weights: _Floats, params: KlsaParams) -> ExpansionScorer:
        """Add up the features of the seeds."""
        scale, mean, largest = _F(0), _F(0), 0.0
        for weight, (step, scaling, towards) in zip(
            weights, features.document_scalars, strict=True
        ):
            weight = _F(params.slope) * weight
            scale, mean = scale + weight * scaling, mean + weight * towards
            largest += float(weight * step) * LEVELS
        steps = _F(SUMS / largest) if largest > 0 else _F(0)
        factors = _F(params.slope) * weights * steps * features.document_scalars[:, 0]
        levels = (features.entries & np.uint32(LEVELS)).astype(_F)
        each = np.rint(np.repeat(factors, np.diff(features.starts)) * levels).astype(np.int64)
        numbers, at = np.unique(features.entries >> np.uint32(8), return_inverse=True)
        sums = np.zeros(len(numbers), np.int64)
        np.add.at(sums, at, each)
        step = 1.0 / float(steps) if steps > 0 else 0.0
        return cls(
            numbers,
            sums.astype(np.int16),
            scale,
            mean,
            _F(params.mean_square),
            step,
            params.unit_length,
        )

    @classmethod
    def of_shared(cls, seeds: SharedSeeds, params: KlsaParams) -> ExpansionScorer:
        """Return the scorer of seeds of several partitions."""
        *centring, step = seeds.centre
        order = np.argsort(seeds.numbers)
        numbers, sums = seeds.numbers[order], seeds.sums[order]
        return cls(numbers, sums, *map(_F, centring), step, params.unit_length)

    def __call__(self, features: DocFeatures) -> _Floats:
        """Return E of documents: (n,). Cost: a binary search for each of their features."""
        if not len(self.numbers):
            total = np.zeros(len(features.document_scalars), np.int64)
        else:
            wanted = features.entries >> np.uint32(8)
            places = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
            levels = (features.entries & np.uint32(LEVELS)).astype(np.int64)
            products = np.where(self.numbers[places] == wanted, self.sums[places] * levels, 0)
            ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(products)))
            total = ends[features.starts[1:]] - ends[features.starts[:-1]]
        document_scalars = features.document_scalars
        centring = self.scale * document_scalars[:, 2]
        centring = centring + document_scalars[:, 1] * (self.mean - self.scale * self.mean_square)
        exact = (self.step * total * document_scalars[:, 0] - centring).astype(_F)
        return np.maximum(exact, _F(0)) if self.clip else exact


Entries = npt.NDArray[np.uint32]
"""Of rows or features: a number in the upper 24 bits, a level in the lower 8."""


class Query(NamedTuple):
    """Distinct known terms in the order of the query, and their counts in it."""

    terms: _Numbers
    counts: _Numbers


class TermImpacts(NamedTuple):
    """Impacts of the query's terms in the best documents.

    impacts       (best + 1, stride) in steps; the last row is 0
    term_weights  (stride,) f(t,q) · h(t) · w(t), 0 beyond the last term
    half          (stride,) impact at which g is one half, in steps; 1 beyond the last term
    """

    impacts: _Floats
    term_weights: _Floats
    half: _Floats


def distinct_query(numbers: Sequence[int]) -> Query:
    """Merge the terms of a query."""
    terms = distinct_known(numbers)
    counts = np.array([numbers.count(term) for term in terms.tolist()], np.int64)
    return Query(terms, counts)


def coverage_scores(
    near: Entries, places: npt.NDArray[np.integer], own: npt.NDArray[np.integer], terms: TermImpacts
) -> _Floats:
    """Return T of documents: (n,).

    near    (n, neighbours) entries of the nearest documents of each
    places  (n, neighbours) ranks of these among the best, -1 for others
    own     (n,) ranks of the documents themselves
    """
    levels = near & np.uint32(LEVELS)
    part = _F(NEIGHBOURHOOD) / np.maximum(levels.sum(axis=1), 1).astype(_F)
    places = np.where(levels == 0, -1, places)
    neighbour_impacts = np.zeros((len(near), terms.impacts.shape[1]), _F)
    columns, rows = np.nonzero(places.T >= 0)  # nearest first, as floats are added in this order
    shares = levels[rows, columns].astype(_F)
    np.add.at(neighbour_impacts, rows, shares[:, None] * terms.impacts[places[rows, columns]])
    y = terms.impacts[own] + part[:, None] * neighbour_impacts
    sums = terms.term_weights * (y / (y + terms.half))
    total = np.zeros(len(near), _F)
    for first in range(0, sums.shape[1], TERM_GROUP):
        group, width = sums[:, first : first + TERM_GROUP], TERM_GROUP
        while width > 1:
            width //= 2
            group = group[:, :width] + group[:, width:]
        total += group[:, 0]
    return total


def seed_weights(
    top: np.float32, lexical: _Floats, coverage: _Floats | None, params: KlsaParams
) -> _Floats:
    """Return the weights of the seeds; 0 if negligible relative to the first."""
    weights = top * power(lexical, params.sharpness)
    if not len(weights):
        return weights
    if coverage is not None:
        weights = weights * power(coverage / coverage.max(), params.coverage_power)
    return np.where(weights < _F(NEGLIGIBLE) * weights[0], _F(0), weights)


def part_factors(
    alpha: float, params: KlsaParams, angle: np.float32, top: np.float32, *parts: _Floats
) -> tuple[float, ...]:
    """Return the factors, from E, T, L and X of the seeds."""
    shares = (
        *(alpha * part for part in (params.expansion, params.coverage, params.latent)),
        1 - alpha,
    )
    if not params.unit_length:
        expansion, coverage, latent, lexical = map(_F, shares)
        return expansion, coverage, float(latent * angle), float(lexical * top)
    squares = []
    for part in (*parts[:2], np.maximum(parts[2], _F(0)), parts[3]):
        square = _F(0)
        for value in part:
            square = square + value * value
        squares.append(square)
    over = [
        _F(share / float(np.sqrt(square))) if square > 0 else _F(share)
        for share, square in zip(shares, squares, strict=True)
    ]
    if not squares[2] > 0:
        over[2] = _F(shares[2]) * angle
    return tuple(over)


def power(base: _Floats, exponent: float) -> _Floats:
    """Return base ** exponent; whole exponents by squaring."""
    whole = int(exponent)
    if whole != exponent:
        return np.array([_F(float(value) ** exponent) for value in base], _F)
    result, square = np.ones_like(base), base
    while whole > 0:
        if whole & 1:
            result = result * square
        square = square * square
        whole >>= 1
    return result
