"""scikit-learn's estimator checks, and the pipelines of the guide."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from klsa_search.estimators import (
    BM25Features,
    ExponentialKernel,
    GaussianKernel,
    GramSchmidtKernel,
    GVSMKernel,
    LatentSemanticKernel,
    PolynomialKernel,
    SemanticSmoothingKernel,
    SquashedKernel,
    TfidfFeatures,
    VonNeumannKernel,
)
from tests.support.processes import run_python
from tests.support.worlds import topic_documents

pytestmark = pytest.mark.slow

TEXTS = topic_documents()
TOPICS = np.arange(48) // 12
ESTIMATORS = [
    BM25Features(),
    TfidfFeatures(),
    TfidfFeatures(unit_length=False),
    LatentSemanticKernel(),
    LatentSemanticKernel(base=PolynomialKernel()),
    # A bias that is one number weighs one of two classes; the checks give up to four.
    GramSchmidtKernel(),
    GramSchmidtKernel(bias={1: 3.0}),
    GVSMKernel(),
    SemanticSmoothingKernel(),
    VonNeumannKernel(),
    VonNeumannKernel("alignment"),
    ExponentialKernel("alignment", centred=True),
    SquashedKernel(),
    PolynomialKernel(),
    PolynomialKernel(base=LatentSemanticKernel()),
    GaussianKernel(base=SquashedKernel()),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


PIPELINES = {
    "coordinates": (LatentSemanticKernel(6), LinearSVC()),
    "gram matrix": (PolynomialKernel(2, base=LatentSemanticKernel(6)), SVC(kernel="precomputed")),
    "picked": (GramSchmidtKernel(12), LinearSVC()),
    "aligned": (VonNeumannKernel("alignment", centred=True), SVC(kernel="linear")),
}


@pytest.mark.parametrize("features", [TfidfFeatures(), BM25Features()])
@pytest.mark.parametrize("name", PIPELINES)
def test_topics_are_learned_in_a_pipeline(name, features):
    pipeline = make_pipeline(CountVectorizer(), features, *PIPELINES[name])
    assert cross_val_score(pipeline, TEXTS, TOPICS, cv=4).mean() > 0.9


def test_a_grid_search_reaches_into_the_base():
    pipeline = make_pipeline(
        CountVectorizer(),
        TfidfFeatures(),
        PolynomialKernel(base=LatentSemanticKernel(3)),
        SVC(kernel="precomputed"),
    )
    grid = {"polynomialkernel__base__n_components": [1, 6], "svc__C": [0.1, 10]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(TEXTS, TOPICS)
    assert search.best_params_["polynomialkernel__base__n_components"] == 6
    assert search.score(TEXTS, TOPICS) > 0.9


def test_a_gram_matrix_and_a_pipeline_predict_alike():
    counts = make_pipeline(CountVectorizer(), TfidfFeatures()).fit_transform(TEXTS)
    kernel = LatentSemanticKernel(6).fit(counts[::2])
    by_matrix = SVC(kernel="precomputed").fit(kernel.kernel(counts[::2]), TOPICS[::2])
    by_place = SVC(kernel="linear").fit(kernel.transform(counts[::2]), TOPICS[::2])
    predicted = by_matrix.predict(kernel.kernel(counts[1::2], counts[::2]))
    assert np.array_equal(predicted, by_place.predict(kernel.transform(counts[1::2])))


def test_without_scikit_learn_the_front_door_says_what_to_install():
    program = """
import sys
sys.modules["sklearn"] = None
import klsa_search
from klsa_search.errors import MissingExtra
try:
    import klsa_search.estimators
except MissingExtra as error:
    print(error)
"""
    done = run_python(program, check=True)
    assert "pip install 'klsa-search[estimators]'" in done.stdout
