"""Call all partitions in parallel, with hedged requests to replicas, timeouts and partial answers.

A slow or failed call is repeated at another replica.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, Self

from klsa_search.core.deadlines import check_deadline
from klsa_search.errors import PartitionMissing


@dataclass(slots=True)
class PartitionTally:
    """Partitions that answered the searches of a block, over all rounds: a context manager.

    partial  whether the search may go on without some of them
    total    number of partitions
    failed   reasons by number of the partitions that did not answer
    """

    partial: bool = False
    total: int = field(default=0, init=False)
    failed: dict[int, str] = field(default_factory=dict, init=False)
    _before: Token[PartitionTally | None] = field(init=False, repr=False)

    def __enter__(self) -> Self:
        """Count partitions that are called from now on."""
        self._before = _tally.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Count them in the tally before."""
        _tally.reset(self._before)

    def add(self, total: int, failed: dict[int, str]) -> None:
        """Add a round; PartitionMissing if some failed and `partial` is false, or all failed."""
        self.total = total
        self.failed |= failed
        if failed and (not self.partial or len(self.failed) == total):
            step = "" if self.partial else ", or ask for what the others have with partial=true"
            raise missing(failed, total, step)


def missing(failed: Mapping[int, str], total: int, step: str = "") -> PartitionMissing:
    """Return the error of partitions that do not answer."""
    number, reason = next(iter(failed.items()))
    return PartitionMissing(
        f"{len(failed)} of {total} partitions do not answer (partition {number}: {reason}); check "
        f"that all machines of the cluster are up{step}"
    )


_tally: ContextVar[PartitionTally | None] = ContextVar("klsa_tally", default=None)


def current_tally() -> PartitionTally:
    """Return the tally of this thread, or a new one."""
    return _tally.get() or PartitionTally()


HEDGE_DELAY: Final = 0.25
"""Seconds after which a slow call is repeated at another replica."""

TIMEOUT: Final = 10.0
"""Seconds after which a partition counts as failed."""

_POLL_INTERVAL: Final = 0.05  # seconds between checks of the deadline of the request

Call = tuple[Any, ...]
"""Name of a method of `PartitionHost`, and its arguments."""

Reference = Any
"""Reference to a running call; hashable, and equal only to itself."""


class Replicas(Protocol):
    """The processes that serve the partitions of an index.

    partitions  number of partitions; `replicas` processes of each
    """

    partitions: int
    replicas: int

    def call(self, partition: int, replica: int, call: Call) -> Reference:
        """Start a call."""

    def wait(self, running: Sequence[Reference], seconds: float) -> Sequence[Reference]:
        """Wait for all calls, at most so many seconds; return those that ended."""

    def result(self, reference: Reference) -> Any:
        """Return the result of a call that ended; CallFailed if it failed."""


class CallFailed(Exception):
    """A failed call of a replica, with the reason."""


class Responses(NamedTuple):
    """Results by partition, and reasons by failed partition."""

    values: dict[int, Any]
    failed: dict[int, str]


def call_all(
    replicas: Replicas,
    calls: Sequence[Call | None],
    *,
    first: int = 0,
    alone: bool = False,
    timeout: float | None = None,
) -> Responses:
    """Call each partition; None skips it.

    first    replica to call first, so that the load is spread
    alone    call no other replica
    timeout  by default `TIMEOUT`
    """
    started, timeout = time.monotonic(), timeout or TIMEOUT
    answers: dict[int, Any] = {}
    failed: dict[int, str] = {}
    count = 1 if alone else replicas.replicas
    untried = {
        partition: [(first + replica) % replicas.replicas for replica in range(count)]
        for partition, partition_calls in enumerate(calls)
        if partition_calls is not None
    }
    under_way: dict[Reference, int] = {}

    def call(partition: int) -> None:
        call = calls[partition]
        assert call is not None
        under_way[replicas.call(partition, untried[partition].pop(0), call)] = partition

    for partition in untried:
        call(partition)
    hedged = count == 1
    while len(answers) + len(failed) < len(untried):
        check_deadline()
        passed = time.monotonic() - started
        if passed > timeout:
            for partition in untried.keys() - answers.keys() - failed.keys():
                failed[partition] = f"no answer within {timeout:g} s"
            break
        if not hedged and passed > HEDGE_DELAY:
            hedged = True
            for partition in untried.keys() - answers.keys() - failed.keys():
                if untried[partition]:
                    call(partition)
        until = timeout if hedged else HEDGE_DELAY
        seconds = min(max(until - passed, 0.0), _POLL_INTERVAL)
        for reference in replicas.wait(list(under_way), seconds):
            partition = under_way.pop(reference)
            if partition in answers:
                continue
            try:
                answers[partition] = replicas.result(reference)
            except CallFailed as failure:
                if untried[partition]:
                    call(partition)
                elif partition not in under_way.values():
                    failed[partition] = str(failure)
    return Responses(answers, failed)
