import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import permutation_test, ttest_rel

from klsa_search.evaluation.comparison import (
    confidence_interval,
    holm,
    paired_t_test,
    randomisation_test,
)

# Darwin's fifteen pairs of maize, in eighths of an inch, as Fisher worked them out by hand:
# 863 of 32,768 flips reach the sum of 314, so 1,726 reach it in either direction.
MAIZE = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48], dtype=float)
VALUES = arrays(np.float64, st.integers(0, 10), elements=st.floats(-1, 1, width=16))


def of(*differences):
    return np.array(differences, dtype=float)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        (of(1, 2, 3), 2 / 8),  # only +++ and --- reach 6
        (of(3, 1, -1), 6 / 8),  # sizes 5, 3, 3, 1, each twice; seen is 3
        (of(1, -1), 1.0),
        (of(0.25), 1.0),
        (of(), 1.0),
        (MAIZE, 1726 / 32768),
    ],
)
def test_flips_counted_by_hand(differences, p):
    assert randomisation_test(differences) == p


def test_sums_that_only_rounding_parts_are_equal():
    # .1 + .2 - .3 is not 0 in floating point, but a flip that ends at 0 is as far as it.
    assert randomisation_test(of(0.1, 0.2, -0.3)) == 1.0
    assert randomisation_test(of(0.1, 0.2, 0.3)) == 0.25


def test_queries_without_a_difference_change_nothing():
    padded = np.concatenate([np.zeros(50), of(1, 2, 3)])
    assert randomisation_test(padded) == 0.25


# On a grid of 1/64 every sum is exact, so that no rounding decides a tie.
@given(st.lists(st.integers(-64, 64), min_size=2, max_size=9))
def test_exact_as_scipy_finds_it(sixty_fourths):
    differences = np.array(sixty_fourths) / 64
    theirs = permutation_test(
        (differences, np.zeros(len(differences))),
        lambda x, y, axis: (x - y).sum(axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert randomisation_test(differences) == pytest.approx(theirs.pvalue, abs=1e-12)


def test_samples_come_close_to_the_exact_answer():
    rng = np.random.default_rng(1)
    differences = np.concatenate([MAIZE, of(1, -1, 2)])
    flips = (np.arange(2**18)[:, None] >> np.arange(18)) & 1
    sums = differences.sum() - 2 * flips @ differences
    exact = np.mean(np.abs(sums) >= differences.sum())
    assert randomisation_test(differences) == pytest.approx(exact, abs=0.003)
    assert randomisation_test(differences, seed=5) == pytest.approx(exact, abs=0.003)
    shuffled = rng.permutation(differences)
    assert randomisation_test(shuffled) == pytest.approx(exact, abs=0.003)


def test_a_sampled_p_is_never_0_and_always_the_same():
    assert randomisation_test(np.ones(100), samples=999) == 1 / 1000
    noise = np.random.default_rng(0).normal(0.05, 1, 40)
    assert randomisation_test(noise) == randomisation_test(noise.copy())
    assert randomisation_test(noise) != randomisation_test(noise, seed=1)


@pytest.mark.parametrize("test", [randomisation_test, paired_t_test])
@pytest.mark.parametrize("queries", [0, 1, 2, 16, 17, 225])
def test_p_of_identical_systems_is_1(test, queries):
    assert test(np.zeros(queries)) == 1.0


@given(VALUES)
def test_either_system_may_be_called_the_baseline(differences):
    assert randomisation_test(-differences) == randomisation_test(differences)
    assert paired_t_test(-differences) == paired_t_test(differences)


def test_symmetric_with_many_queries_too():
    differences = np.random.default_rng(0).normal(0.1, 1, 60)
    assert randomisation_test(-differences) == randomisation_test(differences)


def test_t_as_published_and_as_scipy_finds_it():
    assert paired_t_test(MAIZE) == pytest.approx(0.0497, abs=5e-5)
    rng = np.random.default_rng(0)
    ours, base = rng.random(50), rng.random(50)
    assert paired_t_test(ours - base) == pytest.approx(ttest_rel(ours, base).pvalue)


def test_t_where_it_cannot_be_computed():
    assert paired_t_test(of()) == 1.0
    assert paired_t_test(of(0.3)) == 1.0
    assert paired_t_test(np.full(7, 0.1)) == 0.0


def test_holm_by_hand():
    # In order: .005 * 4, .01 * 3, .03 * 2, and .04 * 1, which may not fall below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1)))
def test_holm_never_lowers_and_keeps_the_order(p_values):
    corrected = holm(p_values)
    assert all(p <= c <= 1 for p, c in zip(p_values, corrected, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()
    assert sorted(holm(p_values[::-1])) == sorted(corrected)


def test_a_confidence_interval_by_hand():
    """Mean 2, s = 1, n = 3: t(.975, 2) = 4.3027, over √3."""
    low, high = confidence_interval(np.array([1.0, 2.0, 3.0]))
    assert (low, high) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert confidence_interval(np.array([0.5, 0.5])) == (0.5, 0.5)
    assert confidence_interval(np.array([1.0, 0.0]), within=(0, 1)) == (0, 1)
    assert confidence_interval(np.array([0.5])) is None
    assert confidence_interval(np.array([])) is None


@pytest.mark.slow
def test_confidence_intervals_hold_the_mean_as_often_as_they_say():
    rng = np.random.default_rng(3)
    found = [confidence_interval(rng.normal(1, 2, 12)) for _ in range(2000)]
    assert np.mean([low <= 1 <= high for low, high in found]) == pytest.approx(0.95, abs=0.015)
