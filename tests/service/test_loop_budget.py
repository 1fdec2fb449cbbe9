"""The time budget of work in the event loop."""

import asyncio
import threading
import time
from collections import namedtuple
from functools import partial

import pytest

from klsa_search.service import admission as module
from klsa_search.service.admission import LoopBudget


def late(seconds):
    """Have this thread wait for so long, as where others have the machine."""
    threading.Event().wait(seconds)


def taken(seconds):
    """Have this thread compute for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_an_iteration_has_so_much_time():
    async def ask():
        budget = LoopBudget(0.004)
        done = 0
        while budget.has_time():
            budget.run(partial(taken, 0.001))
            done += 1
        assert 1 <= done <= 4
        assert budget.is_spent()
        assert budget.count == done
        await asyncio.sleep(0)
        assert budget.has_time()

    asyncio.run(ask())
    assert not LoopBudget(0.0).has_time()


def test_work_returns_its_result_or_raises():
    async def ask():
        assert LoopBudget(0.004).run(lambda: "done") == "done"
        with pytest.raises(KeyError, match="mine"):
            LoopBudget(0.004).run(lambda: {}["mine"])

    asyncio.run(ask())


def test_a_pause_follows_long_work(monkeypatch):
    async def ask():
        budget = LoopBudget(10.0)
        budget.run(partial(late, 0.02))
        assert budget.has_time()
        budget.run(partial(taken, 0.02))
        await asyncio.sleep(0)
        assert not budget.has_time()
        monkeypatch.setattr(module, "perf_counter", lambda: time.perf_counter() + 60)
        assert budget.has_time()

    asyncio.run(ask())


def test_waiting_for_a_disk_counts(monkeypatch):
    read = iter(range(2))
    usage = namedtuple("usage", "ru_majflt ru_utime ru_stime")
    monkeypatch.setattr(module, "getrusage", lambda _: usage(next(read), 0.0, 0.0))

    async def ask():
        budget = LoopBudget(10.0)
        budget.run(partial(late, 0.02))
        await asyncio.sleep(0)
        assert not budget.has_time()

    asyncio.run(ask())
