"""One query on its way through the two rounds, in the process that asks the shards.

Each step stands in `search.engine.klsa`. Which closer looks count is decided by the scores of
the foremost of each shard, as many as are looked at at most and an eighth more: those that one
machine would choose are among them, and it would choose no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.messages import Candidates, Floats, Found, Known, Scored
from klsa_search.cluster.shard import Share, gathered, merged, of_seeds, weighed
from klsa_search.core.array_types import values_at
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.search.engine.formulas import (
    ExpansionScorer,
    Query,
    QueryVector,
    add_rows,
    coverage_scores,
    part_factors,
    power,
    query_alpha,
    seed_weights,
    term_impacts,
    threshold_of,
)
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.reference import SAMPLING_LIMIT
from klsa_search.search.engine.scores import EXCLUDED, MIN_SCORE, PROMISING
from klsa_search.search.engine.seeds import KlsaParams, RerankDepths
from klsa_search.search.engine.workspace import EngineQuery, IndexArrays, TopDocs

_F = np.float32
_Allowed = npt.NDArray[np.bool_]


class Read(NamedTuple):
    """What the process that asks reads of the index itself: what is of terms, not of documents."""

    kernel: QueryKernel
    held: IndexArrays
    living: Mask | None
    dimensions: int
    neighbours: int


class Search:
    """A query.

    top   its answer, once it is known
    open  whether shards are to be asked again; where they are not and there is no answer, there
          are so many candidates that one machine goes by a sample of them
    """

    def __init__(
        self,
        read: Read,
        query: Query,
        asked: EngineQuery,
        mix: KlsaParams,
        depths: RerankDepths,
        found: Sequence[Found],
    ) -> None:
        self._read, self._query, self._mix = read, query, mix
        self._depths, self._asked = depths, asked
        self._total = sum(each.total for each in found)
        self.top: TopDocs | None = None
        self.open = False
        documents, steps = merged(
            [(each.documents, each.steps) for each in found], max(mix.best, asked.k)
        )
        if not len(documents):
            self.top = TopDocs(np.zeros(0, np.int32), np.zeros(0, _F), 0)
            return
        best, self._seeds = documents[: mix.best], documents[: mix.seeds]
        if asked.mask is not None:
            within, within_steps = merged(
                [(each.allowed_documents, each.allowed_steps) for each in found], depths.filtered
            )
            more = ~np.isin(within, documents)
            documents = np.concatenate((documents, within[more]))
            steps = np.concatenate((steps, within_steps[more]))
        foremost = [each.documents[: mix.best] for each in found]
        saturations = gathered(best, foremost, [each.saturations for each in found])
        self._terms = term_impacts(read.kernel, read.held.term_weights, query, saturations)
        self._places = np.argsort(best)
        self._best = best[self._places]
        self._weigh(found, best, documents, steps)

    def _weigh(
        self,
        found: Sequence[Found],
        best: npt.NDArray[np.int64],
        documents: npt.NDArray[np.int64],
        steps: npt.NDArray[np.int64],
    ) -> None:
        """Weigh the seeds and make what their rows bring up candidates."""
        mix, read, seeds = self._mix, self._read, self._seeds
        held, z = of_seeds(found, seeds), len(seeds)
        lexical = steps.astype(_F) / _F(steps[0])
        first = _F(steps[0]) * _F(read.kernel.postings.step)
        covers, shares = np.zeros(len(best), _F), None
        if mix.coverage > 0:
            near = held.nearest(read.neighbours)
            places = self._among(near >> np.uint32(8))
            shares = coverage_scores(near, places, np.arange(z), self._terms)
            # What is near the others is looked at later, by their shards.
            rest = np.arange(z, len(best))
            nothing = np.zeros((len(rest), 1), np.uint32)
            alone = coverage_scores(nothing, np.full(nothing.shape, -1), rest, self._terms)
            covers = np.concatenate((shares, alone))
        weights = seed_weights(first, lexical[:z], shares, mix)
        brought, sums = add_rows(weighed(held.rows, seeds, weights, mix))
        candidates = np.union1d(brought, documents)
        if len(candidates) >= SAMPLING_LIMIT:
            return
        self._compared = ExpansionScorer.of(held.features, weights, mix)
        self._place = QueryVector.of(read.held, read.dimensions, self._query)
        expanded = self._compared(held.features)
        latent = self._place.cosines(held.cards, clip=mix.unit_length)
        lexicals = power(lexical, mix.lexical_sharpness)
        e, t, a, x = self._factors = part_factors(
            query_alpha(read.kernel, self._query, self._terms, mix), mix, self._place.angle, first,
            expanded, covers[:z], latent, lexicals[:z],
        )  # fmt: skip
        at_seeds, at_best = np.searchsorted(candidates, seeds), np.searchsorted(candidates, best)
        self._expanded, self._alone = np.zeros((2, len(candidates)), _F)
        self._expanded[np.searchsorted(candidates, brought)] = sums
        self._expanded[at_seeds] = expanded
        scores = e * self._expanded
        if mix.coverage > 0:
            self._alone[at_best] = covers
            scores[at_best] += t * covers
        scores[np.searchsorted(candidates, documents)] += x * lexicals
        self._candidates, self._scores = candidates, scores
        self._of_seeds = scores[at_seeds]
        if mix.latent > 0:
            self._of_seeds = self._of_seeds + a * latent
        self._asked_for = np.ones(len(candidates), np.bool_)
        allowed = self._asked.mask or read.living
        if allowed is not None:
            self._asked_for = allowed.allowed[candidates]
            self._of_seeds[~allowed.allowed[seeds]] = -np.inf
        self._asked_for[at_seeds] = False
        self.open = True

    def known(self) -> Known:
        """What all shards get."""
        mix, depths = self._mix, self._depths
        wanted = max(depths.expansion_depth, depths.coverage_depth, self._asked.k)
        return Known(
            best=self._best,
            places=self._places,
            terms=self._terms,
            compared=self._compared,
            place=self._place.coordinates,
            factors=self._factors,
            covers=mix.coverage > 0,
            latent=mix.latent > 0,
            cut=mix.unit_length,
            foremost=wanted + wanted // 8 + 1,
            seeds=self._seeds,
            counted=self._query.terms if self._asked.totals else self._query.terms[:0],
        )

    def candidates(self, share: Share) -> Candidates:
        """What one shard is asked."""
        own = share.holds(self._candidates) & self._asked_for
        return Candidates(
            self._candidates[own],
            self._scores[own],
            self._expanded[own],
            self._alone[own],
        )

    def take(self, scored: Sequence[Scored]) -> None:
        """Take the closer looks that one machine takes, and answer."""
        documents = np.concatenate([self._seeds, *(each.documents for each in scored)])
        none = np.zeros(len(self._seeds), _F)
        scores = np.concatenate([self._of_seeds, *(each.scores for each in scored)])
        gained = np.concatenate([none, *(each.covered for each in scored)])
        compared = np.concatenate([none, *(each.compared for each in scored)])
        depths, k = self._depths, self._asked.k
        if self._mix.coverage > 0:
            chosen = _chosen(scores, depths.coverage_depth)
            if depths.coverage_depth < len(self._candidates):
                chosen &= scores >= _F(PROMISING) * self._least(scores, k)
            scores[chosen] += gained[chosen]
        chosen = _chosen(scores, depths.expansion_depth)
        scores[chosen] += compared[chosen]
        if np.count_nonzero(chosen) < k:
            chosen = _chosen(scores, k)
        order = np.flatnonzero(chosen)
        order = order[np.argsort(documents[order])]
        kept = scores[order]
        best, values = top_z(np.where(kept >= EXCLUDED, np.maximum(kept, MIN_SCORE), 0), k)
        total = self._total + sum(each.without for each in scored) if self._asked.totals else 0
        self.top = TopDocs(documents[order][best].astype(np.int32), values, total)

    def _least(self, scores: Floats, k: int) -> np.float32:
        """The lowest of the k highest of all candidates."""
        chosen = _chosen(scores, k)
        whole = self._asked.mask is None and self._read.living is None
        # Where they are not k, those that may not be answered are among them.
        few = np.count_nonzero(scores > 0) < k
        return _F(-np.inf) if few and not whole else _F(scores[chosen].min())

    def _among(self, documents: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Which of the best each document is; -1 for others."""
        return values_at(documents, self._best, self._places, missing=-1)


def _chosen(scores: Floats, wanted: int) -> _Allowed:
    """Whether each is among the highest of all candidates; all are, where few are above 0."""
    bits = scores.view(np.int32)
    return (
        np.asarray(bits > threshold_of(bits, wanted))
        if np.count_nonzero(bits > 0) >= wanted
        else (np.ones(len(scores), np.bool_))
    )
