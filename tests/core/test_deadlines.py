"""Deadlines stop work between two steps."""

import threading

import pytest

from klsa_search.core.deadlines import check_deadline, deadline_check
from klsa_search.core.lazy import lazy_property
from tests.support.waiting import PATIENCE


def late():
    raise TimeoutError


def test_nothing_is_given_up_by_itself():
    check_deadline()


def test_a_deadline_counts_in_its_block_and_thread_only():
    with pytest.raises(TimeoutError), deadline_check(late):
        check_deadline()
    check_deadline()
    failed = []

    def other():
        try:
            check_deadline()
        except TimeoutError:
            failed.append(1)

    with deadline_check(late):
        with deadline_check(None):
            check_deadline()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(PATIENCE)
        with pytest.raises(TimeoutError):
            check_deadline()
    assert not failed


def test_cached_values_are_computed_without_a_deadline():
    class Thing:
        @lazy_property
        def value(self):
            check_deadline()
            return 3

    with deadline_check(late):
        assert Thing().value == 3
