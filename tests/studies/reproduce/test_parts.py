import numpy as np
import pytest
from scipy import linalg

from klsa_search.estimators import LatentSemanticKernel
from studies.reproduce.diffusion import family_of
from studies.reproduce.dimensions import Protocol, measure_curves
from studies.reproduce.machine import (
    ERROR,
    F1,
    best_capacity,
    folds,
    random_splits,
    stratified_splits,
)
from studies.reproduce.report import (
    Value,
)

pytestmark = pytest.mark.slow

LABELS = np.array([True] * 6 + [False] * 14)


def test_parts_are_disjoint_and_of_their_sizes():
    for split in random_splits(20, train=12, test=5, count=4):
        assert len(set(split.train.tolist()) | set(split.test.tolist())) == 17
        assert (len(split.train), len(split.test)) == (12, 5)


def test_more_splits_begin_with_the_same_ones():
    few, many = (random_splits(20, train=15, test=5, count=count) for count in (2, 7))
    for one, other in zip(few, many, strict=False):
        np.testing.assert_array_equal(one.train, other.train)
    assert {tuple(split.test.tolist()) for split in many} > {tuple(few[0].test.tolist())}
    assert len({tuple(split.test.tolist()) for split in many}) == 7


def test_stratified_parts_have_the_requested_sizes():
    for split in stratified_splits(LABELS, train=(4, 9), test=(2, 3), count=3):
        assert (LABELS[split.train].sum(), (~LABELS[split.train]).sum()) == (4, 9)
        assert (LABELS[split.test].sum(), (~LABELS[split.test]).sum()) == (2, 3)
        assert not set(split.train.tolist()) & set(split.test.tolist())


def test_error_and_f1_by_hand():
    actual = np.array([True, True, True, False, False])
    predicted = np.array([True, False, False, True, False])
    assert ERROR.of(actual, predicted) == 3 / 5
    assert F1.of(actual, predicted) == pytest.approx(2 * (1 / 2 * 1 / 3) / (1 / 2 + 1 / 3))
    assert F1.of(actual, np.zeros(5, bool)) == 0
    assert F1.of(actual, actual) == 1


def test_the_best_is_the_first_of_equals_and_the_largest_c():
    assert ERROR.best([0.3, 0.1, 0.1]) == 1
    assert F1.best([0.3, 0.5, 0.5]) == 1
    assert best_capacity((0.1, 1.0, 10.0), F1, [0.2, 0.5, 0.5]) == 10.0
    assert best_capacity((0.1, 1.0, 10.0), ERROR, [0.2, 0.3, 0.3]) == 0.1


def test_folds_test_every_point_once_and_are_at_most_the_rarest_class():
    parts = folds(LABELS, 10)
    assert len(parts) == 6
    assert sorted(np.concatenate([part.test for part in parts]).tolist()) == list(range(20))
    assert all(LABELS[part.test].sum() == 1 for part in parts)


def world():
    """Forty points: the class is the sign of the strongest direction, the others are noise."""
    generator = np.random.default_rng(5)
    labels = np.arange(40) % 2 == 0
    points = generator.normal(scale=0.3, size=(40, 12))
    points[:, 0] += np.where(labels, 3.0, -3.0)
    return points, labels


@pytest.mark.parametrize("of_corpus", [True, False])
@pytest.mark.parametrize("degree", [1, 2])
def test_the_curve_ends_at_the_full_space(of_corpus, degree):
    points, labels = world()
    splits = random_splits(40, train=30, test=10, count=3)
    methods = ("LSK", "GSK")
    protocol = Protocol(None, degree, methods, (1, 4, 400), (0.01, 1.0), ERROR, of_corpus)
    told = []
    curves = measure_curves(points, {"sign": labels}, splits, protocol, lambda: told.append(1))
    found = curves["sign"]
    assert len(told) == 3
    assert found.full.shape == (3,)
    for method in methods:
        assert found.reduced[method].shape == (3, 3)
        np.testing.assert_array_equal(found.reduced[method][:, -1], found.full)
    if degree == 1:
        assert found.reduced["LSK"][:, 0].max() == 0  # one direction says it all
        assert found.chosen["LSK"] == 0


@pytest.mark.parametrize("normalised", [True, False])
def test_gram_matrices_of_a_family_are_scaled(normalised):
    """K̂ of each γ by its formula; each document of length 1, or all on average."""
    points, _ = world()
    spectrum = LatentSemanticKernel().fit(points).spectrum_
    family = family_of(spectrum, "exponential", (0.0, 2.0), normalised=normalised)
    K = points @ points.T
    first = np.linalg.eigvalsh(K)[-1]
    assert family.first == pytest.approx(first)
    for gamma, gram in zip(family.gammas, family.grams, strict=True):
        expected = K @ linalg.expm(gamma * K / first)
        lengths = np.sqrt(expected.diagonal())
        expected /= np.outer(lengths, lengths) if normalised else (lengths**2).mean()
        assert gram == pytest.approx(expected)


def test_mean_and_deviation_by_hand():
    assert Value.of([1.0, 3.0]) == Value(2.0, pytest.approx(2**0.5))
    assert Value.of([0.25]) == Value(0.25, 0.0)
