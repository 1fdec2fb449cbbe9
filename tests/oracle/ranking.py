"""The default ranking in NumPy: the results of the native engine, to the bit.

Its steps are those of klsa_search/native/engine/rank.hpp, for all documents at once.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from klsa_search._native import SharedSeeds
from klsa_search.core.array_types import DocIds
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.search.engine.engine import SHARED_COVERAGE_DEPTH, DocFeatures, KlsaParams
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.query_terms import distinct_known
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.engine.top_docs import TopDocs
from tests.oracle.formulas import (
    ExpansionScorer,
    Query,
    TermImpacts,
    distinct_query,
    part_factors,
    power,
    seed_weights,
)
from tests.oracle.parts import NONE_ELSEWHERE, PartScorer, RemoteBest, query_alpha

_F = np.float32
_Floats = npt.NDArray[np.float32]

# As in klsa_search/native/engine/selection.hpp and scores.hpp:
HALVINGS = 32
SAMPLING_LIMIT = 128 * 64  # candidates from which the engine samples scores in the order of slots
EXCLUDED = -np.finfo(_F).max
MIN_SCORE = np.finfo(_F).tiny
PROMISING = 0.5


class Oracle(PartScorer):
    """The default ranking of a snapshot; immutable."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._engine, self._doc_ids_of = snapshot.klsa_engine, snapshot.doc_ids_of

    def top(
        self,
        numbers: Sequence[int],
        k: int,
        params: KlsaParams,
        mask: Mask | None = None,
        shared: SharedSeeds | None = None,
    ) -> TopDocs | None:
        """Return the k best documents, or None for `SAMPLING_LIMIT` candidates or more.

        shared  the seeds of the query, if it is searched in several partitions: see `top_shared`
        """
        kernel, expansion = self._kernel, self._expansion
        coverage = () if shared is None else (SHARED_COVERAGE_DEPTH,)
        depths = self._engine.depths(k, mask, params, *coverage)
        query = distinct_query(numbers)
        lexical_scores = self.lexical_scores(query)
        allowed = mask or self._live
        depth = max(params.best, k)
        if shared is not None and k <= params.best and mask is None:
            depth = shared.best  # of all partitions the best documents are candidates
        matched = largest_entries(lexical_scores, depth)[0]
        if not len(matched) and (shared is None or not len(shared.near)):
            return TopDocs(np.zeros(0, np.int32), np.zeros(0, np.float32), 0)
        first = lexical_scores[matched[0]] if shared is None else shared.first
        counts = (params.best, params.seeds) if shared is None else (shared.best, shared.seeds)
        if mask is not None:
            filtered = largest_entries(lexical_scores * mask.allowed, depths.filtered)[0]
            matched = np.concatenate((matched, filtered[~np.isin(filtered, matched)]))
        keys = lexical_scores[matched]
        best, seeds = (matched[:count] for count in counts)
        lexical = keys.astype(_F) / _F(first)
        top = _F(first) * _F(kernel.postings.step)
        rank_of = np.full(kernel.size, -1)
        rank_of[best] = np.arange(len(best))
        terms = self.terms(query, best)
        elsewhere = NONE_ELSEWHERE
        if shared is not None:
            impacts = shared.impacts.reshape(len(shared.remote), -1)
            elsewhere = RemoteBest(shared.remote, impacts)
        if len(elsewhere.documents):
            terms = with_elsewhere(terms, query, distinct_known(numbers), elsewhere.impacts)
        coverage = np.zeros(kernel.size, _F)
        if params.coverage > 0:
            coverage[seeds] = self.coverage(seeds, rank_of, terms, elsewhere=elsewhere)
        shares = coverage[seeds] if params.coverage > 0 else None
        weights = seed_weights(top, lexical[: len(seeds)], shares, params)
        if shared is None:
            documents, sums = add_rows(self._rows(seeds, weights, params))
        else:
            documents, is_here = self._doc_ids_of(shared.near)
            documents, sums = documents[is_here], shared.estimates[is_here]
        expanded, is_candidate = np.zeros(kernel.size, _F), np.zeros(kernel.size, np.bool_)
        expanded[documents] = sums
        is_candidate[documents] = is_candidate[matched] = True
        candidates = np.flatnonzero(is_candidate)
        if len(candidates) >= SAMPLING_LIMIT:
            return None
        features = DocFeatures.of(self._segments, seeds)
        if shared is None:
            expansion_scores = ExpansionScorer.of(features, weights, params)
        else:
            expansion_scores = ExpansionScorer.of_shared(shared, params)
        expanded[seeds] = expansion_scores(features)
        query_vector = self.query_vector(query)
        latent = np.zeros(kernel.size, _F)
        latent[candidates] = query_vector.cosines(
            expansion.document_vectors[candidates], clip=params.unit_length
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
            coverage[others] = self.coverage(others, no_rank, terms, own=rank_of)
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
            exact = self.coverage(chosen, rank_of, terms, elsewhere=elsewhere)
            scores[chosen] += t * (exact - coverage[chosen])
        chosen = _select(scores, candidates, depths.expansion_depth)
        rescored = chosen[~is_seed[chosen]]
        scores[rescored] += e * (
            expansion_scores(DocFeatures.of(self._segments, rescored)) - expanded[rescored]
        )
        if len(chosen) < min(k, len(candidates)):
            chosen = _select(scores, candidates, k)
        chosen = np.sort(chosen)
        kept = scores[chosen]
        scores_of_chosen = np.where(kept >= EXCLUDED, np.maximum(kept, MIN_SCORE), 0)
        order, values = largest_entries(scores_of_chosen, k)
        is_found = (lexical_scores > 0) | is_candidate
        is_found &= True if allowed is None else allowed.allowed
        return TopDocs(chosen[order].astype(np.int32), values, int(np.count_nonzero(is_found)))

    def best(
        self, numbers: Sequence[int], params: KlsaParams
    ) -> tuple[DocIds, npt.NDArray[np.int64], _Floats]:
        """Return the best documents of a query, their scores and impacts: see `LocalSeeds`."""
        query = distinct_query(numbers)
        steps = self.lexical_scores(query)
        best = largest_entries(steps, params.best)[0]
        impacts = self.terms(query, best).impacts[:-1, : len(query.terms)]
        return best, steps[best], impacts

    def _rows(
        self, seeds: DocIds, weights: _Floats, params: KlsaParams
    ) -> Iterator[tuple[npt.NDArray[np.uint32], np.float32]]:
        """Yield the rows of the seeds that have a weight, and the value of a level of each."""
        for seed, weight in zip(seeds, weights, strict=True):
            if weight > 0:
                for row, step in self.rows_of(int(seed)):
                    yield row, _F(params.slope) * weight * step


def _select(scores: _Floats, candidates: DocIds, target: int) -> DocIds:
    """Return the candidates of the `target` highest scores, or slightly more."""
    if len(candidates) <= target:
        return candidates
    bits = scores[candidates].view(np.int32)
    threshold = threshold_of(bits, target)
    return candidates if threshold < 0 else candidates[bits > threshold]


def with_elsewhere(
    terms: TermImpacts, query: Query, numbers: npt.NDArray[np.int64], impacts: _Floats
) -> TermImpacts:
    """Return impacts in the best documents of this partition, then in those of others.

    numbers  (n,) terms of the columns of `impacts`, (m, n)
    """
    places = {term: column for column, term in enumerate(numbers.tolist())}
    others = np.zeros((len(impacts), terms.impacts.shape[1]), _F)
    others[:, : len(query.terms)] = impacts[:, [places[term] for term in query.terms.tolist()]]
    together = np.concatenate((terms.impacts[:-1], others, terms.impacts[-1:]))
    return terms._replace(impacts=together)


def add_rows(
    rows: Iterable[tuple[npt.NDArray[np.uint32], np.float32]],
) -> tuple[npt.NDArray[np.int64], _Floats]:
    """Add up rows, each with the value of one level: doc ids, ascending, and their sums.

    Floats are added row by row.
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


def threshold_of(bits: npt.NDArray[np.int32], target: int) -> int:
    """Return a threshold that at least `target` of these bits of scores exceed, or slightly more.

    -1 if fewer scores are above 0.
    """
    if np.count_nonzero(bits > 0) < target:
        return -1
    low, high = 0, max(int(bits.max(initial=0)), 0)
    for _ in range(HALVINGS):
        middle = (low + high) >> 1
        count = np.count_nonzero(bits > middle)
        if count >= target:
            low = middle
            if count <= target + target // 8:
                break
        else:
            high = middle
    return low
