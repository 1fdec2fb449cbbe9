"""The default ranking in NumPy: the same results as compiled code, to the bit.

Used until the engine is compiled (some milliseconds per query), and to test it. Its steps are those
of `klsa`, with the functions of `formulas`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.search.engine.formulas import (
    DocFeatures,
    ExpansionScorer,
    Query,
    QueryVector,
    TermImpacts,
    add_rows,
    coverage_scores,
    distinct_known,
    distinct_query,
    fits_engine,
    matched_share,
    part_factors,
    power,
    query_alpha,
    query_impacts,
    seed_weights,
    term_impacts,
    term_saturations,
    threshold_of,
    with_elsewhere,
)
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.scan import LANES, SAMPLED
from klsa_search.search.engine.scores import EXCLUDED, MIN_SCORE, PROMISING
from klsa_search.search.engine.seeds import KlsaParams, RerankDepths
from klsa_search.search.engine.shared_seeds import (
    NONE_ELSEWHERE,
    BestElsewhere,
    LocalSeeds,
    SharedSeeds,
)
from klsa_search.search.engine.workspace import EngineQuery, IndexArrays, TopDocs

_F = np.float32
_Floats = npt.NDArray[np.float32]

SAMPLING_LIMIT = SAMPLED * LANES
"""Candidates from which the compiled search samples scores in the order of slots."""


class ReferenceEngine:
    """Search as `search_expanded` does; immutable.

    neighbours  neighbours of a document that count for T
    dimensions  of the latent space
    live        mask of the live documents, if some are deleted
    """

    def __init__(
        self,
        kernel: QueryKernel,
        index: IndexArrays,
        neighbours: int,
        dimensions: int,
        live: Mask | None,
    ) -> None:
        self._kernel, self._index, self._live = kernel, index, live
        self._neighbours, self._dimensions = neighbours, dimensions

    def top(
        self,
        numbers: Sequence[int],
        request: EngineQuery,
        params: KlsaParams,
        depths: RerankDepths,
        shared: SharedSeeds | None = None,
    ) -> TopDocs | None:
        """Return the k best documents, or None for `SAMPLING_LIMIT` candidates or more.

        Queries of too many terms to be compiled are ranked with any number of candidates.

        shared  the seeds of the query, if it is searched in several partitions: see `top_shared`
        """
        kernel, index, k, mask = self._kernel, self._index, request.k, request.mask
        query = distinct_query(kernel, numbers)
        lexical_scores = self._lexical_scores(query)
        allowed = mask or self._live
        matched = top_z(lexical_scores, max(params.best, k))[0]
        if not len(matched) and (shared is None or not len(shared.near)):
            return TopDocs(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
        first = lexical_scores[matched[0]] if shared is None else shared.first
        counts = (params.best, params.seeds) if shared is None else (shared.best, shared.seeds)
        if mask is not None:
            filtered = top_z(lexical_scores * mask.allowed, depths.filtered)[0]
            matched = np.concatenate((matched, filtered[~np.isin(filtered, matched)]))
        keys = lexical_scores[matched]
        best, seeds = (matched[:count] for count in counts)
        lexical = keys.astype(_F) / _F(first)
        top = _F(first) * _F(kernel.postings.step)
        rank_of = np.full(kernel.size, -1)
        rank_of[best] = np.arange(len(best))
        terms = self._terms(query, best)
        elsewhere = NONE_ELSEWHERE if shared is None else shared.elsewhere
        if len(elsewhere.documents):
            terms = with_elsewhere(terms, query, distinct_known(numbers), elsewhere.impacts)
        coverage = np.zeros(kernel.size, _F)
        if params.coverage > 0:
            coverage[seeds] = self._coverage(seeds, rank_of, terms, elsewhere=elsewhere)
        shares = coverage[seeds] if params.coverage > 0 else None
        weights = seed_weights(top, lexical[: len(seeds)], shares, params)
        if shared is None:
            documents, sums = add_rows(self._rows(seeds, weights, params))
        else:
            documents, sums = shared.near.astype(np.int64), shared.estimates
        expanded, is_candidate = np.zeros(kernel.size, _F), np.zeros(kernel.size, np.bool_)
        expanded[documents] = sums
        is_candidate[documents] = is_candidate[matched] = True
        candidates = np.flatnonzero(is_candidate)
        if len(candidates) >= SAMPLING_LIMIT and fits_engine(numbers):
            return None
        features = DocFeatures.of(index, seeds)
        if shared is None:
            expansion_scores = ExpansionScorer.of(features, weights, params)
        else:
            expansion_scores = shared.scorer
        expanded[seeds] = expansion_scores(features)
        query_vector = QueryVector.of(index, self._dimensions, query)
        latent = np.zeros(kernel.size, _F)
        latent[candidates] = query_vector.cosines(
            index.document_vectors[candidates], clip=params.unit_length
        )
        lexicals = power(lexical, params.lexical_sharpness)
        if shared is None:
            alpha = query_alpha(kernel, query, terms, params)
            factors = part_factors(
                alpha, params, query_vector.angle, top, expanded[seeds], coverage[seeds],
                latent[seeds], lexicals[: len(seeds)],
            )  # fmt: skip
        else:
            factors = shared.factors
        e, t, a, x = factors
        scores = np.zeros(kernel.size, _F)
        scores[candidates] = e * expanded[candidates]
        if params.coverage > 0:
            others = best[len(seeds) :]
            no_rank = np.full_like(rank_of, -1)
            coverage[others] = self._coverage(others, no_rank, terms, own=rank_of)
            scores[best] += t * coverage[best]
        scores[matched] += x * lexicals
        if params.latent > 0:
            scores[candidates] += a * latent[candidates]
        if allowed is not None:
            scores[~allowed.allowed] = -np.inf
        is_seed = np.zeros(kernel.size, np.bool_)
        is_seed[seeds] = True
        if params.coverage > 0:
            chosen = _select(scores, candidates, depths.coverage_depth)
            if depths.coverage_depth < len(candidates):
                least = scores[_select(scores, candidates, k)].min()
                chosen = chosen[scores[chosen] >= _F(PROMISING) * least]
            chosen = chosen[~is_seed[chosen]]
            exact = self._coverage(chosen, rank_of, terms, elsewhere=elsewhere)
            scores[chosen] += t * (exact - coverage[chosen])
        chosen = _select(scores, candidates, depths.expansion_depth)
        rescored = chosen[~is_seed[chosen]]
        scores[rescored] += e * (
            expansion_scores(DocFeatures.of(index, rescored)) - expanded[rescored]
        )
        if len(chosen) < min(k, len(candidates)):
            chosen = _select(scores, candidates, k)
        chosen = np.sort(chosen)
        kept = scores[chosen]
        order, values = top_z(np.where(kept >= EXCLUDED, np.maximum(kept, MIN_SCORE), 0), k)
        total = 0
        if request.totals:
            is_found = (lexical_scores > 0) | is_candidate
            is_found &= True if allowed is None else allowed.allowed
            total = int(np.count_nonzero(is_found))
        return TopDocs(chosen[order].astype(np.int32), values, total)

    def seeds(self, numbers: Sequence[int], params: KlsaParams) -> LocalSeeds:
        """Return the seeds of a query: see `KlsaEngine.seeds`."""
        kernel, index = self._kernel, self._index
        query = distinct_query(kernel, numbers)
        steps = self._lexical_scores(query)
        best = top_z(steps, params.best)[0]
        seeds = best[: params.seeds]
        features = DocFeatures.of(index, seeds)
        terms = self._terms(query, best)
        impacts = np.zeros((len(best), len(query.terms)), _F)
        weighed = query_impacts(kernel, index, numbers, impacts)
        impacts[:, weighed.order] = terms.impacts[:-1, : len(query.terms)]
        query_vector = QueryVector.of(index, self._dimensions, query)
        latent = query_vector.cosines(index.document_vectors[seeds], clip=False).astype(np.int32)
        share = matched_share(kernel, query, terms) if len(best) else 0.0
        return LocalSeeds(
            steps[best], best.astype(np.int64), weighed, latent, features, share,
            query_vector.angle,
        )  # fmt: skip

    def _lexical_scores(self, query: Query) -> npt.NDArray[np.int64]:
        """Return k_q of live documents in steps: (N,)."""
        scores = self._kernel.steps(query.terms, query.counts.astype(np.float64))
        return scores if self._live is None else scores * self._live.allowed

    def _terms(self, query: Query, best: DocIds) -> TermImpacts:
        saturations = term_saturations(self._kernel.postings, query.terms, best)
        return term_impacts(self._kernel, self._index.term_weights, query, saturations)

    def _coverage(
        self,
        documents: DocIds,
        rank_of: npt.NDArray[np.int64],
        terms: TermImpacts,
        own: npt.NDArray[np.int64] | None = None,
        elsewhere: BestElsewhere = NONE_ELSEWHERE,
    ) -> _Floats:
        """Return T of documents: (n,).

        rank_of    (N,) rank of each document among the best, -1 for others, for neighbours
        own        the same for the documents themselves; `rank_of` if None
        elsewhere  best documents of other partitions, whose ranks follow
        """
        own = rank_of if own is None else own
        near, places = self._near(documents, rank_of, elsewhere)
        return coverage_scores(near, places, own[documents], terms)

    def _near(
        self, documents: DocIds, rank_of: npt.NDArray[np.int64], elsewhere: BestElsewhere
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return the levels of the neighbours of documents, and their ranks: (n, neighbours)."""
        index, count = self._index, self._neighbours
        near = index.rows[documents, :count]
        ranks = rank_of[near >> np.uint32(8)]
        near = near & np.uint32(LEVELS)
        if not len(index.rows_elsewhere):
            return near, ranks
        built = np.minimum(documents, len(index.rows_elsewhere) - 1)
        levels = np.where(
            (documents < len(index.rows_elsewhere))[:, None],
            index.levels_elsewhere[built, :count],
            0,
        )
        places = elsewhere.places_of(index.rows_elsewhere[built, :count])
        ranks_elsewhere = np.where(places < 0, -1, int(rank_of.max(initial=-1)) + 1 + places)
        near, ranks = np.hstack((near, levels)), np.hstack((ranks, ranks_elsewhere))
        order = np.argsort(-near.astype(np.int64), axis=1, kind="stable")[:, :count]
        return np.take_along_axis(near, order, 1), np.take_along_axis(ranks, order, 1)

    def _rows(
        self, seeds: DocIds, weights: _Floats, params: KlsaParams
    ) -> Iterator[tuple[npt.NDArray[np.uint32], np.float32]]:
        """Yield the rows of the seeds that have a weight, and the value of a level of each."""
        for seed, weight in zip(seeds, weights, strict=True):
            if weight > 0:
                for row, step in self._rows_of(int(seed)):
                    yield row, _F(params.slope) * weight * step

    def _rows_of(self, document: int) -> Iterator[tuple[npt.NDArray[np.uint32], np.float32]]:
        """Yield the row of a document and its step, and its reverse entries likewise."""
        index = self._index
        yield index.rows[document], index.scales[document, 0]
        if len(index.reverse_row) and index.reverse_row[document]:
            row = index.reverse_row[document] - 1
            yield index.reverse_rows[row], index.reverse_steps[row]


def _select(scores: _Floats, candidates: DocIds, target: int) -> DocIds:
    """Return the candidates of the `target` highest scores, or slightly more."""
    if len(candidates) <= target:
        return candidates
    bits = scores[candidates].view(np.int32)
    threshold = threshold_of(bits, target)
    return candidates if threshold < 0 else candidates[bits > threshold]
