"""The terms of a query with their weights, and what they add to BM25 of documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, values_at
from klsa_search.core.config import SearchSettings
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.bm25 import boosted_postings

Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class QueryWeights(NamedTuple):
    """The terms of a query and their weights.

    numbers  (n,) term numbers
    counts   (n,) f(t, q)
    weights  (n,) h(t) · w(t) · f(t, q)
    steps    (n,) int64, the same in 65,536ths of a step, as scores use it
    boosted  parameters of a search with boosts, if there are some
    """

    snapshot: Snapshot
    numbers: Numbers
    counts: Values
    weights: Values
    steps: Numbers
    boosted: SearchSettings | None

    @classmethod
    def of(
        cls, snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings | None = None
    ) -> QueryWeights:
        """Return the weights that the query kernel uses.

        parameters  of the search, for its boosts
        """
        kernel, counts = snapshot.query_kernel, query.counts.astype(np.float64)
        boosted = parameters if parameters is not None and parameters.boosts else None
        weights = counts * kernel.term_weights[query.numbers]
        steps = kernel.quantised_weights(query.numbers, counts)
        return cls(snapshot, query.numbers, counts, weights, steps, boosted)

    def addends(self, documents: DocIds) -> Values:
        """Return the addends of k_q: (d, n), equal to those of the scores to the bit.

        Cost: a look-up for each; with boosts, the postings of the terms.
        """
        if self.boosted is None:
            saturations = self.snapshot.bm25_engine.saturations(self.numbers, documents)
        else:
            saturations = np.zeros((len(documents), len(self.numbers)), np.uint16)
            for column, term in enumerate(self.numbers.tolist()):
                postings = boosted_postings(self.snapshot, term, self.boosted)
                saturations[:, column] = values_at(documents, *postings)
        steps = 1 + ((self.steps * saturations.astype(np.int64)) >> 16)
        counted = (saturations > 0) & (self.counts > 0)
        return np.where(counted, self.snapshot.query_kernel.postings.step * steps, 0.0)
