"""Features of documents: BM25 and log-tf·idf weights [KLSA eq. 4; LSK; KSC]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from klsa_search.core.array_types import Matrix
from klsa_search.estimators.base import checked_number
from klsa_search.kernels.bm25 import average_length
from klsa_search.kernels.weighting import TFIDF, FeatureWeighting, bm25_weighting


# scikit-learn is untyped, so mypy takes its classes for Any.
class Weighting(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of the features: maps counts (n, V), dense or sparse, to weights (n, V).

    For use after CountVectorizer. ValueError for negative counts.

    idf_            (V,) weight of each term
    n_features_in_  V
    """

    idf_: npt.NDArray[np.float64]

    def __sklearn_tags__(self) -> Tags:
        """Return the tags; counts may be sparse and must not be negative."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def transform(self, X: Any) -> Matrix | sparse.csr_array:
        """Return weights of counts: (n, V) → (n, V), sparse if the counts are. Cost O(nnz)."""
        check_is_fitted(self)
        counts, dense = self._counts(X)
        features = self._weigh(counts)
        return features.toarray() if dense else features

    @abstractmethod
    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return weights of counts: (n, V)."""

    def _counts(self, X: Any, *, reset: bool = False) -> tuple[sparse.csr_array, bool]:
        """Return counts without stored zeros, and whether X is dense."""
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
        check_non_negative(X, f"{type(self).__name__}: counts")
        counts = sparse.csr_array(X, copy=True)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        return counts, not sparse.issparse(X)


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
        checked_number("idf_power", self.idf_power, 0)
        counts, _ = self._counts(X, reset=True)
        self.idf_ = self._weighting().of_columns(counts)
        self.average_length_ = average_length(np.asarray(counts.sum(axis=1)).ravel())
        return self

    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        return self._weighting().features(counts, lengths, self.average_length_, self.idf_)

    def _weighting(self) -> FeatureWeighting:
        return bm25_weighting(k1=self.k1, b=self.b, idf_power=self.idf_power)


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
        self.idf_ = TFIDF.of_columns(counts)
        return self

    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        features = TFIDF.features(counts, np.zeros(counts.shape[0]), 1.0, self.idf_)
        return sparse.csr_array(normalize(features, copy=False)) if self.unit_length else features
