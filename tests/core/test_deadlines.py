"""Work that is given up between two of its steps."""

import threading

import pytest

from klsa_search.core.cached import lazily
from klsa_search.core.deadlines import checked, in_time
from tests.support.waiting import PATIENCE


def late():
    raise TimeoutError


def test_nothing_is_given_up_by_itself():
    in_time()


def test_it_is_given_up_within_the_block_alone_and_in_this_thread_alone():
    with pytest.raises(TimeoutError), checked(late):
        in_time()
    in_time()
    failed = []

    def other():
        try:
            in_time()
        except TimeoutError:
            failed.append(1)

    with checked(late):
        with checked(None):
            in_time()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(PATIENCE)
        with pytest.raises(TimeoutError):
            in_time()
    assert not failed


def test_what_all_will_use_is_made_to_the_end():
    class Thing:
        @lazily
        def value(self):
            in_time()
            return 3

    with checked(late):
        assert Thing().value == 3
