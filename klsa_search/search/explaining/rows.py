"""Scores of the default ranking by the rows of all documents, taken apart: `rankers.klsa`."""

from __future__ import annotations

import numpy as np

from klsa_search.arrays import Positions, Scores
from klsa_search.config import SearchSettings
from klsa_search.search.coverage import QueryWeights, Values, covered_by
from klsa_search.search.explaining.pieces import Pieces
from klsa_search.search.query import QueryTerms
from klsa_search.search.rankers.klsa import parts_of
from klsa_search.search.snapshot import Snapshot


class SplittingRows:
    """Takes the scores of one query apart.

    row  k_q, not 0 throughout
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
        self._asked = QueryWeights.of(snapshot, query.numbers, query.counts)
        self._expansion = snapshot.expansion_of(parameters, dimensions)
        self._parts = parts_of(snapshot, query, row, parameters, dimensions)

    def pieces(self, document: int, score: float | None) -> Pieces:
        """Take the score of a document apart."""
        alpha, best, seeds, weights, parts = self._parts
        covered, latent = None, None
        if "coverage" in parts:
            covered = covered_by(self._asked, best, self._near(document), document)
            whole = float(covered.value.sum())
            share = float(parts["coverage"].scored[document]) / whole if whole else 0.0
            covered = covered._replace(value=share * covered.value)
        if "latent" in parts:
            latent = float(parts["latent"].scored[document])
        expansion, raw = parts["expansion"].scored, float(parts["expansion"].raw[document])
        by_seed = np.zeros(len(seeds))
        if raw:
            entries = self._expansion.entries(seeds, document).astype(np.float64)
            by_seed = float(expansion[document]) / raw * weights * entries
        return Pieces(
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

    def _near(self, document: int) -> tuple[Positions, Values]:
        """Return the neighbours of a document, with their shares as the scores have them."""
        near = self._snapshot.neighbours
        assert near is not None
        row = slice(near.indptr[document], near.indptr[document + 1])
        return near.indices[row].astype(np.int64), near.data[row].astype(np.float64)
