"""Admission control: limits of running and waiting requests, and their timeouts.

Short searches run in the event loop: passing one to a thread and back takes as long as the search,
because threads compete for the GIL and data moves between processor caches.

The queue is short, and a request that has waited in it for too long is refused instead of run, so
that those that are answered are answered soon however many there are.
"""

from __future__ import annotations

import asyncio
import resource
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from resource import getrusage, struct_rusage
from time import perf_counter
from typing import Any, Generic, Literal, TypeVar, get_args

from klsa_search.core.deadlines import deadline_check
from klsa_search.core.parallel import processors
from klsa_search.errors import RequestTimedOut, ServiceBusy, TooManyWrites

T = TypeVar("T")

INLINE_SECONDS = 0.02
"""Seconds of inline searches in one iteration of the event loop; then others wait for the next, or
are refused once `MAX_HANDLED` were handled in it or are active.
"""

_LONG = 0.01  # seconds of processor or disk time above which a search is long
_PAUSE_FACTOR = 20
"""After a long search the loop runs none for this many times as long: at most 5% of the time."""

_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)  # the former only on Linux


class LoopBudget:
    """Time budget for work that runs inline in an event loop.

    seconds  budget of each iteration of the loop; 0 runs nothing inline
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._start: float | None = None  # of the first work of this iteration, in `perf_counter`
        self._loop: asyncio.AbstractEventLoop | None = None  # of that work
        self.count = 0  # of searches of this iteration, and of those that wait for the next
        self._paused_until = 0.0  # after long work

    def has_time(self) -> bool:
        """Return whether this iteration has time left, and no pause follows a long search."""
        return self._seconds > 0 and not self.is_spent() and perf_counter() >= self._paused_until

    def is_spent(self) -> bool:
        """Return whether the budget of this iteration of the running loop is spent."""
        if self._start is None or perf_counter() - self._start < self._seconds:
            return False
        return self._loop is asyncio.get_running_loop()  # another may have ended before `_reset`

    async def next_iteration(self) -> None:
        """Wait for the next iteration, which begins with the waiting searches."""
        self.count += 1
        await asyncio.sleep(0)

    def run(self, work: Callable[[], T]) -> T:
        """Run work now, and return its result."""
        usage, begin = getrusage(_THREAD), perf_counter()
        loop = asyncio.get_running_loop()
        if self._start is None or self._loop is not loop:
            self._loop, self._start, self.count = loop, begin, 0
            loop.call_soon(self._reset)
        self.count += 1
        try:
            return work()
        finally:
            seconds = perf_counter() - begin
            if seconds > _LONG:
                seconds = _thread_seconds(usage, seconds)
                if seconds > _LONG:
                    self._paused_until = perf_counter() + _PAUSE_FACTOR * seconds

    def _reset(self) -> None:
        self._start, self.count = None, 0


def _thread_seconds(before: struct_rusage, seconds: float) -> float:
    """Return the processor time of this thread since `before`, or `seconds` if it read a disk."""
    after = getrusage(_THREAD)
    if after.ru_majflt > before.ru_majflt:
        return seconds
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


Reason = Literal["full", "queue_timeout", "request_timeout"]
"""Why a request was refused or cancelled."""

WAITING = 64  # maximum number of waiting requests
MAX_QUEUE_DELAY = 0.1
"""Seconds that a light request waits before it is refused, if no thread was free lately."""

MAX_BURST = 0.25
"""Seconds that it may wait if a thread was free as recently, so that short bursts are answered."""

MAX_HANDLED = 16
"""Requests, active or handled in one iteration of the event loop, from which on others are refused
if the time of the iteration is spent.
"""

HEAVY = 1
"""Running expensive requests. With the light ones that is one thread more than processors."""

HEAVY_WAITING = 8  # maximum number of waiting expensive requests
QUEUE_TIMEOUT = 10.0  # seconds after which a waiting request is refused
REQUEST_TIMEOUT = 15.0  # seconds after which a running request is answered without its result


@dataclass(slots=True, eq=False)
class _Work(Generic[T]):
    """The work of a request in a thread; times are in seconds of `perf_counter`.

    is_queued  whether no thread was free when it was submitted
    """

    work: Callable[[], T]
    submitted: float = field(default_factory=perf_counter)
    started: float | None = None
    is_queued: bool = True


class Admission:
    """Runs work of coroutines in its own threads; safe to share between event loops.

    running          maximum number of running requests; by default that of processors, but at least
                     2: the extension module releases the GIL, and more threads than processors add
                     no throughput, and delay the event loop
    waiting          maximum number of waiting requests
    queue_timeout    seconds a request may wait
    request_timeout  seconds a request may run; its thread continues, and counts as running, up to
                     the next step at which it can be cancelled (`check_deadline` of
                     `klsa_search.core.deadlines`)
    max_queue_delay  seconds in the queue after which a request is refused when its turn comes, or
                     `MAX_BURST` if that is more and a thread was free since; by default no limit
    inline_seconds   budget for work in the event loop, see `LoopBudget`; by default none
    """

    _busy_error: type[ServiceBusy] = ServiceBusy
    _busy_message = "the service is busy"

    def __init__(
        self,
        *,
        running: int | None = None,
        waiting: int = WAITING,
        queue_timeout: float = QUEUE_TIMEOUT,
        request_timeout: float = REQUEST_TIMEOUT,
        max_queue_delay: float | None = None,
        inline_seconds: float = 0.0,
    ) -> None:
        running = max(2, processors()) if running is None else running
        self._pool = ThreadPoolExecutor(running, thread_name_prefix="klsa-request")
        self._running, self._waiting = running, waiting
        self._max_queue_delay = max_queue_delay
        self._free_at = 0.0  # when a request last found a free thread, in `perf_counter`
        self._budget = LoopBudget(inline_seconds)
        self.queue_timeout = queue_timeout
        self._request_timeout = request_timeout
        self._lock = threading.Lock()  # held from counting to submitting
        self._active: set[Future[Any]] = set()
        self._refused: Counter[Reason] = Counter(dict.fromkeys(get_args(Reason), 0))

    async def run_inline(self, work: Callable[[], T | None]) -> T | None:
        """Run work in the event loop and return its result; errors as of `run`.

        Returns None if the work has to run in a thread: it returned None itself, or a pause follows
        long work, see `LoopBudget`.
        """
        while self._budget.is_spent():  # threads would delay the event loop, which is late already
            await self._budget.next_iteration()
        if not self._budget.has_time():
            return None
        try:
            with deadline_check(partial(self._check_request_timeout, perf_counter())):
                return self._budget.run(work)
        except RequestTimedOut:
            self._refused["request_timeout"] += 1
            raise

    async def run(self, work: Callable[[], T]) -> T:
        """Run work in a thread and return its result, or raise what it raised.

        Raises ServiceBusy if the queue is full, or no thread was free in time; RequestTimedOut if
        the work took too long.
        """
        timed = _Work(work)
        future = self._submit(timed)
        answer = asyncio.wrap_future(future)
        try:
            while not answer.done():
                begin, limit = timed.submitted, self.queue_timeout
                if timed.started is not None:
                    begin, limit = timed.started, self._request_timeout
                left = begin + limit - perf_counter()
                if left > 0:
                    await asyncio.wait((answer,), timeout=min(left, self._request_timeout))
                elif timed.started is not None:
                    raise self._timed_out(self._request_timeout)
                elif future.cancel():  # else it starts just now
                    raise self._refusal(
                        "queue_timeout", f"no thread was free for {self.queue_timeout:g} s"
                    )
            return answer.result()
        except RequestTimedOut:
            self._refused["request_timeout"] += 1
            raise
        finally:
            answer.cancel()  # with the work, unless it runs

    async def run_all(self, calls: Awaitable[T]) -> T:
        """Await several calls, with the timeouts of a single one for all together.

        Raises RequestTimedOut and cancels them.
        """
        timeout = self.queue_timeout + self._request_timeout
        try:
            async with asyncio.timeout(timeout):
                return await calls
        except TimeoutError:
            self._refused["request_timeout"] += 1
            raise self._timed_out(timeout) from None

    @property
    def is_busy(self) -> bool:
        """Whether a request runs or waits."""
        return bool(self._active)

    def check(self) -> None:
        """Raise ServiceBusy if another request would be refused now."""
        active, most = len(self._active), self._running + self._waiting
        if self._budget.is_spent():
            # One slow request is no reason to refuse others: another process may have delayed it.
            active, most = active + self._budget.count, min(most, MAX_HANDLED)
        if active >= most:
            raise self._refusal("full", "the request queue is full")

    def load(self) -> tuple[int, int]:
        """Return how many requests run, and how many wait."""
        active = list(self._active)
        running = sum(future.running() for future in active)
        return running, len(active) - running

    def refused(self) -> Mapping[Reason, int]:
        """Return how many requests were refused or cancelled, by reason, since the start."""
        return dict(self._refused)

    def check_wait(self, submitted: float, started: float) -> None:
        """Raise ServiceBusy if work that was submitted and started then has waited for too long."""
        limit = self._max_queue_delay
        if limit is None:
            return
        if started - self._free_at < MAX_BURST:
            limit = max(limit, MAX_BURST)
        if started - submitted > limit:
            raise self._refusal("queue_timeout", f"no thread was free for {limit:g} s")

    def _check_request_timeout(self, started: float) -> None:
        """Raise RequestTimedOut if work that started then has run for too long."""
        if perf_counter() - started > self._request_timeout:
            raise self._timed_out(self._request_timeout)

    def _submit(self, work: _Work[T]) -> Future[T]:
        with self._lock:
            self.check()
            if len(self._active) < self._running:
                self._free_at, work.is_queued = work.submitted, False
            future = self._pool.submit(self._perform, work)
            self._active.add(future)
        future.add_done_callback(self._active.discard)
        return future

    def _perform(self, work: _Work[T]) -> T:
        """Do work in this thread; ServiceBusy if it has waited for too long."""
        started = work.started = perf_counter()
        if work.is_queued:  # else only the machine was slow
            self.check_wait(work.submitted, started)
        with deadline_check(partial(self._check_request_timeout, started)):
            return work.work()

    def _timed_out(self, seconds: float) -> RequestTimedOut:
        step = "ask for fewer results, or for less to be computed for them"
        return RequestTimedOut(f"request timed out after {seconds:g} s; {step}")

    def _refusal(self, reason: Reason, detail: str) -> ServiceBusy:
        """Count a refusal, and return its error."""
        self._refused[reason] += 1
        return self._busy_error(f"{self._busy_message}: {detail}; try again in a moment")


WAITING_WRITES = 16  # maximum number of active writes, including those whose body is being read
SHORT = 2**16
"""Maximum bytes of the body of a short write; the slowest accepted client sends it in 16 s."""

WRITE_QUEUE_TIMEOUT = 20.0
"""Seconds after which a waiting write is refused; a write waits 10 s for another process."""

WRITE_TIMEOUT = 60.0
"""Seconds after which a write is answered without its result; it continues, and is atomic."""


READERS = 2
"""Files that are read at once beside writes, in processes of up to 1 GiB each; others wait."""


class Writes(Admission):
    """Runs writes one at a time in its own thread: see `Admission`.

    Writes to one index wait for each other anyway, and searches need the processors. The bodies of
    waiting writes are in memory, so the queue is short.
    """

    _busy_error = TooManyWrites
    _busy_message = "too many writes"

    def __init__(
        self,
        *,
        waiting: int = WAITING_WRITES,
        queue_timeout: float = WRITE_QUEUE_TIMEOUT,
        request_timeout: float = WRITE_TIMEOUT,
    ) -> None:
        super().__init__(
            running=1, waiting=waiting, queue_timeout=queue_timeout, request_timeout=request_timeout
        )
        self._max_active = waiting
        self._max_long = max(1, waiting // 2)
        self.readers = asyncio.Semaphore(READERS)
        self._active_short = self._active_long = 0

    @contextmanager
    def slot(self, size: int | None = 0) -> Iterator[None]:
        """Reserve a slot for a write before its body is read; raises TooManyWrites.

        size  bytes of the body; None if unknown, as for a stream
        Long bodies take at most half of the slots, so that short writes are not blocked.
        """
        self.check()
        is_long = size is None or size > SHORT
        if is_long and self._active_long >= self._max_long:
            raise self._refusal("full", "the queue for long writes is full")
        if self._active_short + self._active_long >= self._max_active:
            raise self._refusal("full", "the write queue is full")
        self._active_long += is_long
        self._active_short += not is_long
        try:
            yield
        finally:
            self._active_long -= is_long
            self._active_short -= not is_long

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[None]:
        """Wait until another file may be read; TooManyWrites after `queue_timeout`."""
        try:
            await asyncio.wait_for(self.readers.acquire(), self.queue_timeout)
        except TimeoutError:
            detail = f"{READERS} other files were read for {self.queue_timeout:g} s"
            raise self._refusal("queue_timeout", detail) from None
        try:
            yield
        finally:
            self.readers.release()

    def _check_request_timeout(self, started: float) -> None:
        """Do nothing: a write is never cancelled halfway."""

    def _timed_out(self, seconds: float) -> RequestTimedOut:
        return RequestTimedOut(
            f"the write took more than {seconds:g} s and continues; it can be sent again; "
            "send less at a time"
        )
