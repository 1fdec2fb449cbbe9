"""Weighting of document features: from counts to the features Φ of a document kernel K = ΦΦᵀ.

    φ(d)_t = weight(n_t, N) · local(f(t,d), norm(dl(d), dl_avg))

with the document frequency n_t of N documents, and the length dl(d). It depends on a document and
on statistics of the collection, so documents written later are weighted by those of the build.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.kernels.counts import TermCounts

if TYPE_CHECKING:
    from scipy import sparse

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FeatureWeighting:
    """A weighting of document features, as three functions of arrays; see above.

    norm    lengths dl(d) (n,) and their mean dl_avg → (n,), what the length of a document means
    local   counts f(t,d) (m,), all above 0, and the norms of their documents (m,) → (m,), finite
            and not below 0
    weight  document frequencies n_t (V,), from 0, and the number N of documents → (V,), finite
            and above 0

    >>> tf_idf = FeatureWeighting(
    ...     norm=lambda lengths, mean: np.ones(len(lengths)),
    ...     local=lambda counts, norms: np.log1p(counts),
    ...     weight=lambda frequencies, documents: np.log1p(documents / (frequencies + 1)),
    ... )
    >>> tf_idf.weight(np.array([0, 3]), 3).round(2).tolist()
    [1.39, 0.56]
    """

    norm: Callable[[npt.NDArray[np.number], float], _Floats]
    local: Callable[[npt.NDArray[np.number], _Floats], _Floats]
    weight: Callable[[npt.NDArray[np.number], int], _Floats]

    def local_weights(
        self,
        counts: npt.NDArray[np.number],
        sizes: npt.NDArray[np.integer],
        lengths: npt.NDArray[np.number],
        average: float,
    ) -> _Floats:
        """Return local(f, norm) of the counts of consecutive documents: (nnz,).

        sizes    (n,) number of counts of each document
        lengths  (n,) dl(d)
        average  dl_avg of the collection
        """
        return self.local(counts, np.repeat(self.norm(lengths, average), sizes))

    def features(
        self,
        matrix: sparse.csr_array,
        lengths: npt.NDArray[np.number],
        average: float,
        weights: _Floats,
    ) -> sparse.csr_array:
        """Return features of counts (n, V), lengths (n,) and column weights (V,). Cost O(nnz)."""
        weighted = matrix.astype(np.float64)
        sizes = np.diff(weighted.indptr)
        weighted.data = self.local_weights(weighted.data, sizes, lengths, average)
        weighted.data *= weights[weighted.indices]
        return weighted

    def append_pairs(
        self,
        terms: sparse.csr_array,
        pairs: sparse.csr_array,
        lengths: npt.NDArray[np.number],
        average: float,
        weights: _Floats,
    ) -> sparse.csr_array:
        """Append the features of pairs to those of terms: (n, V), (n, P), (P,) → (n, V + P)."""
        from scipy import sparse

        both = terms, self.features(pairs, lengths, average, weights)
        return sparse.csr_array(sparse.hstack(both, format="csr"))

    def of_columns(self, matrix: sparse.csr_array) -> _Floats:
        """Return weight(n_t, N) of counts (N, V) without stored zeros: (V,). Cost O(nnz)."""
        documents, columns = matrix.shape
        return self.weight(np.bincount(matrix.indices, minlength=columns), documents)

    def document_features(self, counts: TermCounts, pairs: float) -> sparse.csr_array:
        """Return Φ of a collection: (N, V) sparse float64, or (N, V + P) with pairs.

        pairs  weight of adjacent pairs of terms; above 0 they follow the V terms as columns,
               weighted by their own document frequency
        """
        lengths = counts.lengths
        average = mean_length(lengths.sum(), len(lengths))
        terms = self.features(counts.matrix, lengths, average, self.of_columns(counts.matrix))
        if pairs == 0:
            return terms
        weights = pairs * self.of_columns(counts.pairs)
        return self.append_pairs(terms, counts.pairs, lengths, average, weights)


def mean_length(tokens: float, documents: int) -> float:
    """Return dl_avg of documents with so many tokens in all; 1 if all are empty."""
    return float(tokens / documents) if tokens else 1.0
