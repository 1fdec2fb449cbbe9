"""Invalid arguments raise a ValueError that names the argument and its limit."""

import numpy as np
import pytest
from sklearn.base import clone

from klsa_search.errors import ArgumentError
from klsa_search.estimators import (
    BM25Features,
    ExponentialKernel,
    GaussianKernel,
    GramSchmidtKernel,
    LatentSemanticKernel,
    PolynomialKernel,
    SemanticSmoothingKernel,
    SquashedKernel,
    TfidfFeatures,
    VonNeumannKernel,
)
from tests.estimators.worlds import KERNELS, counts

X, NEW = counts()
LABELS = np.arange(40) % 3 == 0
REFUSED = [
    (LatentSemanticKernel(31), None, "n_components", r"31 is outside 1\.\.30"),
    (LatentSemanticKernel(0), None, "n_components", r"0 is outside 1\.\.30"),
    (LatentSemanticKernel(2.5), None, "n_components", r"2\.5 is outside 1\.\.30"),
    (LatentSemanticKernel(41, base=PolynomialKernel()), None, "n_components", r"1\.\.40"),
    (GramSchmidtKernel(31), None, "n_components", r"31 is outside 1\.\.30"),
    (GramSchmidtKernel(bias=0), LABELS, "bias", r"bias = 0 is outside \(0, inf\)"),
    (GramSchmidtKernel(bias=2.0), None, "y", "y is None, but bias = 2.0"),
    (GramSchmidtKernel(bias=2.0), np.arange(40) % 3, "bias", "y has 3"),
    (GramSchmidtKernel(bias={True: -1}), LABELS, "bias of True", r"-1 is outside \(0, inf\)"),
    (VonNeumannKernel(1.0), None, "gamma", r"gamma = 1\.0 is outside \[0, 1\)"),
    (VonNeumannKernel(-0.1), None, "gamma", r"-0\.1 is outside \[0, 1\)"),
    (VonNeumannKernel("best"), None, "gamma", r"'best' is outside \[0, 1\)"),
    (VonNeumannKernel("alignment"), None, "y", "y is None, but gamma = 'alignment'"),
    (VonNeumannKernel("alignment"), np.ones(40), "y", "y has 1 class"),
    (ExponentialKernel(301), None, "gamma", r"301 is outside \[0, 300\]"),
    (SquashedKernel(0), None, "gamma", r"0 is outside \[1e-10, inf\)"),
    (PolynomialKernel(0), None, "degree", r"degree = 0 is outside 1\.\.20"),
    (PolynomialKernel(offset=-1), None, "offset", r"-1 is outside \[0, inf\)"),
    (GaussianKernel(0.0), None, "sigma", r"0\.0 is outside \(0, inf\)"),
    (SemanticSmoothingKernel(np.eye(7)), None, "concepts", "7 columns, and X 30"),
    (BM25Features(k1=0), None, "k1", r"0 is outside \(0, inf\)"),
    (BM25Features(b=1.5), None, "b", r"1\.5 is outside \[0, 1\]"),
    (BM25Features(idf_power=-1), None, "idf_power", r"-1 is outside"),
]


@pytest.mark.parametrize(("estimator", "y", "field", "message"), REFUSED, ids=repr)
def test_the_error_names_the_argument_and_the_limit(estimator, y, field, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        clone(estimator).fit(X, y)
    assert isinstance(caught.value, ValueError)
    assert caught.value.field == field


@pytest.mark.parametrize("make", [LatentSemanticKernel, GramSchmidtKernel, VonNeumannKernel])
def test_more_components_than_the_rank_are_refused_with_the_rank(make):
    repeated = np.repeat(np.eye(3, 6), 4, axis=0)
    with pytest.raises(ArgumentError, match="n_components = 5 is above 3, the rank"):
        make(n_components=5).fit(repeated)
    assert make(n_components=None).fit(repeated).transform(repeated).shape == (12, 3)


@pytest.mark.parametrize(
    "estimator", [LatentSemanticKernel(), GramSchmidtKernel(), SquashedKernel()], ids=repr
)
def test_training_documents_that_are_all_empty_are_refused(estimator):
    with pytest.raises(ArgumentError, match="X: the kernel of its 5 rows is all 0"):
        estimator.fit(np.zeros((5, 4)))


@pytest.mark.parametrize("name", KERNELS)
def test_nan_and_infinity_are_refused(name):
    for bad in (np.nan, np.inf):
        points = X.toarray()
        points[3, 3] = bad
        with pytest.raises(ValueError, match="X contains"):
            clone(KERNELS[name]).fit(points, LABELS)
        with pytest.raises(ValueError, match="X contains"):
            clone(KERNELS[name]).fit(X, LABELS).kernel(points)


@pytest.mark.parametrize("estimator", [BM25Features(), TfidfFeatures()], ids=repr)
def test_negative_counts_are_refused(estimator):
    with pytest.raises(ValueError, match="Negative values in data passed to"):
        estimator.fit(-X)


def test_labels_of_another_length_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        VonNeumannKernel("alignment").fit(X, LABELS[:7])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GramSchmidtKernel(bias=2.0).fit(X, LABELS[:7])


def test_smoothing_by_numbers_that_are_none_is_refused():
    with pytest.raises(ValueError, match="concepts contains NaN"):
        SemanticSmoothingKernel(np.full((2, 30), np.nan)).fit(X)
