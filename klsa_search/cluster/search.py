"""The coordinator's part of a search by shards.

The steps are those of `search.engine.klsa`. Each shard returns as many of its best candidates as
are rescored at most, and an eighth more; these include all that a single machine would rescore.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.messages import (
    Floats,
    RerankRequest,
    RerankScores,
    ShardCandidates,
    ShardHits,
)
from klsa_search.cluster.shard import Share, gathered, merged, seed_data, weighted_rows
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
    """What the coordinator reads of the index: data of terms, not of documents."""

    kernel: QueryKernel
    held: IndexArrays
    living: Mask | None
    dimensions: int
    neighbours: int


class Search:
    """The state of a query between the rounds.

    top   results, once they are known
    open  whether round 2 is needed. If it is not and `top` is None, there are so many candidates
          that a single machine would sample them
    """

    def __init__(
        self,
        read: Read,
        query: Query,
        asked: EngineQuery,
        params: KlsaParams,
        depths: RerankDepths,
        found: Sequence[ShardHits],
    ) -> None:
        self._read, self._query, self._params = read, query, params
        self._depths, self._asked = depths, asked
        self._total = sum(each.total for each in found)
        self.top: TopDocs | None = None
        self.open = False
        documents, steps = merged(
            [(each.documents, each.steps) for each in found], max(params.best, asked.k)
        )
        if not len(documents):
            self.top = TopDocs(np.zeros(0, np.int32), np.zeros(0, _F), 0)
            return
        best, self._seeds = documents[: params.best], documents[: params.seeds]
        if asked.mask is not None:
            within, within_steps = merged(
                [(each.allowed_documents, each.allowed_steps) for each in found], depths.filtered
            )
            more = ~np.isin(within, documents)
            documents = np.concatenate((documents, within[more]))
            steps = np.concatenate((steps, within_steps[more]))
        depth = [each.documents[: params.best] for each in found]
        saturations = gathered(best, depth, [each.saturations for each in found])
        self._terms = term_impacts(read.kernel, read.held.term_weights, query, saturations)
        self._places = np.argsort(best)
        self._best = best[self._places]
        self._score_candidates(found, best, documents, steps)

    def _score_candidates(
        self,
        found: Sequence[ShardHits],
        best: npt.NDArray[np.int64],
        documents: npt.NDArray[np.int64],
        steps: npt.NDArray[np.int64],
    ) -> None:
        """Weight the seeds, and score the candidates that their rows add."""
        params, read, seeds = self._params, self._read, self._seeds
        held, z = seed_data(found, seeds), len(seeds)
        lexical = steps.astype(_F) / _F(steps[0])
        first = _F(steps[0]) * _F(read.kernel.postings.step)
        coverage, shares = np.zeros(len(best), _F), None
        if params.coverage > 0:
            near = held.nearest(read.neighbours)
            places = self._ranks(near >> np.uint32(8))
            shares = coverage_scores(near, places, np.arange(z), self._terms)
            # The neighbours of the other documents are looked up by their shards.
            rest = np.arange(z, len(best))
            nothing = np.zeros((len(rest), 1), np.uint32)
            own_coverage = coverage_scores(nothing, np.full(nothing.shape, -1), rest, self._terms)
            coverage = np.concatenate((shares, own_coverage))
        weights = seed_weights(first, lexical[:z], shares, params)
        brought, sums = add_rows(weighted_rows(held.rows, seeds, weights, params))
        candidates = np.union1d(brought, documents)
        if len(candidates) >= SAMPLING_LIMIT:
            return
        self._compared = ExpansionScorer.of(held.features, weights, params)
        self._place = QueryVector.of(read.held, read.dimensions, self._query)
        expanded = self._compared(held.features)
        latent = self._place.cosines(held.vectors, clip=params.unit_length)
        lexicals = power(lexical, params.lexical_sharpness)
        e, t, a, x = self._factors = part_factors(
            query_alpha(read.kernel, self._query, self._terms, params), params,
            self._place.angle, first, expanded, coverage[:z], latent, lexicals[:z],
        )  # fmt: skip
        at_seeds, at_best = np.searchsorted(candidates, seeds), np.searchsorted(candidates, best)
        self._expanded, self._own_coverage = np.zeros((2, len(candidates)), _F)
        self._expanded[np.searchsorted(candidates, brought)] = sums
        self._expanded[at_seeds] = expanded
        scores = e * self._expanded
        if params.coverage > 0:
            self._own_coverage[at_best] = coverage
            scores[at_best] += t * coverage
        scores[np.searchsorted(candidates, documents)] += x * lexicals
        self._candidates, self._scores = candidates, scores
        self._seed_scores = scores[at_seeds]
        if params.latent > 0:
            self._seed_scores = self._seed_scores + a * latent
        self._asked_for = np.ones(len(candidates), np.bool_)
        allowed = self._asked.mask or read.living
        if allowed is not None:
            self._asked_for = allowed.allowed[candidates]
            self._seed_scores[~allowed.allowed[seeds]] = -np.inf
        self._asked_for[at_seeds] = False
        self.open = True

    def request(self) -> RerankRequest:
        """Return the part of round 2 that all shards get."""
        params, depths = self._params, self._depths
        wanted = max(depths.expansion_depth, depths.coverage_depth, self._asked.k)
        return RerankRequest(
            best=self._best,
            places=self._places,
            terms=self._terms,
            compared=self._compared,
            place=self._place.coordinates,
            factors=self._factors,
            has_coverage=params.coverage > 0,
            latent=params.latent > 0,
            cut=params.unit_length,
            depth=wanted + wanted // 8 + 1,
            seeds=self._seeds,
            count_terms=self._query.terms if self._asked.totals else self._query.terms[:0],
        )

    def candidates(self, share: Share) -> ShardCandidates:
        """Return the candidates of one shard for round 2."""
        own = share.holds(self._candidates) & self._asked_for
        return ShardCandidates(
            self._candidates[own],
            self._scores[own],
            self._expanded[own],
            self._own_coverage[own],
        )

    def take(self, scored: Sequence[RerankScores]) -> None:
        """Apply the rescorings that a single machine would, and set `top`."""
        documents = np.concatenate([self._seeds, *(each.documents for each in scored)])
        none = np.zeros(len(self._seeds), _F)
        scores = np.concatenate([self._seed_scores, *(each.scores for each in scored)])
        gained = np.concatenate([none, *(each.covered for each in scored)])
        compared = np.concatenate([none, *(each.compared for each in scored)])
        depths, k = self._depths, self._asked.k
        if self._params.coverage > 0:
            chosen = _chosen(scores, depths.coverage_depth)
            if depths.coverage_depth < len(self._candidates):
                chosen &= scores >= _F(PROMISING) * self._kth_score(scores, k)
            scores[chosen] += gained[chosen]
        chosen = _chosen(scores, depths.expansion_depth)
        scores[chosen] += compared[chosen]
        if np.count_nonzero(chosen) < k:
            chosen = _chosen(scores, k)
        order = np.flatnonzero(chosen)
        order = order[np.argsort(documents[order])]
        kept = scores[order]
        best, values = top_z(np.where(kept >= EXCLUDED, np.maximum(kept, MIN_SCORE), 0), k)
        total = self._total + sum(each.unmatched for each in scored) if self._asked.totals else 0
        self.top = TopDocs(documents[order][best].astype(np.int32), values, total)

    def _kth_score(self, scores: Floats, k: int) -> np.float32:
        """Return the k-th highest score of all candidates."""
        chosen = _chosen(scores, k)
        whole = self._asked.mask is None and self._read.living is None
        # With fewer than k of them, candidates that are not allowed are among these.
        few = np.count_nonzero(scores > 0) < k
        return _F(-np.inf) if few and not whole else _F(scores[chosen].min())

    def _ranks(self, documents: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Return the rank of each document among the best, or -1."""
        return values_at(documents, self._best, self._places, missing=-1)


def _chosen(scores: Floats, wanted: int) -> _Allowed:
    """Return whether each score is among the `wanted` highest; all are if few are above 0."""
    bits = scores.view(np.int32)
    return (
        np.asarray(bits > threshold_of(bits, wanted))
        if np.count_nonzero(bits > 0) >= wanted
        else (np.ones(len(scores), np.bool_))
    )
