import asyncio
import itertools
import threading
import time
from contextlib import AsyncExitStack

import pytest

from klsa_search.core.deadlines import check_deadline
from klsa_search.errors import RequestTimedOut, ServiceBusy, TooManyWrites
from klsa_search.service import admission as module
from klsa_search.service.admission import MAX_HANDLED, READERS, Admission, Writes
from tests.support.waiting import PATIENCE, until

SHORT = 0.01  # seconds that are over at once


class Gate:
    """Work that begins when it is let, and ends when it is let."""

    def __init__(self):
        self.begun = threading.Event()
        self.let = threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.let.wait(PATIENCE)
        return "done"


@pytest.fixture
def gate():
    gate = Gate()
    yield gate
    gate.let.set()


def test_work_is_done_in_a_thread_and_its_failure_raised():
    async def ask():
        admission = Admission(running=1)
        assert await admission.run(threading.current_thread) is not threading.current_thread()
        with pytest.raises(KeyError, match="mine"):
            await admission.run(lambda: {}["mine"])
        assert not admission.is_busy

    asyncio.run(ask())


def test_excess_requests_are_refused_and_the_rest_answered_in_order(gate):
    async def ask():
        admission = Admission(running=1, waiting=2)
        order = []
        running = asyncio.create_task(admission.run(gate))
        await until(gate.begun.is_set)
        waiting = [
            asyncio.create_task(admission.run(lambda number=number: order.append(number)))
            for number in range(2)
        ]
        await asyncio.sleep(0)
        for _ in range(3):
            with pytest.raises(ServiceBusy, match="try again"):
                await admission.run(lambda: order.append("too much"))
        gate.let.set()
        assert await running == "done"
        await asyncio.gather(*waiting)
        assert order == [0, 1]
        assert await admission.run(lambda: "room again") == "room again"

    asyncio.run(ask())


def test_no_request_waits_longer_than_the_queue_timeout(gate):
    async def ask():
        admission = Admission(running=1, waiting=1)
        running = asyncio.create_task(admission.run(gate))
        await until(gate.begun.is_set)
        admission.queue_timeout = SHORT
        never = []
        for _ in range(5):  # each leaves its place to the next
            with pytest.raises(ServiceBusy, match="no thread was free"):
                await admission.run(lambda: never.append(1))
        admission.queue_timeout = PATIENCE
        gate.let.set()
        assert await running == "done"
        assert await admission.run(lambda: "room again") == "room again"
        assert never == []

    asyncio.run(ask())


def test_work_that_takes_too_long_is_answered_without_its_result(gate):
    async def ask():
        admission = Admission(running=1, request_timeout=SHORT)
        with pytest.raises(RequestTimedOut, match=r"0\.01 s"):
            await admission.run(gate)
        assert admission.is_busy
        gate.let.set()
        await until(lambda: not admission.is_busy)

    asyncio.run(ask())


def test_work_that_takes_too_long_is_given_up_at_its_next_step():
    async def ask():
        admission = Admission(running=1, request_timeout=SHORT)

        def steps():
            while True:
                check_deadline()

        with pytest.raises(RequestTimedOut, match=r"0\.01 s"):
            await admission.run(steps)
        await until(lambda: not admission.is_busy)
        assert admission.refused()["request_timeout"] == 1

    asyncio.run(ask())


def test_few_files_are_read_at_once():
    async def ask():
        writes = Writes(queue_timeout=SHORT)
        async with AsyncExitStack() as readers:
            for _ in range(READERS):
                await readers.enter_async_context(writes.reader())
            with pytest.raises(TooManyWrites, match="other files"):
                async with writes.reader():
                    pass
        assert not writes.readers.locked()

    asyncio.run(ask())


def test_a_write_is_never_given_up(gate):
    async def ask():
        writes = Writes(request_timeout=SHORT)
        done = []

        def write():
            gate()
            check_deadline()
            done.append("whole")

        with pytest.raises(RequestTimedOut, match="continues"):
            await writes.run(write)
        gate.let.set()
        await until(lambda: not writes.is_busy)
        assert done == ["whole"]

    asyncio.run(ask())


def test_several_are_waited_for_as_long_as_one():
    async def ask():
        admission = Admission(running=1, waiting=4, queue_timeout=SHORT, request_timeout=SHORT)

        async def several():
            while True:
                await asyncio.sleep(SHORT)

        with pytest.raises(RequestTimedOut, match=r"0\.02 s"):
            await admission.run_all(several())
        assert admission.refused()["request_timeout"] == 1

        patient = Admission()
        assert await patient.run_all(patient.run(lambda: "done")) == "done"

    asyncio.run(ask())


def test_one_admission_serves_several_event_loops():
    admission = Admission(running=2)
    results = []

    def ask(number):
        results.append(asyncio.run(admission.run(lambda: number)))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(results) == list(range(8))


@pytest.mark.parametrize(
    ("free", "waited", "is_refused"),
    [(0.2, 0.2, False), (0.2, 0.3, True), (5.0, 0.09, False), (5.0, 0.2, True)],
)
def test_a_request_that_waited_too_long_is_refused(free, waited, is_refused):
    """Seconds since a thread was free, and since it was submitted."""

    async def ask():
        admission = Admission(running=1, max_queue_delay=0.1)
        assert await admission.run(lambda: "done") == "done"
        start = time.perf_counter() + free
        if is_refused:
            with pytest.raises(ServiceBusy, match="no thread was free"):
                admission.check_wait(start - waited, start)
        else:
            admission.check_wait(start - waited, start)
        assert admission.refused()["queue_timeout"] == is_refused
        Admission(running=1).check_wait(start - PATIENCE, start)

    asyncio.run(ask())


def test_a_late_request_is_answered_without_its_work(gate, monkeypatch):
    async def ask():
        admission = Admission(running=1, max_queue_delay=PATIENCE)
        running = asyncio.create_task(admission.run(gate))
        await until(gate.begun.is_set)
        late = asyncio.create_task(admission.run(lambda: pytest.fail("it was run")))
        await asyncio.sleep(0)
        with monkeypatch.context() as later:
            later.setattr(module, "perf_counter", lambda: time.perf_counter() + 2 * PATIENCE)
            gate.let.set()
            with pytest.raises(ServiceBusy):
                await late
        assert await running == "done"
        assert admission.refused()["queue_timeout"] == 1

    asyncio.run(ask())


def test_a_request_with_a_free_thread_is_not_refused_because_the_machine_is_slow(monkeypatch):
    async def ask():
        admission = Admission(running=1, max_queue_delay=SHORT)
        clock = itertools.count(time.perf_counter(), 0.5)
        monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
        assert await admission.run(lambda: "done") == "done"

    asyncio.run(ask())


def test_quick_work_runs_in_the_event_loop():
    async def ask():
        admission = Admission(running=1, inline_seconds=PATIENCE)
        assert await admission.run_inline(threading.current_thread) is threading.current_thread()
        assert await admission.run_inline(lambda: None) is None
        with pytest.raises(KeyError, match="mine"):
            await admission.run_inline(lambda: {}["mine"])
        assert await Admission(running=1).run_inline(int) is None

    asyncio.run(ask())


def test_work_in_the_event_loop_has_a_deadline():
    async def ask():
        admission = Admission(running=1, inline_seconds=PATIENCE, request_timeout=SHORT)

        def work():
            threading.Event().wait(2 * SHORT)
            check_deadline()

        with pytest.raises(RequestTimedOut):
            await admission.run_inline(work)
        assert admission.refused()["request_timeout"] == 1

    asyncio.run(ask())


def test_requests_after_a_full_iteration_of_the_loop_are_refused(monkeypatch):
    async def ask():
        admission = Admission(running=1, inline_seconds=PATIENCE)
        for _ in range(MAX_HANDLED):
            await admission.run_inline(list)
        admission.check()
        with monkeypatch.context() as later:
            later.setattr(module, "perf_counter", lambda: time.perf_counter() + PATIENCE)
            with pytest.raises(ServiceBusy):
                admission.check()
        assert admission.refused()["full"] == 1
        await asyncio.sleep(0)
        admission.check()

    asyncio.run(ask())


def test_one_slow_search_refuses_no_others():
    async def ask():
        admission = Admission(running=1, inline_seconds=SHORT)
        ended = []

        async def search(seconds):
            await admission.run_inline(lambda: ended.append(time.sleep(seconds)) or "done")
            admission.check()

        await asyncio.gather(search(2 * SHORT), search(0), search(0))
        assert len(ended) == 3

    asyncio.run(ask())


def test_a_loop_that_ended_leaves_no_spent_budget():
    admission = Admission(running=1, inline_seconds=SHORT)

    async def spend():
        asyncio.get_running_loop().stop()
        await admission.run_inline(lambda: time.sleep(2 * SHORT))

    async def ask():
        for _ in range(2 * MAX_HANDLED):
            admission.check()
            assert await admission.run_inline(lambda: "done") == "done"

    ended = asyncio.new_event_loop()
    spending = ended.create_task(spend())
    ended.run_forever()
    assert spending.done()
    ended.close()
    asyncio.run(ask())
