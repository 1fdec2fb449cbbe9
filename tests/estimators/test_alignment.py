"""Alignment, its derivative, and the γ that the kernels choose by it."""

import numpy as np
import pytest

from klsa_search.errors import ArgumentError
from klsa_search.estimators import ExponentialKernel, VonNeumannKernel, alignment
from klsa_search.estimators.alignment import SpectralAlignment, line_search, one_vs_rest
from tests.estimators.worlds import counts, two_topics

X, _ = counts()
K = (X @ X.T).toarray()
BINARY = np.arange(40) % 3 == 0
LABELS = {"binary": BINARY, "names": np.where(BINARY, "yes", "no"), "three": np.arange(40) % 3}
every_labelling = pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
centred_or_not = pytest.mark.parametrize("centred", [False, True])


def by_definition(gram, y, centred):
    """⟨K, T⟩ / ‖K‖‖T‖ with T = Σ_c y_c y_cᵀ, all written out."""
    classes = np.unique(y)
    targets = np.array([np.where(y == label, 1.0, -1.0) for label in classes]).T
    T = targets @ targets.T
    if centred:
        H = np.eye(len(y)) - 1 / len(y)
        gram, T = H @ gram @ H, H @ T @ H
    return np.sum(gram * T) / np.linalg.norm(gram) / np.linalg.norm(T)


@every_labelling
@centred_or_not
def test_alignment_is_the_cosine_of_two_matrices(y, centred):
    assert alignment(K, y, centred=centred) == pytest.approx(by_definition(K, y, centred))


def test_alignment_by_hand():
    assert alignment([[1, -1], [-1, 1]], [0, 1]) == pytest.approx(1)
    assert alignment([[1, 1], [1, 1]], [0, 1]) == 0
    assert alignment(np.eye(4), [0, 0, 1, 1]) == pytest.approx(0.5)
    assert alignment(np.zeros((2, 2)), [0, 1]) == 0


def test_two_classes_have_one_target_and_more_have_one_each():
    assert one_vs_rest(["no", "yes", "no"]).tolist() == [[-1], [1], [-1]]
    assert one_vs_rest([3, 1, 2]).shape == (3, 3)


@every_labelling
@centred_or_not
def test_the_alignment_of_a_spectrum_is_that_of_its_kernel(y, centred):
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0)
    aligned = SpectralAlignment.of(vectors, y, centred=centred)
    assert aligned.value(values) == pytest.approx(alignment(K, y, centred=centred))


@every_labelling
@centred_or_not
@pytest.mark.parametrize("gamma", [0.05, 0.5, 0.9])
def test_the_derivative_is_that_of_finite_differences(y, centred, gamma):
    values, vectors = np.linalg.eigh(K)
    relative = np.maximum(values, 0) / values[-1]
    aligned = SpectralAlignment.of(vectors, y, centred=centred)
    step = 1e-6

    def von_neumann(gamma):
        return relative / (1 - gamma * relative)

    def exponential(gamma):
        return relative * np.exp(gamma * relative)

    for mu, slope in [
        (von_neumann, von_neumann(gamma) ** 2),
        (exponential, relative * exponential(gamma)),
    ]:
        above, below = (aligned.value(mu(gamma + sign * step)) for sign in (1, -1))
        derivative = aligned.derivative(mu(gamma), slope)
        assert derivative == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("make", [VonNeumannKernel, ExponentialKernel])
@centred_or_not
def test_the_chosen_gamma_is_the_best_of_the_curve(make, centred):
    documents, y = two_topics()
    estimator = make("alignment", centred=centred).fit(documents, y)
    curve = estimator.alignment_curve_
    assert estimator.gamma_ == curve.best
    assert curve.gammas[0] <= curve.best <= curve.gammas[-1]
    assert curve.alignment >= curve.alignments.max() - 1e-12
    gram = estimator.kernel(documents)
    assert alignment(gram, y, centred=centred) == pytest.approx(curve.alignment)
    for gamma in (curve.best * 0.95, min(curve.best * 1.05, 0.999999)):
        other = make(gamma).fit(documents).kernel(documents)
        assert alignment(other, y, centred=centred) <= curve.alignment + 1e-9


@pytest.mark.parametrize("make", [VonNeumannKernel, ExponentialKernel])
def test_the_search_finds_the_zero_of_the_derivative(make):
    """One class direction first, then one that is half class: neither end is best."""
    values = np.array([1.0, 0.6, 0.5])
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((12, 3)))[0]
    y = np.sign(vectors @ [1.0, 0.7, 0.0]) > 0
    points = vectors * np.sqrt(values)
    estimator = make("alignment").fit(points, y)
    curve = estimator.alignment_curve_
    assert curve.gammas[0] < curve.best < curve.gammas[-1]
    step = 1e-4
    for gamma in (curve.best - step, curve.best + step):
        assert alignment(make(gamma).fit(points).kernel(points), y) < curve.alignment


def test_for_a_falling_curve_the_base_kernel_is_best():
    """The labels follow the weaker direction, which every γ above 0 weakens further."""
    points = np.array([[2.0, 1], [2, -1], [2, 1], [2, -1]])
    estimator = VonNeumannKernel("alignment").fit(points, [1, 0, 1, 0])
    assert estimator.gamma_ == 0


def test_the_higher_of_two_maxima_is_chosen():
    """A = cos of a wave that peaks at 1 and, higher, at 3."""
    aligned = SpectralAlignment(np.array([1.0, 0.0]), np.zeros(2), 1.0)

    def transformed(gamma):
        far = 1.5 - np.sin(np.pi * gamma / 2) ** 2 - 0.1 * gamma
        slope = -np.pi / 2 * np.sin(np.pi * gamma) - 0.1
        return np.array([1.0, far]), np.array([0.0, slope])

    curve = line_search(aligned, transformed, np.linspace(0, 4, 41))
    assert curve.best == pytest.approx(3 + np.arcsin(0.2 / np.pi) / np.pi, abs=1e-6)


def test_alignment_refuses_what_it_cannot_compare():
    with pytest.raises(ArgumentError, match="y has 1 class"):
        alignment(K, np.ones(40))
    with pytest.raises(ArgumentError, match=r"K has shape \(40, 40\), and y 3 labels"):
        alignment(K, [0, 1, 1])
