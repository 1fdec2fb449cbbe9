"""The default ranking by a cut D once more, in NumPy: the same answers to the bit, uncompiled.

What is asked before the compiled search is there, some milliseconds a query; and what the compiled
search is tested against. Each step stands in `expanded`, by the names used here, in `formulas` and
`comparing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Positions
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.search.engine.formulas import (
    Compared,
    Features,
    Place,
    Query,
    Terms,
    above,
    alpha_of,
    brought_up,
    covered,
    factors_of,
    power,
    query_of,
    saturations_of,
    seed_weights,
    terms_of,
)
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.scan import LANES, SAMPLED
from klsa_search.search.engine.scores import LEAST, LOWEST, PROMISING
from klsa_search.search.engine.seeds import KlsaParams, RerankDepths
from klsa_search.search.engine.workspace import EngineQuery, IndexArrays, TopDocs

_F = np.float32
_Floats = npt.NDArray[np.float32]

MOST = SAMPLED * LANES
"""Candidates from which the compiled search goes by a sample of them, in their slots' order."""


class ReferenceEngine:
    """Answers as `search_expanded` does; immutable.

    neighbours  documents that count as near
    dimensions  of the latent space
    living      the documents that count, where not all do
    """

    def __init__(
        self,
        kernel: QueryKernel,
        held: IndexArrays,
        neighbours: int,
        dimensions: int,
        living: Mask | None,
    ) -> None:
        self._kernel, self._held, self._living = kernel, held, living
        self._neighbours, self._dimensions = neighbours, dimensions

    def top(
        self, numbers: Sequence[int], asked: EngineQuery, mix: KlsaParams, depths: RerankDepths
    ) -> TopDocs | None:
        """Return the k best; None where there are `MOST` candidates or more."""
        kernel, held, k, mask = self._kernel, self._held, asked.k, asked.mask
        query = query_of(kernel, numbers)
        row = kernel.steps(query.terms, query.times.astype(np.float64))
        allowed = mask or self._living
        if self._living is not None:
            row = row * self._living.allowed
        found = top_z(row, max(mix.best, k))[0]
        if not len(found):
            return TopDocs(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
        if mask is not None:
            within = top_z(row * mask.allowed, depths.within)[0]
            found = np.concatenate((found, within[~np.isin(within, found)]))
        keys = row[found]
        best, seeds = found[: mix.best], found[: mix.seeds]
        lexical = keys.astype(_F) / _F(keys[0])
        top = _F(keys[0]) * _F(kernel.postings.step)
        among = np.full(kernel.size, -1)
        among[best] = np.arange(len(best))
        terms = self._terms(query, best)
        covers = np.zeros(kernel.size, _F)
        if mix.coverage > 0:
            covers[seeds] = self._covered(seeds, among, terms)
        shares = covers[seeds] if mix.coverage > 0 else None
        weights = seed_weights(top, lexical[: len(seeds)], shares, mix)
        documents, sums = brought_up(self._rows(seeds, weights, mix))
        expanded, is_candidate = np.zeros(kernel.size, _F), np.zeros(kernel.size, np.bool_)
        expanded[documents] = sums
        is_candidate[documents] = is_candidate[found] = True
        candidates = np.flatnonzero(is_candidate)
        if len(candidates) >= MOST:
            return None
        compared = Compared.of(Features.held(held, seeds), weights, mix)
        expanded[seeds] = compared(Features.held(held, seeds))
        place = Place.of(held, self._dimensions, query)
        latent = np.zeros(kernel.size, _F)
        latent[candidates] = place.cosines(held.cards[candidates], cut=mix.unit_length)
        lexicals = power(lexical, mix.lexical_sharpness)
        e, t, a, x = factors_of(
            alpha_of(kernel, query, terms, mix), mix, place.angle, top,
            expanded[seeds], covers[seeds], latent[seeds], lexicals[: len(seeds)],
        )  # fmt: skip
        scores = np.zeros(kernel.size, _F)
        scores[candidates] = e * expanded[candidates]
        if mix.coverage > 0:
            others = best[len(seeds) :]
            alone = np.full_like(among, -1)
            covers[others] = self._covered(others, alone, terms, own=among)
            scores[best] += t * covers[best]
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
            scores[chosen] += t * (exact - covers[chosen])
        chosen = _chosen(scores, candidates, depths.compared)
        open_ = chosen[~fixed[chosen]]
        scores[open_] += e * (compared(Features.held(held, open_)) - expanded[open_])
        if len(chosen) < min(k, len(candidates)):
            chosen = _chosen(scores, candidates, k)
        chosen = np.sort(chosen)
        kept = scores[chosen]
        order, values = top_z(np.where(kept >= LOWEST, np.maximum(kept, LEAST), 0), k)
        total = 0
        if asked.totals:
            is_found = (row > 0) | is_candidate
            is_found &= True if allowed is None else allowed.allowed
            total = int(np.count_nonzero(is_found))
        return TopDocs(chosen[order].astype(np.int32), values, total)

    def _terms(self, query: Query, best: Positions) -> Terms:
        held = saturations_of(self._kernel.postings, query.terms, best)
        return terms_of(self._kernel, self._held.term_worth, query, held)

    def _covered(
        self,
        documents: Positions,
        among: npt.NDArray[np.int64],
        terms: Terms,
        own: npt.NDArray[np.int64] | None = None,
    ) -> _Floats:
        """T of documents; `among` gives the place among the best of what is near, `own` theirs."""
        near = self._held.rows[documents, : self._neighbours]
        own = among if own is None else own
        return covered(near, among[near >> np.uint32(8)], own[documents], terms)

    def _rows(
        self, seeds: Positions, weights: _Floats, mix: KlsaParams
    ) -> Iterator[tuple[npt.NDArray[np.uint32], np.float32]]:
        """The rows of the seeds that count, and what a level of each is worth."""
        for seed, weight in zip(seeds, weights, strict=True):
            if weight > 0:
                for row, step in self._rows_of(int(seed)):
                    yield row, _F(mix.slope) * weight * step

    def _rows_of(self, document: int) -> Iterator[tuple[npt.NDArray[np.uint32], np.float32]]:
        """The row of a document and its step, and what is kept beside it."""
        held = self._held
        yield held.rows[document], held.scales[document, 0]
        if len(held.reversed_of) and held.reversed_of[document]:
            later = held.reversed_of[document] - 1
            yield held.reversed[later], held.reversed_steps[later]


def _chosen(scores: _Floats, candidates: Positions, wanted: int) -> Positions:
    """The highest scores, `wanted` or hardly more: see `choose`."""
    if len(candidates) <= wanted:
        return candidates
    bits = scores[candidates].view(np.int32)
    bar = above(bits, wanted)
    return candidates if bar < 0 else candidates[bits > bar]
