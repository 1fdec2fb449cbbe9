"""A forked child finds free whatever other threads of its parent held."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

import pytest

from klsa_search.forks import lock_free_in_children
from tests.forked import BOUND, another_thread, in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")


def test_no_lock_is_held_in_a_child():
    locks = [lock_free_in_children() for _ in range(3)]

    def use():
        for lock in locks:
            with lock:
                sum(range(1000))

    def work():
        for lock in locks:
            assert lock.acquire(timeout=BOUND)
            lock.release()

    with another_thread(use):
        assert [in_child(work) for _ in range(20)] == [0] * 20
    work()


def test_locks_come_and_go():
    before = lock_free_in_children()
    assert in_child(lock_free_in_children) == 0
    del before
    with lock_free_in_children():
        pass


def test_threads_may_fork_at_once():
    locks = [lock_free_in_children() for _ in range(5)]
    statuses = []

    def fork():
        while len(statuses) < 9:
            with suppress(RuntimeError):  # filelock allows one at a time, from Python 3.13 on
                statuses.append(in_child(lambda: [lock.acquire(timeout=BOUND) for lock in locks]))

    threads = [threading.Thread(target=fork) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {0}


def test_one_may_be_held_within_another_and_locks_made_meanwhile():
    locks = [lock_free_in_children() for _ in range(20)]
    pairs = [(outer, inner) for outer in locks for inner in locks if outer is not inner]
    made = []

    def nest():
        for outer, inner in pairs:
            with outer:
                made.append(lock_free_in_children())
                with inner, made.pop():
                    pass

    with another_thread(nest):
        assert [
            in_child(lambda: [lock.acquire(timeout=BOUND) for lock in locks]) for _ in range(20)
        ] == [0] * 20
