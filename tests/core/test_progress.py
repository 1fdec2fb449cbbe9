"""Steps of a phase are counted from 1, with or without a callback."""

import pytest

from klsa_search.core.progress import steps


@pytest.mark.parametrize("total", [3, None])
def test_each_step_reports_how_many_are_done(total):
    told = []
    step = steps(lambda *given: told.append(given), "splits", total)
    for _ in range(3):
        step()
    assert told == [("splits", 1, total), ("splits", 2, total), ("splits", 3, total)]


def test_without_a_callback_nothing_is_reported():
    steps(None, "splits")()
