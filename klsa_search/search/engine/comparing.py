"""What documents are compared with, in NumPy: the features of the seeds, and the place of a query.

E and L of any document, as `candidates` has them compiled; what else is added up is in `formulas`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import Positions
from klsa_search.expansion.cut import FACTS, LATENT_LEVELS
from klsa_search.expansion.packing import LEVELS
from klsa_search.search.engine.candidates import PLACE_LEVELS
from klsa_search.search.engine.formulas import Entries, Query
from klsa_search.search.engine.room import Held
from klsa_search.search.engine.seeds import SUMS, Mix

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
    def held(cls, held: Held, documents: Positions) -> Features:
        """Those of documents of an index. Cost: their entries."""
        first, after = held.feature_starts[documents], held.feature_starts[documents + 1]
        pieces = [held.features[slice(*each)] for each in zip(first, after, strict=True)]
        starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(after - first)))
        entries = np.concatenate([held.features[:0], *pieces])
        return cls(starts, entries, held.facts[documents, -FACTS:])


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
    def of(cls, features: Features, weights: _Floats, mix: Mix) -> Compared:
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
    def of(cls, held: Held, dimensions: int, query: Query) -> Place:
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
