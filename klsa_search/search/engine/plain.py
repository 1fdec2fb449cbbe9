"""The default ranking by a cut D once more, in NumPy: the same answers to the bit, uncompiled.

What is asked before the compiled search is there, some milliseconds a query; and what the compiled
search is tested against. Each step stands in `expanded`, by the names used here. Sums of floats are
taken in the order they are taken there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.expansion import top_z
from klsa_search.expansion.coverage import HALF, NEIGHBOURHOOD
from klsa_search.expansion.cut import LATENT_LEVELS
from klsa_search.expansion.holding import held_back
from klsa_search.expansion.packing import LEVELS
from klsa_search.kernel import QueryKernel
from klsa_search.kernel.postings import UNIT
from klsa_search.search.engine.candidates import PLACE_LEVELS
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.record import Asked, Top
from klsa_search.search.engine.room import Held
from klsa_search.search.engine.saturation import TOGETHER
from klsa_search.search.engine.scan import HALVINGS, LANES, SAMPLED
from klsa_search.search.engine.scores import PROMISING
from klsa_search.search.engine.seeds import NEGLIGIBLE, SUMS, Depths, Mix

_F = np.float32
_Floats = npt.NDArray[np.float32]

MOST = SAMPLED * LANES
"""Candidates from which the compiled search goes by a sample of them, in their slots' order."""


class Query(NamedTuple):
    """Distinct known terms, weakest first, and how often each was asked for."""

    terms: npt.NDArray[np.int64]
    times: npt.NDArray[np.int64]


class Plain:
    """Answers as `search_expanded` does; immutable.

    neighbours  documents that count as near
    dimensions  of the latent space
    features    of the kernel
    living      the documents that count, where not all do
    """

    def __init__(
        self,
        kernel: QueryKernel,
        held: Held,
        neighbours: int,
        dimensions: int,
        features: int,
        living: Mask | None,
    ) -> None:
        self._kernel, self._held, self._living = kernel, held, living
        self._neighbours, self._dimensions = neighbours, dimensions
        self._features = features

    def top(self, numbers: Sequence[int], asked: Asked, mix: Mix, depths: Depths) -> Top | None:
        """Return the k best; None where there are `MOST` candidates or more."""
        kernel, held, k, mask = self._kernel, self._held, asked.k, asked.mask
        query = self._query(numbers)
        row = kernel.steps(query.terms, query.times.astype(np.float64))
        allowed = mask or self._living
        if self._living is not None:
            row = row * self._living.allowed
        found = top_z(row, max(mix.best, k))[0]
        if not len(found):
            return Top(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
        matches = row if mask is None else row * mask.allowed
        if mask is not None:
            within = top_z(matches, depths.within)[0]
            found = np.concatenate((found, within[~np.isin(within, found)]))
        keys = row[found]
        best, seeds = found[: mix.best], found[: mix.seeds]
        lexical = keys.astype(_F) / _F(keys[0])
        top = _F(keys[0]) * _F(kernel.postings.step)
        among = np.full(kernel.size, -1)
        among[best] = np.arange(len(best))
        terms = self._terms(query, best)
        weights = top * _power(lexical[: len(seeds)], mix.sharpness)
        covered = np.zeros(kernel.size, _F)
        if mix.coverage > 0:
            covered[seeds] = self._covered(seeds, among, terms)
            shares = covered[seeds] / covered[seeds].max()
            weights = weights * _power(shares, mix.coverage_power)
        weights = np.where(weights < _F(NEGLIGIBLE) * weights[0], _F(0), weights)
        besides = np.zeros(kernel.size, np.bool_)
        if depths.everything:
            besides[:] = True if allowed is None else allowed.allowed
        expanded, candidates = self._rows(seeds, weights, mix, found, besides)
        if len(candidates) >= MOST:
            return None
        compared = self._compared(seeds, weights, mix)
        expanded[seeds] = compared(seeds)
        place, angle = self._place(query)
        cosines = (held.cards[candidates].astype(np.int32) @ place.astype(np.int32)).astype(_F)
        cosines = np.maximum(cosines, _F(0)) if mix.unit_length else cosines
        latent = np.zeros(kernel.size, _F)
        latent[candidates] = cosines
        lexicals = _power(lexical, mix.lexical_sharpness)
        e, t, a, x = self._factors(
            self._alpha(query, terms, mix), mix, angle, top,
            expanded[seeds], covered[seeds], latent[seeds], lexicals[: len(seeds)],
        )  # fmt: skip
        scores = np.zeros(kernel.size, _F)
        scores[candidates] = e * expanded[candidates]
        if mix.coverage > 0:
            others = best[len(seeds) :]
            alone = np.full_like(among, -1)
            covered[others] = self._covered(others, alone, terms, own=among)
            scores[best] += t * covered[best]
        scores[found] += x * lexicals
        if mix.latent > 0:
            scores[candidates] += a * latent[candidates]
        if allowed is not None:
            scores[~allowed.allowed] = -np.inf
        fixed = np.zeros(kernel.size, np.bool_)
        fixed[seeds] = True
        if mix.coverage > 0:
            chosen = _chosen(scores, candidates, depths.covered)
            if depths.covered < len(candidates):
                least = scores[_chosen(scores, candidates, k)].min()
                chosen = chosen[scores[chosen] >= _F(PROMISING) * least]
            chosen = chosen[~fixed[chosen]]
            exact = self._covered(chosen, among, terms, own=among)
            scores[chosen] += t * (exact - covered[chosen])
        chosen = _chosen(scores, candidates, depths.compared)
        open_ = chosen[~fixed[chosen]]
        scores[open_] += e * (compared(open_) - expanded[open_])
        if len(chosen) < min(k, len(candidates)):
            chosen = _chosen(scores, candidates, k)
        chosen = np.sort(chosen)
        order, values = top_z(scores[chosen], k)
        total = max(int(np.count_nonzero(matches)), len(order)) if asked.totals else 0
        return Top(chosen[order].astype(np.int32), values, total)

    def _query(self, numbers: Sequence[int]) -> Query:
        """Merge and order the terms: see `distinct_terms`."""
        postings, weights = self._kernel.postings, self._kernel.weights
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

    def _terms(self, query: Query, best: Positions) -> tuple[_Floats, _Floats, _Floats]:
        """What the best hold of each term, and beyond them nothing; worth and half of each."""
        postings, each = self._kernel.postings, self._held.term_worth
        lanes = -(-len(query.terms) // TOGETHER) * TOGETHER
        impacts = np.zeros((len(best) + 1, lanes), _F)
        worth, half = np.zeros(lanes, _F), np.ones(lanes, _F)
        for lane, (term, times) in enumerate(zip(*query, strict=True)):
            documents, saturations = postings.of_term(int(term))
            row = np.zeros(self._kernel.size, np.uint16)
            row[documents] = saturations
            weight = times * self._kernel.weights[term]
            steps = (row[best] > 0) + ((weight * row[best].astype(np.int64)) >> 16)
            impacts[:-1, lane] = steps.astype(_F)
            worth[lane], half[lane] = (
                _F(times) * each[term],
                _F(HALF * weight / (UNIT * postings.step)),
            )
        return impacts, worth, half

    def _alpha(self, query: Query, terms: tuple[_Floats, _Floats, _Floats], mix: Mix) -> float:
        """α by the share of the query that the first of the best holds: see `alpha_of`."""
        weights = query.times * self._kernel.weights[query.terms]
        held = terms[0][0, : len(weights)] > 0
        return held_back(mix.alpha, mix.hold_back, int(weights[held].sum()) / int(weights.sum()))

    def _covered(
        self,
        documents: Positions,
        among: npt.NDArray[np.int64],
        terms: tuple[_Floats, _Floats, _Floats],
        own: npt.NDArray[np.int64] | None = None,
    ) -> _Floats:
        """T of documents; `among` gives the place among the best of what is near, `own` theirs."""
        impacts, worth, half = terms
        own = among if own is None else own
        near = self._held.rows[documents, : self._neighbours]
        levels = near & np.uint32(LEVELS)
        part = _F(NEIGHBOURHOOD) / np.maximum(levels.sum(axis=1), 1).astype(_F)
        places = among[near >> np.uint32(8)]
        places[levels == 0] = -1
        lent = np.zeros((len(documents), impacts.shape[1]), _F)
        for column in range(near.shape[1]):
            held = np.flatnonzero(places[:, column] >= 0)
            shares = levels[held, column].astype(_F)
            lent[held] += shares[:, None] * impacts[places[held, column]]
        y = impacts[own[documents]] + part[:, None] * lent
        sums = worth * (y / (y + half))
        width = TOGETHER
        total = np.zeros(len(documents), _F)
        for lane in range(0, impacts.shape[1], TOGETHER):
            group, width = sums[:, lane : lane + TOGETHER], TOGETHER
            while width > 1:
                width //= 2
                group = group[:, :width] + group[:, width:]
            total += group[:, 0]
        return total

    def _rows(
        self,
        seeds: Positions,
        weights: _Floats,
        mix: Mix,
        found: Positions,
        besides: npt.NDArray[np.bool_],
    ) -> tuple[_Floats, Positions]:
        """E as the rows of the seeds tell, and the candidates."""
        expanded = np.zeros(self._kernel.size, _F)
        held = np.zeros(self._kernel.size, np.bool_)
        held[found] = True
        for seed, weight in zip(seeds, weights, strict=True):
            if weight > 0:
                for row, step in self._rows_of(int(seed)):
                    row = row[row > 0]
                    documents = row >> np.uint32(8)
                    levels = (row & np.uint32(LEVELS)).astype(_F)
                    expanded[documents] += _F(mix.slope) * weight * step * levels
                    held[documents] = True
        return expanded, np.flatnonzero(held | besides)

    def _rows_of(self, document: int) -> Iterator[tuple[npt.NDArray[np.uint32], np.float32]]:
        """The row of a document and its step, and what is kept beside it."""
        held = self._held
        yield held.rows[document], held.scales[document, 0]
        if len(held.reversed_of) and held.reversed_of[document]:
            later = held.reversed_of[document] - 1
            yield held.reversed[later], held.reversed_steps[later]

    def _compared(self, seeds: Positions, weights: _Floats, mix: Mix) -> _Compared:
        """Add up the features of the seeds: see `add_seed_features`."""
        held = self._held
        scale, mean, largest = _F(0), _F(0), 0.0
        for seed, weight in zip(seeds, weights, strict=True):
            weight = _F(mix.slope) * weight
            scale = scale + weight * held.facts[seed, -2]
            mean = mean + weight * held.facts[seed, -1]
            largest += float(weight * held.facts[seed, -3]) * LEVELS
        steps = _F(SUMS / largest) if largest > 0 else _F(0)
        sums = np.zeros(self._features, np.int64)
        for seed, weight in zip(seeds, weights, strict=True):
            if weight > 0:
                factor = _F(mix.slope) * weight * steps * held.facts[seed, -3]
                entries = held.features[held.feature_starts[seed] : held.feature_starts[seed + 1]]
                levels = (entries & np.uint32(LEVELS)).astype(_F)
                sums[entries >> np.uint32(8)] += np.rint(factor * levels).astype(np.int64)
        step = 1.0 / float(steps) if steps > 0 else 0.0
        return _Compared(held, sums, scale, mean, _F(mix.mean_square), step, mix.unit_length)

    def _place(self, query: Query) -> tuple[npt.NDArray[np.int16], np.float32]:
        """The query's place in steps, and one step of a cosine: see `place_query`."""
        held, m = self._held, self._dimensions
        fine = np.zeros(m, _F)
        for term, times in zip(*query, strict=True):
            if term >= len(held.terms):
                continue
            step = _F(times) * held.bursts[term] * held.term_steps[term, -1]
            fine += step * held.terms[term, :m].astype(_F)
        place = np.zeros(held.cards.shape[1], np.int16)
        largest = np.abs(fine).max(initial=_F(0))
        if largest == 0:
            return place, _F(0)
        place[:m] = np.rint((fine / largest).astype(np.float64) * PLACE_LEVELS)
        return place, largest / _F(PLACE_LEVELS * LATENT_LEVELS)

    def _factors(
        self,
        alpha: float,
        mix: Mix,
        angle: np.float32,
        top: np.float32,
        *parts: _Floats,
    ) -> tuple[np.float32, ...]:
        """Shares over lengths on the seeds, or the shares: see `factors_of`."""
        shares = *(alpha * part for part in (mix.expansion, mix.coverage, mix.latent)), 1 - alpha
        if not mix.unit_length:
            expansion, coverage, latent, lexical = map(_F, shares)
            return expansion, coverage, latent * angle, lexical * top
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


class _Compared(NamedTuple):
    """E from the features: see `compared`."""

    held: Held
    sums: npt.NDArray[np.int64]
    scale: np.float32
    mean: np.float32
    mean_square: np.float32
    step: float
    cut: bool

    def __call__(self, documents: Positions) -> _Floats:
        held, facts = self.held, self.held.facts[documents]
        whole = np.zeros(len(documents), np.int64)
        for at, document in enumerate(documents):
            first, after = held.feature_starts[document], held.feature_starts[document + 1]
            entries = held.features[first:after]
            levels = (entries & np.uint32(LEVELS)).astype(np.int64)
            whole[at] = np.sum(self.sums[entries >> np.uint32(8)] * levels)
        taken = self.scale * facts[:, -1]
        taken = taken + facts[:, -2] * (self.mean - self.scale * self.mean_square)
        exact = (self.step * whole * facts[:, -3] - taken).astype(_F)
        return np.maximum(exact, _F(0)) if self.cut else exact


def _power(base: _Floats, exponent: float) -> _Floats:
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


def _chosen(scores: _Floats, candidates: Positions, wanted: int) -> Positions:
    """The highest scores, `wanted` or hardly more: see `choose`."""
    if len(candidates) <= wanted:
        return candidates
    bits = scores[candidates].view(np.int32)
    low, high = 0, max(int(bits.max()), 0)
    if np.count_nonzero(bits > 0) < wanted:
        return candidates
    for _ in range(HALVINGS):
        middle = (low + high) >> 1
        count = np.count_nonzero(bits > middle)
        if count >= wanted:
            low = middle
            if count <= wanted + wanted // 8:
                break
        else:
            high = middle
    return candidates[bits > low]
