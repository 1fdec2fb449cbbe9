"""Parts of the scores of the default ranking in NumPy, from the arrays that the engine reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, starts_of, values_at
from klsa_search.kernels.postings import UNIT, Segments
from klsa_search.kernels.query_kernel import QueryKernel
from klsa_search.lowrank.sparse_expansion import (
    LATENT_LEVELS,
    LEVELS,
    SegmentedExpansion,
    SparseExpansion,
)
from klsa_search.search.engine.engine import KlsaParams
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.coverage import HALF
from klsa_search.search.rankers.klsa import effective_alpha
from tests.oracle.formulas import TERM_GROUP, Query, TermImpacts, coverage_scores

_F = np.float32
_Numbers = npt.NDArray[np.int64]
QUERY_LEVELS: Final = 2**14  # value of the largest coordinate of a query vector
_Floats = npt.NDArray[np.float32]


class QueryVector(NamedTuple):
    """A query in the latent space.

    coordinates  (w,) int16 in steps, as wide as a document vector
    angle        one step of a cosine; 0 if no term of the query is in the space
    """

    coordinates: npt.NDArray[np.int16]
    angle: np.float32

    @classmethod
    def of(
        cls, kernel: QueryKernel, expansion: SparseExpansion, dimensions: int, query: Query
    ) -> QueryVector:
        """Project a query."""
        coordinates_of, steps = expansion.terms, expansion.terms.view(np.float32)
        vector = np.zeros(dimensions, _F)
        for term, count in zip(*query, strict=True):
            if term >= len(coordinates_of):  # only in documents added after the build
                continue
            step = _F(count) * kernel.burstiness([term])[0] * steps[term, -1]
            vector += step * coordinates_of[term, :dimensions].astype(_F)
        coordinates = np.zeros(expansion.document_vectors.shape[1], np.int16)
        largest = np.abs(vector).max(initial=_F(0))
        if largest == 0:
            return cls(coordinates, _F(0))
        coordinates[:dimensions] = np.rint((vector / largest).astype(np.float64) * QUERY_LEVELS)
        return cls(coordinates, largest / _F(QUERY_LEVELS * LATENT_LEVELS))

    def cosines(self, document_vectors: npt.NDArray[np.int8], *, clip: bool) -> _Floats:
        """Return L of documents with these vectors, in steps: (n,); with `clip`, clipped at 0."""
        cosines = (document_vectors.astype(np.int32) @ self.coordinates.astype(np.int32)).astype(_F)
        return np.maximum(cosines, _F(0)) if clip else cosines


def term_saturations(
    postings: Segments, terms: _Numbers, documents: DocIds
) -> npt.NDArray[np.uint16]:
    """Return the saturation of each term in each document: (n, T), 0 if it is not contained."""
    saturated = np.zeros((len(documents), len(terms)), np.uint16)
    for column, term in enumerate(terms.tolist()):
        holding, saturations = postings.of_term(term)
        if len(holding):
            places = np.minimum(np.searchsorted(holding, documents), len(holding) - 1)
            contains = holding[places] == documents
            saturated[contains, column] = saturations[places[contains]]
    return saturated


def term_impacts(
    kernel: QueryKernel, query: Query, saturations: npt.NDArray[np.uint16]
) -> TermImpacts:
    """Return the impacts of terms from their saturations."""
    stride = -(-len(query.terms) // TERM_GROUP) * TERM_GROUP
    impacts = np.zeros((len(saturations) + 1, stride), _F)
    weights, half = np.zeros(stride, _F), np.ones(stride, _F)
    for column, (term, count) in enumerate(zip(*query, strict=True)):
        weight, saturation = count * kernel.weights([term])[0], saturations[:, column]
        steps = (saturation > 0) + ((weight * saturation.astype(np.int64)) >> 16)
        impacts[:-1, column] = steps.astype(_F)
        weights[column] = _F(count) * kernel.term_weights([term])[0]
        half[column] = _F(HALF * weight / (UNIT * kernel.postings.step))
    return TermImpacts(impacts, weights, half)


def query_alpha(kernel: QueryKernel, query: Query, terms: TermImpacts, params: KlsaParams) -> float:
    """Return α(q), from the share of the query that the first of the best contains."""
    share = matched_share(kernel, query, terms)
    return effective_alpha(params.alpha, params.hold_back, share)


def matched_share(kernel: QueryKernel, query: Query, terms: TermImpacts) -> float:
    """Return the share of the query that the first of the best contains, by term weights."""
    weights = query.counts * kernel.weights(query.terms)
    contained = terms.impacts[0, : len(weights)] > 0
    return int(weights[contained].sum()) / int(weights.sum())


class RemoteBest(NamedTuple):
    """The best documents of other partitions, by ordinals, (m,), and their impacts, (m, n)."""

    documents: npt.NDArray[np.int64]
    impacts: _Floats

    def positions_of(self, ordinals: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Return the positions of ordinals in `documents`, -1 for none."""
        return values_at(ordinals, self.documents, np.arange(len(self.documents)), missing=-1)


NONE_ELSEWHERE: Final = RemoteBest(np.zeros(0, np.int64), np.zeros((0, 0), np.float32))


def joined(expansion: SegmentedExpansion) -> SparseExpansion:
    """Return the expansion as one segment."""
    arrays = {
        name: np.concatenate([getattr(segment, name) for segment in expansion.segments])
        for name in ("rows", "scales", "features", "document_vectors")
    }
    sizes = np.concatenate([np.diff(segment.starts) for segment in expansion.segments])
    return replace(expansion.built, starts=starts_of(sizes), **arrays)


class PartScorer:
    """Computes the parts of scores of documents of a snapshot, exactly; immutable."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._kernel, self._live = snapshot.query_kernel, snapshot.live
        self._segments, self._reverse = snapshot.sparse_expansion, snapshot.reverse
        self._expansion = joined(self._segments)
        self._remote_rows = snapshot.remote_rows
        self._neighbours = min(snapshot.settings.neighbours, self._expansion.rows.shape[1])
        self._dimensions = snapshot.latent_dimensions

    def lexical_scores(self, query: Query) -> npt.NDArray[np.int64]:
        """Return k_q of live documents in steps: (N,)."""
        scores = self._kernel.steps(query.terms, query.counts.astype(np.float64))
        return scores if self._live is None else scores * self._live.allowed

    def terms(self, query: Query, best: DocIds) -> TermImpacts:
        """Return the impacts of the terms of a query in the best documents."""
        saturations = term_saturations(self._kernel.postings, query.terms, best)
        return term_impacts(self._kernel, query, saturations)

    def query_vector(self, query: Query) -> QueryVector:
        """Return the query in the latent space."""
        return QueryVector.of(self._kernel, self._expansion, self._dimensions, query)

    def coverage(
        self,
        documents: DocIds,
        rank_of: npt.NDArray[np.int64],
        terms: TermImpacts,
        own: npt.NDArray[np.int64] | None = None,
        elsewhere: RemoteBest = NONE_ELSEWHERE,
    ) -> _Floats:
        """Return T of documents: (n,).

        rank_of    (N,) rank of each document among the best, -1 for others, for neighbours
        own        the same for the documents themselves; `rank_of` if None
        elsewhere  best documents of other partitions, whose ranks follow
        """
        own = rank_of if own is None else own
        near, places = self.near(documents, rank_of, elsewhere)
        return coverage_scores(near, places, own[documents], terms)

    def near(
        self, documents: DocIds, rank_of: npt.NDArray[np.int64], elsewhere: RemoteBest
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return the levels of the neighbours of documents, and their ranks: (n, neighbours)."""
        elsewhere_rows, count = self._remote_rows, self._neighbours
        near = self._expansion.rows[documents, :count]
        ranks = rank_of[near >> np.uint32(8)]
        near = near & np.uint32(LEVELS)
        if not len(elsewhere_rows.levels):
            return near, ranks
        built = np.minimum(documents, len(elsewhere_rows.levels) - 1)
        levels = np.where(
            (documents < len(elsewhere_rows.levels))[:, None],
            elsewhere_rows.levels[built, :count],
            0,
        )
        places = elsewhere.positions_of(elsewhere_rows.documents[built, :count])
        ranks_elsewhere = np.where(places < 0, -1, int(rank_of.max(initial=-1)) + 1 + places)
        near, ranks = np.hstack((near, levels)), np.hstack((ranks, ranks_elsewhere))
        order = np.argsort(-near.astype(np.int64), axis=1, kind="stable")[:, :count]
        return np.take_along_axis(near, order, 1), np.take_along_axis(ranks, order, 1)

    def rows_of(self, document: int) -> Iterator[tuple[npt.NDArray[np.uint32], np.float32]]:
        """Yield the row of a document and its step, and its reverse entries likewise."""
        yield self._expansion.rows[document], self._expansion.scales[document, 0]
        reverse = self._reverse
        if reverse is not None and len(reverse.row_of) and reverse.row_of[document]:
            row = reverse.row_of[document] - 1
            yield reverse.rows[row], reverse.steps[row]
