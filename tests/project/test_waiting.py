import pytest
from hypothesis import HealthCheck, settings

from tests.support.waiting import PATIENCE, wait_until


def test_examples_take_the_time_they_need():
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_waiting_ends_with_the_event_or_says_that_it_never_came(monkeypatch):
    answers = iter([False, False, True])
    wait_until(lambda: next(answers))
    monkeypatch.setattr("tests.support.waiting.PATIENCE", 0.0)
    with pytest.raises(AssertionError, match="has not come"):
        wait_until(lambda: False)
    assert PATIENCE >= 30
