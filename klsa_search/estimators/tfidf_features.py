"""Log-tf·idf weights, those of the papers on latent semantic kernels [LSK; KSC]."""

from __future__ import annotations

from typing import Any, Self

from scipy import sparse
from sklearn.preprocessing import normalize

from klsa_search.estimators.weighting import Weighting
from klsa_search.features import tfidf


class TfidfFeatures(Weighting):
    """Log-tf-idf weights of term counts: log(1 + f(t, d)) · log(N / n_t).

    unit_length  scale each document to length 1; a document without weighted terms stays 0

    idf_  (V,) log(N / n_t); 0 for a term that every training document contains, or none

    `transform` maps counts (n, V) to weights (n, V), sparse. Cost: O(nnz). Sources: Cristianini,
    Shawe-Taylor & Lodhi, JIIS 2002 (unit length); Kandola, Shawe-Taylor & Cristianini, NIPS 2002
    (not scaled).

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
