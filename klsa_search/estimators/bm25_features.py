"""BM25 weights: the features of the document kernel of the search engine [KLSA eq. 4]."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from klsa_search.estimators.limits import checked_number
from klsa_search.estimators.weighting import Weighting
from klsa_search.features import bm25


class BM25Features(Weighting):
    """BM25 weights of term counts: φ(d)_t = w(t)^p · sat(t, d).

    k1         saturation of term counts, above 0
    b          weight of the document length, from 0 to 1
    idf_power  p, at least 0; with 0.5 the inner product is the published document kernel

    idf_             (V,) w(t)^p of each term
    average_length_  mean number of tokens of a training document

    `transform` maps counts (n, V) to weights (n, V), sparse. Cost: O(nnz). Source: Park &
    Ramamohanarao, Kernel Latent Semantic Analysis, CIKM 2009, equation 4.

    >>> BM25Features(k1=1.2).fit_transform(counts).shape
    (4, 4)
    """

    def __init__(self, *, k1: float = 2.0, b: float = 0.75, idf_power: float = 0.5) -> None:
        self.k1 = k1
        self.b = b
        self.idf_power = idf_power

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn document frequencies and the mean length from counts (N, V)."""
        checked_number("k1", self.k1, 0, open_below=True)
        checked_number("b", self.b, 0, 1)
        power = checked_number("idf_power", self.idf_power, 0)
        counts, _ = self._counts(X, reset=True)
        self.idf_ = bm25.idf(counts) ** power
        self.average_length_ = bm25.average_length(np.asarray(counts.sum(axis=1)).ravel())
        return self

    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        features = bm25.saturated(counts, lengths, self.average_length_, self.k1, self.b)
        features.data *= self.idf_[features.indices]
        return features
