"""A forked child finds all locks free that other threads of its parent held."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from klsa_search.core import forks
from klsa_search.core.forks import lock_free_in_children
from tests.support.forked import BOUND, another_thread, in_child
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


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
        assert [in_child(work) for _ in range(8)] == [0] * 8
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
        thread.join(PATIENCE)
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
            in_child(lambda: [lock.acquire(timeout=BOUND) for lock in locks]) for _ in range(8)
        ] == [0] * 8


def test_a_fork_takes_compilers_between_locks_that_compile_and_those_of_moments(
    monkeypatch,
):
    order = []

    class Noting:
        def __init__(self, name):
            self.name = name

        def acquire(self, *, blocking=True):
            order.append(self.name)
            return True

        def release(self):
            order.append(f"{self.name} freed")

    def hold():
        order.append("compilers")
        return lambda: order.append("compilers freed")

    around, moment = Noting("around"), Noting("moment")
    monkeypatch.setattr(forks, "_compiling", {around})
    monkeypatch.setattr(forks, "_short", {moment})
    monkeypatch.setattr(forks, "_acquirers", [hold])
    assert in_child(lambda: None) == 0
    assert order == [
        *("around", "compilers", "moment"),
        *("moment freed", "compilers freed", "around freed"),
    ]


def test_a_lock_of_the_standard_library_may_be_taken_within_ours():
    """The one that starting threads needs is taken by forks as well, and by hooks of its own."""
    script = """
import os, threading
from klsa_search.core import forks
from klsa_search.core.forks import lock_free_in_children
lock, held, forking = lock_free_in_children(), threading.Event(), threading.Event()
os.register_at_fork(before=forking.set)
from concurrent.futures import ThreadPoolExecutor
def work():
    with lock:
        held.set()
        forking.wait()
        with ThreadPoolExecutor(1) as threads:
            threads.submit(int).result()
thread = threading.Thread(target=work)
thread.start()
held.wait()
child = os.fork()
if not child:
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-W", "ignore", "-c", script]
    assert subprocess.check_output(command, text=True, cwd=root, timeout=BOUND) == "0\n"
