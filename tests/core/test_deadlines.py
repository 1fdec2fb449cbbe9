"""Deadlines stop work between two steps."""

import threading

import pytest

from klsa_search.core.cached import lazy_property
from klsa_search.core.deadlines import check_deadline, deadline_check
from tests.support.waiting import PATIENCE


def late():
    raise TimeoutError


def test_nothing_is_given_up_by_itself():
    check_deadline()


def test_it_is_given_up_within_the_block_alone_and_in_this_thread_alone():
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


def test_what_all_will_use_is_made_to_the_end():
    class Thing:
        @lazy_property
        def value(self):
            check_deadline()
            return 3

    with deadline_check(late):
        assert Thing().value == 3
