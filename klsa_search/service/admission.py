"""Admission: how many requests run, how many wait and for how long.

Handing a short search over to a thread and back takes as long as the search: the threads compete
for the GIL, and the data moves from the cache of one processor to that of another.

A queue without a bound answers nobody in time once more is asked than can be done. This one is
short, so that what gets in is answered soon, and who does not get in knows at once.
"""

from __future__ import annotations

import asyncio
import resource
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from resource import getrusage, struct_rusage
from time import perf_counter
from typing import Any, Generic, Literal, TypeVar, get_args

from klsa_search.core.compiling import missing_functions
from klsa_search.core.deadlines import deadline_check
from klsa_search.core.parallel import processors
from klsa_search.errors import RequestTimedOut, ServiceBusy

T = TypeVar("T")

AT_ONCE = 0.05
"""Seconds that short searches may take in one turn. Further requests of the turn are refused, like
those that find the queue full.
"""

_LONG = 0.01
"""Seconds of processor or disk time above which a search was not short."""

_REST = 20
"""After one that was not short, the loop executes none for this many times as long, so that such
searches block it for at most 5% of the time.
"""

_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)  # the first is not everywhere


class Turns:
    """Does work in the turns of one event loop, as long as they have time for it.

    seconds  of each turn; 0 for no work at all
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._begun: float | None = None  # when the first work of this turn did; see `perf_counter`
        self._again = 0.0  # when there is time again after long work

    def has_time(self) -> bool:
        """Return whether this turn has time left, and no search was too long a moment ago."""
        return self._seconds > 0 and not self.is_over() and perf_counter() >= self._again

    def is_over(self) -> bool:
        """Return whether the time of this turn is used up."""
        return self._begun is not None and perf_counter() - self._begun >= self._seconds

    def spend(self, work: Callable[[], T]) -> tuple[T, float]:
        """Do work in the turn at hand; return its result and the seconds it took."""
        usage, begun = getrusage(_THREAD), perf_counter()
        if self._begun is None:
            self._begun = begun
            asyncio.get_running_loop().call_soon(self._next)
        try:
            done = work()
        finally:
            seconds = perf_counter() - begun
            if seconds > _LONG:
                seconds = _own(usage, seconds)
                if seconds > _LONG:
                    self._again = perf_counter() + _REST * seconds
        return done, seconds

    def _next(self) -> None:
        self._begun = None


def _own(before: struct_rusage, seconds: float) -> float:
    """Of the seconds since then, those that were not taken by others: all where pages were read."""
    after = getrusage(_THREAD)
    if after.ru_majflt > before.ru_majflt:  # as from a slow disk
        return seconds
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


Reason = Literal["full", "queue_timeout", "request_timeout"]
"""Why a request was refused, or given up."""

WAITING = 64
"""Requests that may wait."""

QUEUED = 0.1
"""Seconds that the last of the light ones may have to wait, as long as they take of late: where
that is more, fewer may wait.
"""

FEWEST = 16
"""Requests that may wait in any case: one slow request refuses nobody."""

_LATELY = 0.05
"""Weight of the last request in what they take of late."""

HEAVY = 1
"""Requests at work that take long: with the light ones, one thread more than processors, so that
the light ones keep what they had but for a share of one processor.
"""

HEAVY_WAITING = 8
"""Such requests that may wait."""

QUEUE_TIMEOUT = 10.0
"""Seconds that a request waits at most."""

REQUEST_TIMEOUT = 15.0
"""Seconds after which a request that runs is answered without its result."""


def threads() -> int:
    """Return how many requests run at once.

    Compiled code runs beside the interpreter, which only one thread at a time can have. More of
    them than processors answer no more, and the event loop has to wait for each in turn.
    """
    return max(2, processors())


class _Work(Generic[T]):
    """What a thread does for a request, and when it began to; see `perf_counter`."""

    __slots__ = ("_admission", "_work", "begun")

    def __init__(self, work: Callable[[], T], admission: Admission) -> None:
        self._work, self._admission = work, admission
        self.begun: float | None = None

    def __call__(self) -> T:
        self.begun = perf_counter()
        try:
            with deadline_check(self.check):
                return self._work()
        finally:
            self._admission.took(perf_counter() - self.begun)

    def check(self) -> None:
        """Give up what has run for too long."""
        assert self.begun is not None
        self._admission.check_request_timeout(self.begun)


class _PendingCall(Generic[T]):
    """What a request waits for: its work, a timer, or the end. The first to come settles it.

    With `asyncio.wrap_future` and `asyncio.wait` it takes four times as long.
    """

    __slots__ = ("answer", "asked", "loop", "task", "timer", "work")
    timer: asyncio.TimerHandle

    def __init__(self, work: _Work[T], task: Future[T], loop: asyncio.AbstractEventLoop) -> None:
        self.asked = perf_counter()
        self.work = work
        self.task = task
        self.loop = loop
        self.answer: asyncio.Future[None] = loop.create_future()

    def ended(self, _: Future[T]) -> None:
        """Settle it, from whatever thread; a loop that is closed waits for nothing any more."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.settle)

    def settle(self) -> None:
        """Have the request go on."""
        if not self.answer.done():
            self.answer.set_result(None)


class Admission:
    """Runs work in threads of its own for coroutines; safe to share between event loops.

    running   requests at work at the same time
    waiting   requests that may wait for one of them to end
    queue_timeout    seconds a request may wait
    request_timeout  seconds a request may run; its thread continues, and counts as running, up to
                     the next step at which it can be cancelled (`in_time` of
                     `klsa_search.core.deadlines`)
    queued    seconds that may be in front of who waits, see `QUEUED`; any by default
    at_once   seconds of a turn of the event loop for what needs no thread, see `Turns`; none by
              default
    """

    def __init__(
        self,
        *,
        running: int | None = None,
        waiting: int = WAITING,
        queue_timeout: float = QUEUE_TIMEOUT,
        request_timeout: float = REQUEST_TIMEOUT,
        queued: float | None = None,
        at_once: float = 0.0,
    ) -> None:
        running = threads() if running is None else running
        self._pool = ThreadPoolExecutor(running, thread_name_prefix="klsa-request")
        self._running, self._waiting = running, waiting
        self._queued = queued
        self._seconds = 0.0  # that a request takes of late
        self._turns = Turns(at_once)
        self._queue_timeout = queue_timeout
        self._request_timeout = request_timeout
        self._lock = threading.Lock()  # held from counting to submitting
        self._under_way: set[Future[Any]] = set()
        self._errands: set[_PendingCall[Any]] = set()
        self._refused: Counter[Reason] = Counter(dict.fromkeys(get_args(Reason), 0))

    def at_once(self, work: Callable[[], T | None]) -> T | None:
        """Do work here, in the event loop, and return its result; None where it is for a thread.

        For what takes less than to be handed over; by None it may say itself that it does not.
        None, too, where there is no time for it, see `Turns`. Else as `run`.
        """
        if not self._turns.has_time():
            return None
        try:
            with deadline_check(partial(self.check_request_timeout, perf_counter())):
                done, seconds = self._turns.spend(work)
        except RequestTimedOut:
            self._refused["request_timeout"] += 1
            raise
        if done is not None:
            self.took(seconds)
        return done

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work in a thread and return its result, or raise what it raised.

        ServiceBusy where there is no room, or no thread was free in time;
        RequestTimedOut where the work took too long.
        """
        loop = asyncio.get_running_loop()
        timed = _Work(work, self)
        errand = _PendingCall(timed, self._submit(timed), loop)
        self._errands.add(errand)
        errand.task.add_done_callback(errand.ended)
        errand.timer = loop.call_later(
            min(self._queue_timeout, self._request_timeout), self._look, errand
        )
        try:
            await errand.answer
            if errand.task.cancelled():
                raise self._refusal(
                    "queue_timeout", f"no thread was free for {self._queue_timeout:g} s"
                )
            if not errand.task.done():  # its time is over
                self._refused["request_timeout"] += 1
                raise self._late(self._request_timeout)
            try:
                return errand.task.result()
            except RequestTimedOut:
                self._refused["request_timeout"] += 1
                raise
        finally:
            errand.timer.cancel()
            errand.task.cancel()  # unless it runs
            self._errands.discard(errand)

    async def all_of(self, asked: Awaitable[T]) -> T:
        """Wait for what runs several times, as long as for one that waits and runs its longest.

        RequestTimedOut, and it runs no more.
        """
        most = self._queue_timeout + self._request_timeout
        try:
            async with asyncio.timeout(most):
                return await asked
        except TimeoutError:
            self._refused["request_timeout"] += 1
            raise self._late(most) from None

    @property
    def at_work(self) -> bool:
        """Whether a thread still works, for whomever."""
        return bool(self._under_way)

    def check(self) -> None:
        """ServiceBusy where whatever comes now is refused."""
        if len(self._under_way) >= self.places or self._turns.is_over():
            raise self._refusal("full", "as many requests as it takes are under way")

    @property
    def places(self) -> int:
        """How many requests may be under way."""
        waiting = self._waiting
        if self._queued is not None and waiting * self._seconds > self._queued * self._running:
            fewer = int(self._queued * self._running / self._seconds)
            waiting = min(waiting, max(FEWEST, fewer))
        return self._running + waiting

    @property
    def under_way(self) -> int:
        """How many requests are at work or wait."""
        return len(self._under_way)

    def load(self) -> tuple[int, int]:
        """Return how many requests are at work, and how many wait."""
        under_way = list(self._under_way)
        running = sum(task.running() for task in under_way)
        return running, len(under_way) - running

    def refused(self) -> Mapping[Reason, int]:
        """Return how many requests were refused or given up, by reason, since the start."""
        return dict(self._refused)

    def took(self, seconds: float) -> None:
        """Take note of how long a request ran."""
        self._seconds += _LATELY * (seconds - self._seconds)

    def check_request_timeout(self, begun: float) -> None:
        """RequestTimedOut where what began then has run for too long."""
        if self._left(begun) < 0:
            raise self._late(self._request_timeout)

    def _submit(self, work: _Work[T]) -> Future[T]:
        with self._lock:
            self.check()
            task = self._pool.submit(work)
            self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    def _look(self, errand: _PendingCall[Any]) -> None:
        """Give up what has waited or run for too long; else look again when it will have."""
        begun = errand.work.begun
        if begun is not None:
            left = self._left(begun)
            if left <= 0:
                errand.settle()
                return
        else:
            left = errand.asked + self._queue_timeout - perf_counter()
            if left <= 0:
                if errand.task.cancel() or errand.task.done():
                    return  # either way it is told
                left = self._request_timeout  # it begins just now
        errand.timer = errand.loop.call_later(min(left, self._request_timeout), self._look, errand)

    def _left(self, begun: float) -> float:
        """Seconds that what began then may still run."""
        return begun + self._request_timeout - perf_counter()

    def _late(self, seconds: float) -> RequestTimedOut:
        step = "ask for fewer results, or for less to be computed for them"
        if missing_functions()[0]:
            step = "a part of the engine is being compiled, once on this machine: ask again later"
        return RequestTimedOut(f"request timed out after {seconds:g} s; {step}")

    def _refusal(self, reason: Reason, told: str) -> ServiceBusy:
        """Count a refusal, and make what says so."""
        self._refused[reason] += 1
        return self._busy(told)

    def _busy(self, reason: str) -> ServiceBusy:
        return ServiceBusy(f"the service is busy: {reason}; try again in a moment")
