"""Counts of terms → weighted features, with what the training documents say of each term."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from klsa_search.arrays import Matrix


# scikit-learn is untyped, so mypy takes its classes for Any.
class Weighting(OneToOneFeatureMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the features: counts (n, V), dense or sparse, in; weights of that shape out.

    Meant to follow CountVectorizer. ValueError for counts below 0.

    idf_            (V,) weight of each term
    n_features_in_  V
    """

    idf_: npt.NDArray[np.float64]

    def __sklearn_tags__(self) -> Tags:
        """Tell scikit-learn that counts are sparse and never negative."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def transform(self, X: Any) -> Matrix | sparse.csr_array:
        """Weigh counts: (n, V) → (n, V), sparse where the counts are. Cost O(nnz)."""
        check_is_fitted(self)
        counts, dense = self._counts(X)
        features = self._weigh(counts)
        return features.toarray() if dense else features

    @abstractmethod
    def _weigh(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Weights of counts: (n, V), for which `fit` has learnt."""

    def _counts(self, X: Any, *, reset: bool = False) -> tuple[sparse.csr_array, bool]:
        """Counts without stored zeros, and whether they came as a dense array."""
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
        check_non_negative(X, f"{type(self).__name__}: counts")
        counts = sparse.csr_array(X, copy=True)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        return counts, not sparse.issparse(X)
