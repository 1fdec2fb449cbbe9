"""Log-tf·idf weights, those of the papers on latent semantic kernels [LSK; KSC]."""

from __future__ import annotations

from typing import Any, Self

from scipy import sparse
from sklearn.preprocessing import normalize

from klsa_search.estimators.weighting import Weighting
from klsa_search.features import tfidf


class TfidfFeatures(Weighting):
    """log(1 + f(t, d)) · log(N / n_t), of unit length or as it is.

    unit_length  scale each document to length 1 [LSK]; without, long ones weigh more [KSC]. A
                 document without weighted terms stays 0

    idf_  (V,) log(N / n_t); 0 for a term that every training document holds, or none

    >>> features = TfidfFeatures().fit_transform(counts)
    >>> features[0].round(2)
    array([0.97, 0.25, 0.  , 0.  ])
    """

    def __init__(self, *, unit_length: bool = True) -> None:
        self.unit_length = unit_length

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn document frequencies from counts (N, V)."""
        counts, _ = self._counts(X, reset=True)
        self.idf_ = tfidf.idf(counts)
        return self

    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        features = tfidf.weighted(counts, self.idf_)
        return sparse.csr_array(normalize(features, copy=False)) if self.unit_length else features
