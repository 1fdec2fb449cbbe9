"""The steps of the default ranking as NumPy functions.

E and L of any document, as `candidates` has them compiled; what else is added up is in `formulas`.

What they give is what the compiled search computes, to the bit: sums of floats are taken in the
order they are taken there. They are handed the entries, not the index: so those who have a part of
it each can go through them together. What features and the latent space say is in `comparing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Positions
from klsa_search.kernels.postings import UNIT
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.kernels.segments import Segments
from klsa_search.lowrank.coverage import HALF, NEIGHBOURHOOD, effective_alpha
from klsa_search.lowrank.sparse_expansion import DOCUMENT_SCALARS, LATENT_LEVELS, LEVELS
from klsa_search.search.engine.candidates import PLACE_LEVELS
from klsa_search.search.engine.scan import HALVINGS
from klsa_search.search.engine.seeds import NEGLIGIBLE, SUMS, KlsaParams
from klsa_search.search.engine.workspace import TOGETHER, IndexArrays

_F = np.float32
_Floats = npt.NDArray[np.float32]
_Numbers = npt.NDArray[np.int64]


class Features(NamedTuple):
    """Features of some documents.

    starts   (n + 1,) where those of each begin
    entries  of all
    facts    (n, 3) float32: their step, S and SΦμ
    """

    starts: _Numbers
    entries: Entries
    facts: _Floats

    @classmethod
    def held(cls, held: IndexArrays, documents: Positions) -> Features:
        """Those of documents of an index. Cost: their entries."""
        first, after = held.feature_starts[documents], held.feature_starts[documents + 1]
        pieces = [held.features[slice(*each)] for each in zip(first, after, strict=True)]
        starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(after - first)))
        entries = np.concatenate([held.features[:0], *pieces])
        return cls(starts, entries, held.facts[documents, -DOCUMENT_SCALARS:])


class Compared(NamedTuple):
    """E from the features: see `compared` and `add_seed_features`.

    numbers  (n,) features that the seeds have, ascending; `sums` (n,) int64, of each, in steps
    scale, mean, mean_square  what centring takes off
    step     of the sums
    cut      whether parts are cut at 0
    """

    numbers: _Numbers
    sums: _Numbers
    scale: np.float32
    mean: np.float32
    mean_square: np.float32
    step: float
    cut: bool

    @classmethod
    def of(cls, features: Features, weights: _Floats, mix: KlsaParams) -> Compared:
        """Add up the features of the seeds."""
        scale, mean, largest = _F(0), _F(0), 0.0
        for weight, (step, scaling, towards) in zip(weights, features.facts, strict=True):
            weight = _F(mix.slope) * weight
            scale, mean = scale + weight * scaling, mean + weight * towards
            largest += float(weight * step) * LEVELS
        steps = _F(SUMS / largest) if largest > 0 else _F(0)
        factors = _F(mix.slope) * weights * steps * features.facts[:, 0]
        levels = (features.entries & np.uint32(LEVELS)).astype(_F)
        each = np.rint(np.repeat(factors, np.diff(features.starts)) * levels).astype(np.int64)
        numbers, at = np.unique(features.entries >> np.uint32(8), return_inverse=True)
        sums = np.zeros(len(numbers), np.int64)
        np.add.at(sums, at, each)
        step = 1.0 / float(steps) if steps > 0 else 0.0
        return cls(
            numbers.astype(np.int64), sums, scale, mean, _F(mix.mean_square), step, mix.unit_length
        )

    def __call__(self, features: Features) -> _Floats:
        """E of documents: (n,). Cost: a binary search for each of their features."""
        if not len(self.numbers):
            whole = np.zeros(len(features.facts), np.int64)
        else:
            wanted = (features.entries >> np.uint32(8)).astype(np.int64)
            places = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
            levels = (features.entries & np.uint32(LEVELS)).astype(np.int64)
            products = np.where(self.numbers[places] == wanted, self.sums[places] * levels, 0)
            ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(products)))
            whole = ends[features.starts[1:]] - ends[features.starts[:-1]]
        facts = features.facts
        taken = self.scale * facts[:, 2]
        taken = taken + facts[:, 1] * (self.mean - self.scale * self.mean_square)
        exact = (self.step * whole * facts[:, 0] - taken).astype(_F)
        return np.maximum(exact, _F(0)) if self.cut else exact


class Place(NamedTuple):
    """A query in the latent space.

    coordinates  (w,) int16 in steps, as wide as a card
    angle        one step of a cosine; 0 where the query lies nowhere
    """

    coordinates: npt.NDArray[np.int16]
    angle: np.float32

    @classmethod
    def of(cls, held: IndexArrays, dimensions: int, query: Query) -> Place:
        """Put a query into the space: see `place_query`."""
        fine = np.zeros(dimensions, _F)
        for term, times in zip(*query, strict=True):
            if term >= len(held.terms):
                continue
            step = _F(times) * held.bursts[term] * held.term_steps[term, -1]
            fine += step * held.terms[term, :dimensions].astype(_F)
        place = np.zeros(held.cards.shape[1], np.int16)
        largest = np.abs(fine).max(initial=_F(0))
        if largest == 0:
            return cls(place, _F(0))
        place[:dimensions] = np.rint((fine / largest).astype(np.float64) * PLACE_LEVELS)
        return cls(place, largest / _F(PLACE_LEVELS * LATENT_LEVELS))

    def cosines(self, cards: npt.NDArray[np.int8], *, cut: bool) -> _Floats:
        """L of documents with these cards, in steps: (n,); `cut` at 0, where parts are."""
        cosines = (cards.astype(np.int32) @ self.coordinates.astype(np.int32)).astype(_F)
        return np.maximum(cosines, _F(0)) if cut else cosines


Entries = npt.NDArray[np.uint32]
"""Of rows or features: a number in the upper 24 bits, a level in the lower 8."""


class Query(NamedTuple):
    """Distinct known terms, weakest first, and how often each was asked for."""

    terms: _Numbers
    times: _Numbers


class Terms(NamedTuple):
    """What the best documents hold of each term of a query.

    impacts  (best + 1, lanes) in steps; the last row is of a document that holds nothing
    worth    (lanes,) f(t,q) · h(t) · w(t), 0 beyond the last term
    half     (lanes,) where g is one half, in steps; 1 beyond the last term
    """

    impacts: _Floats
    worth: _Floats
    half: _Floats


def query_of(kernel: QueryKernel, numbers: Sequence[int]) -> Query:
    """Merge and order the terms: see `distinct_terms`."""
    postings, weights = kernel.postings, kernel.weights
    order: list[tuple[int, int, int]] = []  # term, times, largest
    for term in numbers:
        if term < 0:
            continue
        place = next((at for at, held in enumerate(order) if held[0] == term), len(order))
        times = order[place][1] + 1 if place < len(order) else 1
        largest = 1 + ((times * int(weights[term]) * int(postings.best[term, 0])) >> 16)
        order[place : place + 1] = [(term, times, largest)]
        while place > 0 and order[place - 1][2] > largest:
            order[place - 1], order[place] = order[place], order[place - 1]
            place -= 1
        while place < len(order) - 1 and order[place + 1][2] < largest:
            order[place + 1], order[place] = order[place], order[place + 1]
            place += 1
    return Query(
        np.array([term for term, _, _ in order], np.int64),
        np.array([times for _, times, _ in order], np.int64),
    )


def saturations_of(
    postings: Segments, terms: _Numbers, documents: Positions
) -> npt.NDArray[np.uint16]:
    """How saturated each term is in each document: (n, T), 0 where it is not held."""
    found = np.zeros((len(documents), len(terms)), np.uint16)
    for column, term in enumerate(terms.tolist()):
        holding, saturations = postings.of_term(term)
        if len(holding):
            places = np.minimum(np.searchsorted(holding, documents), len(holding) - 1)
            held = holding[places] == documents
            found[held, column] = saturations[places[held]]
    return found


def terms_of(
    kernel: QueryKernel, worth: _Floats, query: Query, saturations: npt.NDArray[np.uint16]
) -> Terms:
    """What the best hold of each term, by their saturations; `worth` is of all terms: (V,)."""
    lanes = -(-len(query.terms) // TOGETHER) * TOGETHER
    impacts = np.zeros((len(saturations) + 1, lanes), _F)
    counted, half = np.zeros(lanes, _F), np.ones(lanes, _F)
    for lane, (term, times) in enumerate(zip(*query, strict=True)):
        weight, column = times * kernel.weights[term], saturations[:, lane]
        steps = (column > 0) + ((weight * column.astype(np.int64)) >> 16)
        impacts[:-1, lane] = steps.astype(_F)
        counted[lane] = _F(times) * worth[term]
        half[lane] = _F(HALF * weight / (UNIT * kernel.postings.step))
    return Terms(impacts, counted, half)


def alpha_of(kernel: QueryKernel, query: Query, terms: Terms, mix: KlsaParams) -> float:
    """α by the share of the query that the first of the best holds: see `alpha_of`."""
    weights = query.times * kernel.weights[query.terms]
    held = terms.impacts[0, : len(weights)] > 0
    return effective_alpha(mix.alpha, mix.hold_back, int(weights[held].sum()) / int(weights.sum()))


def covered(
    near: Entries, places: npt.NDArray[np.integer], own: npt.NDArray[np.integer], terms: Terms
) -> _Floats:
    """T of documents: (n,).

    near    (n, neighbours) the nearest of each
    places  (n, neighbours) of these among the best, -1 for others; `own` (n,) those of each itself
    """
    levels = near & np.uint32(LEVELS)
    part = _F(NEIGHBOURHOOD) / np.maximum(levels.sum(axis=1), 1).astype(_F)
    places = np.where(levels == 0, -1, places)
    lent = np.zeros((len(near), terms.impacts.shape[1]), _F)
    for column in range(near.shape[1]):
        held = np.flatnonzero(places[:, column] >= 0)
        shares = levels[held, column].astype(_F)
        lent[held] += shares[:, None] * terms.impacts[places[held, column]]
    y = terms.impacts[own] + part[:, None] * lent
    sums = terms.worth * (y / (y + terms.half))
    total = np.zeros(len(near), _F)
    for lane in range(0, sums.shape[1], TOGETHER):
        group, width = sums[:, lane : lane + TOGETHER], TOGETHER
        while width > 1:
            width //= 2
            group = group[:, :width] + group[:, width:]
        total += group[:, 0]
    return total


def seed_weights(
    top: np.float32, lexical: _Floats, covered: _Floats | None, mix: KlsaParams
) -> _Floats:
    """What each seed brings; 0 where it is next to nothing beside the first."""
    weights = top * power(lexical, mix.sharpness)
    if covered is not None:
        weights = weights * power(covered / covered.max(), mix.coverage_power)
    return np.where(weights < _F(NEGLIGIBLE) * weights[0], _F(0), weights)


def brought_up(
    rows: Iterable[tuple[Entries, np.float32]],
) -> tuple[npt.NDArray[np.int64], _Floats]:
    """Add up rows, each with what one level of it is worth: documents, ascending, and their sums.

    A float is added to what was there row by row.
    """
    documents, values = [np.zeros(0, np.int64)], [np.zeros(0, _F)]
    for row, step in rows:
        row = row[row > 0]
        documents.append((row >> np.uint32(8)).astype(np.int64))
        values.append(step * (row & np.uint32(LEVELS)).astype(_F))
    distinct, at = np.unique(np.concatenate(documents), return_inverse=True)
    sums = np.zeros(len(distinct), _F)
    np.add.at(sums, at, np.concatenate(values))
    return distinct, sums


class Factors(NamedTuple):
    """Shares of E, T, L (in steps) and X over their lengths on the seeds, or the shares."""

    expansion: np.float32
    coverage: np.float32
    latent: np.float32
    lexical: np.float32


def factors_of(
    alpha: float, mix: KlsaParams, angle: np.float32, top: np.float32, *parts: _Floats
) -> Factors:
    """What each part counts for, by E, T, L and X of the seeds: see `factors_of`."""
    shares = *(alpha * part for part in (mix.expansion, mix.coverage, mix.latent)), 1 - alpha
    if not mix.unit_length:
        expansion, coverage, latent, lexical = map(_F, shares)
        return Factors(expansion, coverage, latent * angle, lexical * top)
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
    return Factors(*over)


def power(base: _Floats, exponent: float) -> _Floats:
    """Base ** exponent: see `power`."""
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


def above(bits: npt.NDArray[np.int32], wanted: int) -> int:
    """A bar that at least `wanted` of these bits of scores are above, and hardly more: `choose`.

    Below 0 where fewer scores are above 0.
    """
    if np.count_nonzero(bits > 0) < wanted:
        return -1
    low, high = 0, max(int(bits.max(initial=0)), 0)
    for _ in range(HALVINGS):
        middle = (low + high) >> 1
        count = np.count_nonzero(bits > middle)
        if count >= wanted:
            low = middle
            if count <= wanted + wanted // 8:
                break
        else:
            high = middle
    return low
