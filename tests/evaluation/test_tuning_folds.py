import numpy as np
import pytest

from klsa_search.evaluation.tuning import bootstrap_interval, choose, cross_validate


def test_a_steady_gain_beats_a_lucky_one():
    # Both gain .1 on average: the second column always, the third on one query of four.
    table = np.array([[0.5, 0.6, 0.5], [0.5, 0.6, 0.5], [0.5, 0.6, 0.5], [0.5, 0.6, 0.9]])
    assert choose(table) == 1


def test_a_gain_within_two_standard_errors_changes_nothing():
    # Mean .1, standard deviation .2, standard error .1: less two of them, -.1.
    gains = np.array([0.3, 0.1, 0.1, -0.1]) * np.sqrt(1.5)
    assert gains.std(ddof=1) == pytest.approx(0.2)
    assert choose(np.stack((np.zeros(4), gains), axis=1)) == 0


def test_among_equals_the_default_stays():
    assert choose(np.ones((5, 3))) == 0


def test_a_better_candidate_is_found_in_every_fold():
    rng = np.random.default_rng(1)
    default = rng.uniform(0.2, 0.6, 30)
    table = np.stack((default, default + 0.1, default - 0.1), axis=1)
    found = cross_validate(table, 5)
    assert (found.chosen, found.agreement) == (1, 1.0)
    assert found.tuned - found.default == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))
    assert found.p < 0.001


def test_a_query_never_votes_on_its_own_choice():
    # Each candidate is perfect on one query and bad on all others: whoever looked at the query it
    # is judged on would score 1.
    table = np.concatenate((np.full((8, 1), 0.5), np.eye(8)), axis=1)
    found = cross_validate(table, 8)
    assert found.tuned == found.default == 0.5
    assert (found.low, found.high, found.p) == (0, 0, 1)


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_not_taken_for_a_gain(seed):
    table = np.random.default_rng(seed).uniform(0, 1, (40, 60))
    found = cross_validate(table, 5, seed)
    assert found.low <= 0


def test_same_seed_same_answer():
    table = np.random.default_rng(3).uniform(0, 1, (20, 5))
    assert cross_validate(table, 4, 7) == cross_validate(table, 4, 7)


def test_more_folds_than_queries_leave_one_out():
    table = np.random.default_rng(3).uniform(0, 1, (6, 3))
    assert cross_validate(table, 50) == cross_validate(table, 6)


def test_the_interval_is_that_of_the_mean():
    assert bootstrap_interval(np.full(9, 0.25)) == (0.25, 0.25)
    differences = np.random.default_rng(0).normal(0.1, 0.2, 400)
    low, high = bootstrap_interval(differences)
    error = 1.96 * differences.std() / 20
    assert (low, high) == pytest.approx(
        (differences.mean() - error, differences.mean() + error), abs=0.002
    )
