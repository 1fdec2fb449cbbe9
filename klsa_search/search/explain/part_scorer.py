"""Parts of the scores of single documents in NumPy, from the arrays that the engine reads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.search.engine.formulas import (
    Query,
    QueryVector,
    TermImpacts,
    coverage_scores,
    term_impacts,
    term_saturations,
)
from klsa_search.search.engine.shared_seeds import NONE_ELSEWHERE, BestElsewhere
from klsa_search.search.snapshot import Snapshot

_Floats = npt.NDArray[np.float32]


class PartScorer:
    """Computes the parts of scores of documents of a snapshot, exactly; immutable."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._kernel, self._live = snapshot.query_kernel, snapshot.live
        self._expansion, self._reverse = snapshot.sparse_expansion, snapshot.reverse
        self._rows_elsewhere = snapshot.rows_elsewhere
        self._neighbours = min(snapshot.neighbour_count, self._expansion.rows.shape[1])
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
        elsewhere: BestElsewhere = NONE_ELSEWHERE,
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
        self, documents: DocIds, rank_of: npt.NDArray[np.int64], elsewhere: BestElsewhere
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return the levels of the neighbours of documents, and their ranks: (n, neighbours)."""
        elsewhere_rows, count = self._rows_elsewhere, self._neighbours
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
        places = elsewhere.places_of(elsewhere_rows.documents[built, :count])
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
