"""The query kernel: one raw row k_q from the postings of the query's terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.arrays import Scores


@dataclass(frozen=True)
class Postings:
    """For each term the documents that hold it, in document order, with a weight each.

    starts     (V + 1,) where each term's entries begin
    documents  (nnz,) document positions
    weights    (nnz,) float32, what one occurrence in the query is worth to the document
    size       N, the number of documents
    """

    starts: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]
    size: int

    @classmethod
    def of(cls, weights: sparse.csr_array) -> Postings:
        """Turn an (N, V) document-by-term matrix into postings. Cost O(nnz)."""
        by_term = weights.tocsc()
        by_term.sort_indices()
        return cls(
            starts=by_term.indptr.astype(np.int64),
            documents=by_term.indices.astype(np.int32),
            weights=by_term.data.astype(np.float32),
            size=weights.shape[0],
        )

    def of_term(self, term: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Documents and weights of one term. Cost O(1)."""
        entries = slice(self.starts[term], self.starts[term + 1])
        return self.documents[entries], self.weights[entries]

    def matches(self, terms: npt.NDArray[np.int64]) -> int:
        """How many documents hold at least one of the terms. Cost: their postings, and O(N)."""
        held = np.zeros(self.size, dtype=np.bool_)
        for term in terms.tolist():
            held[self.of_term(term)[0]] = True
        return int(np.count_nonzero(held))

    def query_row(
        self, terms: npt.NDArray[np.int64], query_weights: npt.NDArray[np.float32]
    ) -> Scores:
        """k_q: (N,) float32, Σ_t f(t,q) · weight(t,d) [KLSA eq. 3].

        Terms are added in the order given; give them sorted, and the sum of a document is the
        same bits whatever else the collection holds. Cost: the postings of the terms.
        """
        row = np.zeros(self.size, dtype=np.float32)
        for term, weight in zip(terms.tolist(), query_weights, strict=True):
            documents, weights = self.of_term(term)
            row[documents] += weight * weights
        return row
