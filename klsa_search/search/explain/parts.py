"""Split a score of the default ranking into parts that add up to it.

Scores of documents far from the first are estimates: E from the rows of the seeds, T without
neighbours, X omitted. The score itself shows which of its parts are.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.lowrank.sparse_expansion import LEVELS, SparseExpansion
from klsa_search.search.coverage import (
    Covered,
    LendersElsewhere,
    QueryWeights,
    Values,
    covered_by,
    neighbours_of,
    own_coverage,
)
from klsa_search.search.engine.formulas import (
    SUMS,
    DocFeatures,
    ExpansionScorer,
    Query,
    distinct_known,
    distinct_query,
    part_factors,
    power,
    query_alpha,
    seed_weights,
)
from klsa_search.search.engine.params import KlsaParams
from klsa_search.search.engine.shared_seeds import SeedDetails, SharedSeeds
from klsa_search.search.explain.part_scorer import PartScorer
from klsa_search.search.query.terms import QueryTerms
from klsa_search.search.rankers.klsa import parts_of
from klsa_search.search.snapshot import Snapshot


class ScoreParts(NamedTuple):
    """The parts of a score of the default ranking, in units of the score.

    lexical    1 - α times X
    covered    T, with `value` in units of the score; None if it has no share
    seeds      (z,) with their weights, in the order of the query kernel
    by_seed    (z,) what each adds to `expansion`
    estimated  names of parts that are estimates
    seed_details  the seeds, if they may be in other partitions: `seeds` are their numbers
    """

    alpha: float
    lexical: float
    covered: Covered | None
    latent: float | None
    expansion: float
    seeds: DocIds
    weights: Values
    by_seed: Values
    estimated: tuple[str, ...]
    seed_details: SeedDetails | None = None


class ScoreSplitter(Protocol):
    """Splits scores of one query."""

    def split(self, document: int, score: float | None) -> ScoreParts:
        """Split the score of a document; None if it was not ranked."""


_F = np.float32

_Option = tuple[tuple[float, bool], tuple[Covered | None, bool], tuple[float, bool]]
"""E, T and X, each with whether it is an estimate."""


class EngineSplitter:
    """Splits scores of the engine.

    shared  seeds of several partitions, by which it ranks
    """

    def __init__(
        self,
        snapshot: Snapshot,
        numbers: list[int],
        params: KlsaParams,
        shared: SharedSeeds | None = None,
    ) -> None:
        self._scorer = PartScorer(snapshot)
        self._kernel, self._expansion = snapshot.query_kernel, snapshot.sparse_expansion
        self._snapshot, self._params = snapshot, params
        self._details = None if shared is None else shared.details
        query = distinct_query(snapshot.query_kernel, numbers)
        self._columns = distinct_known(numbers)
        self._shared = shared
        self._query_weights = QueryWeights.of(
            snapshot, query.terms, query.counts.astype(np.float64)
        )
        self._prepare(query, shared)

    def _prepare(self, query: Query, shared: SharedSeeds | None) -> None:
        """Compute what is the same for all documents, as the engine does."""
        kernel, params = self._kernel, self._params
        lexical_scores = self._scorer.lexical_scores(query)
        counts = (params.best, params.seeds) if shared is None else (shared.best, shared.seeds)
        best, seeds = (top_z(lexical_scores, params.best)[0][:count] for count in counts)
        self._row, self._best, self._seeds = lexical_scores, best, seeds
        self._first = _F(lexical_scores[best[0]] if shared is None else shared.first)
        self._top = self._first * _F(kernel.postings.step)
        lexical = lexical_scores[seeds].astype(_F) / self._first
        rank_of = np.full(kernel.size, -1)
        rank_of[best] = np.arange(len(best))
        terms = self._scorer.terms(query, best)
        covered = np.zeros(len(seeds), _F)
        if params.coverage > 0:
            covered = self._scorer.coverage(seeds, rank_of, terms)
        self._weights = seed_weights(
            self._top, lexical, covered if params.coverage > 0 else None, params
        )
        self._query_vector = self._scorer.query_vector(query)
        if shared is not None:
            assert shared.details is not None
            details = shared.details
            self._expansion_scores, self._shares = shared.scorer, shared.factors
            self._seed_features = _SeedFeatures.of(details.features, details.weights, params)
            self._query_alpha = details.alpha
            return
        features = DocFeatures.of(self._expansion, seeds)
        self._expansion_scores = ExpansionScorer.of(features, self._weights, params)
        self._seed_features = _SeedFeatures.of(features, self._weights, params)
        self._query_alpha = query_alpha(kernel, query, terms, params)
        self._shares = part_factors(
            self._query_alpha, params, self._query_vector.angle, self._top, self._exact(seeds),
            covered, self._cosines(seeds), power(lexical, params.lexical_sharpness),
        )  # fmt: skip

    def split(self, document: int, score: float | None) -> ScoreParts:
        """Split a score; None for the exact score."""
        e, t, a, x = (float(share) for share in self._shares)
        params, steps = self._params, float(self._row[document])
        lexical = x * float(power(np.array([steps], _F) / self._first, params.lexical_sharpness)[0])
        latent = a * float(self._cosines(np.array([document]))[0]) if params.latent > 0 else None
        exact = e * float(self._exact(np.array([document]))[0])
        rows, by_rows = self._by_rows(document)
        near = self._covered(document)
        options = product(
            ((exact, False), (e * rows, True)),
            ((near, False), (own_coverage(self._query_weights, near), True))
            if params.coverage > 0
            else ((None, False),),
            ((lexical, False), (0.0, True)) if lexical else ((0.0, False),),
        )
        seed = bool(np.isin([document], self._seeds)[0])

        def error_of(option: _Option) -> float:
            (expanded, _), (covered, _), (lexical_, _) = option
            total = expanded + lexical_ + (latent or 0.0)
            total += t * float(covered.value.sum()) if covered is not None else 0.0
            return abs(total - score) if score is not None else 0.0

        best_option = next(iter(options)) if score is None or seed else min(options, key=error_of)
        (expansion, by_rows_only), (covered, own_only), (lexical_, omitted) = best_option
        parts = (("expansion", by_rows_only), ("coverage", own_only), ("lexical", omitted))
        details = self._details
        weights = self._weights if details is None else details.weights
        by_seed = e * (
            by_rows
            if by_rows_only
            else self._seed_features.values(self._expansion, params, document)
        )
        return ScoreParts(
            alpha=self._query_alpha,
            lexical=lexical_,
            covered=None if covered is None else covered._replace(value=t * covered.value),
            latent=latent,
            expansion=expansion,
            seeds=self._seeds if details is None else np.arange(len(details.names)),
            weights=(weights / weights.max()).astype(np.float64),
            by_seed=by_seed,
            estimated=tuple(name for name, estimated in parts if estimated),
            seed_details=details,
        )

    def _covered(self, document: int) -> Covered:
        """Return T of a document."""
        shared, snapshot = self._shared, self._snapshot
        if shared is None or document >= len(snapshot.rows_elsewhere.levels):
            (lenders,), (shares,) = neighbours_of(snapshot, np.array([document]))
            return covered_by(self._query_weights, self._best, (lenders, shares), document)
        assert shared.details is not None
        elsewhere, names = shared.elsewhere, shared.details.names_elsewhere
        rank_of = np.full(self._kernel.size, -1)
        rank_of[self._best] = np.arange(len(self._best))
        (levels,), (ranks,) = self._scorer.near(np.array([document]), rank_of, elsewhere)
        shares = levels / max(int(levels.sum()), 1)
        is_here = (ranks >= 0) & (ranks < len(self._best))
        is_there = ranks >= len(self._best)
        places = ranks[is_there] - len(self._best)
        columns = [
            self._columns.tolist().index(term) for term in self._query_weights.numbers.tolist()
        ]
        return covered_by(
            self._query_weights,
            self._best,
            (self._best[ranks[is_here]].astype(np.int64), shares[is_here]),
            document,
            LendersElsewhere(
                shares[is_there],
                elsewhere.impacts[places][:, columns].astype(np.float64),
                tuple(names[place][0] for place in places.tolist()),
            ),
        )

    def _exact(self, documents: DocIds) -> npt.NDArray[np.float32]:
        """Return E from the features."""
        return self._expansion_scores(DocFeatures.of(self._expansion, documents))

    def _cosines(self, documents: DocIds) -> npt.NDArray[np.float32]:
        return self._query_vector.cosines(
            self._expansion.document_vectors[documents], clip=self._params.unit_length
        )

    def _by_rows(self, document: int) -> tuple[float, Values]:
        """Return E from the rows of the seeds, and of each."""
        if self._details is not None:
            return self._by_rows_of(self._details, document)
        values = np.zeros(len(self._seeds))
        for at, (seed, weight) in enumerate(zip(self._seeds, self._weights, strict=True)):
            for row, step in self._scorer.rows_of(int(seed)) if weight > 0 else ():
                entries = row[(row > 0) & (row >> np.uint32(8) == document)]
                levels = float((entries & np.uint32(LEVELS)).sum())
                values[at] += float(_F(self._params.slope) * weight * step) * levels
        return float(values.sum()), values

    def _by_rows_of(self, details: SeedDetails, document: int) -> tuple[float, Values]:
        """Return E from the rows of the seeds of all partitions, and of each."""
        (ordinal,) = self._snapshot.ordinals_of(np.array([document]))
        rows, weights = details.rows, _F(self._params.slope) * details.weights
        added = rows.values * rows.levels * (rows.documents == ordinal)
        values = weights.astype(np.float64) * added.sum(axis=1, dtype=np.float64)
        return float(values.sum()), values


class _SeedFeatures(NamedTuple):
    """Features of the seeds: the seed, number and steps of each entry.

    scales, means  (z,) terms of centring
    step           of the sums
    """

    seed: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    steps: Values
    scales: Values
    means: Values
    step: float

    @classmethod
    def of(
        cls, features: DocFeatures, weights: npt.NDArray[np.float32], params: KlsaParams
    ) -> _SeedFeatures:
        info, largest = features.document_scalars, 0.0
        weighted = _F(params.slope) * weights
        for weight, fact in zip(weighted, info, strict=True):
            largest += float(weight * fact[-3]) * LEVELS
        steps = _F(SUMS / largest) if largest > 0 else _F(0)
        sizes = np.diff(features.starts)
        factors = np.repeat(weighted * steps * info[:, -3], sizes)
        levels = (features.entries & np.uint32(LEVELS)).astype(_F)
        return cls(
            np.repeat(np.arange(len(weights)), sizes),
            (features.entries >> np.uint32(8)).astype(np.int64),
            np.rint(factors * levels).astype(np.float64),
            weighted.astype(np.float64) * info[:, -2],
            weighted.astype(np.float64) * info[:, -1],
            1.0 / float(steps) if steps > 0 else 0.0,
        )

    def values(self, expansion: SparseExpansion, params: KlsaParams, document: int) -> Values:
        """Return what each seed adds to E of a document: (z,)."""
        _, entries, scalars = DocFeatures.of(expansion, np.array([document]))
        step, scale, mean = scalars[0].astype(np.float64)
        numbers = (entries >> np.uint32(8)).astype(np.int64)
        order = np.argsort(numbers)
        numbers, levels = numbers[order], (entries & np.uint32(LEVELS))[order]
        products_ = np.zeros(len(self.scales))
        if len(numbers):
            places = np.minimum(np.searchsorted(numbers, self.number), len(numbers) - 1)
            shared = numbers[places] == self.number
            products = self.steps[shared] * levels[places[shared]]
            products_ += np.bincount(self.seed[shared], products, minlength=len(self.scales))
        centring = self.scales * mean + scale * (self.means - self.scales * params.mean_square)
        return np.asarray(self.step * step * products_ - centring)


class RowSplitter:
    """Splits scores of `rank_klsa`.

    row  k_q, not all 0
    """

    def __init__(
        self,
        snapshot: Snapshot,
        query: QueryTerms,
        row: Scores,
        parameters: SearchSettings,
        dimensions: int,
    ) -> None:
        self._snapshot = snapshot
        self._query_weights = QueryWeights.of(snapshot, query.numbers, query.counts)
        self._expansion = snapshot.expansion_of(parameters, dimensions)
        self._segments = parts_of(snapshot, query, row, parameters, dimensions)

    def split(self, document: int, score: float | None) -> ScoreParts:
        """Split the score of a document."""
        alpha, best, seeds, weights, parts = self._segments
        covered, latent = None, None
        if "coverage" in parts:
            covered = covered_by(self._query_weights, best, self._near(document), document)
            exact = float(covered.value.sum())
            share = float(parts["coverage"].scored[document]) / exact if exact else 0.0
            covered = covered._replace(value=share * covered.value)
        if "latent" in parts:
            latent = float(parts["latent"].scored[document])
        expansion, raw = parts["expansion"].scored, float(parts["expansion"].raw[document])
        by_seed = np.zeros(len(seeds))
        if raw:
            entries = self._expansion.entries(seeds, document).astype(np.float64)
            by_seed = float(expansion[document]) / raw * weights * entries
        return ScoreParts(
            alpha=alpha,
            lexical=float(parts["lexical"].scored[document]),
            covered=covered,
            latent=latent,
            expansion=float(expansion[document]),
            seeds=seeds,
            weights=(weights / weights.max()).astype(np.float64),
            by_seed=by_seed,
            estimated=(),
        )

    def _near(self, document: int) -> tuple[DocIds, Values]:
        """Return the neighbours of a document, with their shares as the scores have them."""
        near = self._snapshot.neighbours
        row = slice(near.indptr[document], near.indptr[document + 1])
        return near.indices[row].astype(np.int64), near.data[row].astype(np.float64)
