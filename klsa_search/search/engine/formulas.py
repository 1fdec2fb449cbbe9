"""The steps of the default ranking in NumPy, each a function of what it reads: see `expanded`.

What they give is what the compiled search computes, to the bit: sums of floats are taken in the
order they are taken there. They are handed the entries, not the index: so those who have a part of
it each can go through them together. What features and the latent space say is in `comparing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.expansion.coverage import HALF, NEIGHBOURHOOD
from klsa_search.expansion.holding import held_back
from klsa_search.expansion.packing import LEVELS
from klsa_search.kernel.postings import UNIT
from klsa_search.kernel.query import QueryKernel
from klsa_search.kernel.segments import Segments
from klsa_search.search.engine.room import TOGETHER
from klsa_search.search.engine.scan import HALVINGS
from klsa_search.search.engine.seeds import NEGLIGIBLE, Mix

_F = np.float32
_Floats = npt.NDArray[np.float32]
_Numbers = npt.NDArray[np.int64]
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


def alpha_of(kernel: QueryKernel, query: Query, terms: Terms, mix: Mix) -> float:
    """α by the share of the query that the first of the best holds: see `alpha_of`."""
    weights = query.times * kernel.weights[query.terms]
    held = terms.impacts[0, : len(weights)] > 0
    return held_back(mix.alpha, mix.hold_back, int(weights[held].sum()) / int(weights.sum()))


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


def seed_weights(top: np.float32, lexical: _Floats, covered: _Floats | None, mix: Mix) -> _Floats:
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
    alpha: float, mix: Mix, angle: np.float32, top: np.float32, *parts: _Floats
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
