"""Call all shards in parallel, with hedged requests to replicas, timeouts and partial answers.

A slow or failed call is repeated at another replica, and answers are validated before use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from klsa_search.core.deadlines import check_deadline
from klsa_search.errors import ShardMissing


@dataclass(slots=True)
class ShardTally:
    """Shards that answered one search, over all rounds.

    partial  whether the search may go on without some of them
    total    number of shards
    failed   reasons by number of the shards that did not answer
    """

    partial: bool = False
    total: int = 0
    failed: dict[int, str] = field(default_factory=dict)

    def add(self, total: int, failed: dict[int, str]) -> None:
        """Add a round; ShardMissing if shards failed and `partial` is false, or all failed."""
        self.total = total
        self.failed |= failed
        if failed and (not self.partial or len(self.failed) == total):
            number, reason = next(iter(failed.items()))
            step = "" if self.partial else ", or ask for what the others have with partial=true"
            raise ShardMissing(
                f"{len(failed)} of {total} shards do not answer (shard {number}: "
                f"{reason}); check that all machines of the cluster are up{step}"
            )


_tally: ContextVar[ShardTally | None] = ContextVar("klsa_tally", default=None)


@contextmanager
def count_shards(*, partial: bool = False) -> Iterator[ShardTally]:
    """Yield a tally of the shards that are called in this thread until the block ends."""
    tally = ShardTally(partial)
    before = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(before)


def current_shard_tally() -> ShardTally:
    """Return the tally of this thread, or a new one."""
    return _tally.get() or ShardTally()


HEDGE_DELAY: Final = 0.25
"""Seconds after which a slow call is repeated at another replica."""

TIMEOUT: Final = 10.0
"""Seconds after which a shard counts as failed."""

_POLL_INTERVAL: Final = 0.05  # seconds between checks of the deadline of the request

Reference = Any
"""Reference to a running call; hashable, and equal only to itself."""


class Replicas(Protocol):
    """The processes that serve the shards of an index.

    shards    number of shards; `replicas` processes of each
    network   network file system that one of them reads the index through, or None
    """

    shards: int
    replicas: int
    network: str | None

    def call(self, shard: int, replica: int, method: str, arguments: Sequence[Any]) -> Reference:
        """Start a call."""

    def wait(self, running: Sequence[Reference], seconds: float) -> Sequence[Reference]:
        """Wait for a call to end, at most so many seconds; return those that ended."""

    def result(self, reference: Reference) -> Any:
        """Return the result of a call that ended; CallFailed if it failed."""


class CallFailed(Exception):
    """A failed call of a replica, with the reason."""


class ShardAnswers(NamedTuple):
    """Answers by shard, and reasons by failed shard."""

    given: dict[int, Any]
    failed: dict[int, str]


def call_all(
    replicas: Replicas,
    method: str,
    arguments: Sequence[Sequence[Any] | None],
    is_valid: Callable[[int, Any], bool],
    *,
    first: int = 0,
    hedge_delay: float = HEDGE_DELAY,
    timeout: float = TIMEOUT,
) -> ShardAnswers:
    """Call a method of each shard with its own arguments; None skips the shard.

    is_valid  whether an answer of a shard is valid, as a broken machine may send anything
    first     replica to call first, so that the load is spread
    """
    started = time.monotonic()
    given: dict[int, Any] = {}
    failed: dict[int, str] = {}
    untried = {
        shard: [(first + each) % replicas.replicas for each in range(replicas.replicas)]
        for shard, own in enumerate(arguments)
        if own is not None
    }
    under_way: dict[Reference, int] = {}

    def call(shard: int) -> None:
        own = arguments[shard]
        assert own is not None
        under_way[replicas.call(shard, untried[shard].pop(0), method, own)] = shard

    for shard in untried:
        call(shard)
    hedged = replicas.replicas == 1
    while len(given) + len(failed) < len(untried):
        check_deadline()
        passed = time.monotonic() - started
        if passed > timeout:
            for shard in untried.keys() - given.keys() - failed.keys():
                failed[shard] = f"no answer within {timeout:g} s"
            break
        if not hedged and passed > hedge_delay:
            hedged = True
            for shard in untried.keys() - given.keys() - failed.keys():
                if untried[shard]:
                    call(shard)
        until = timeout if hedged else hedge_delay
        seconds = min(max(until - passed, 0.0), _POLL_INTERVAL)
        for reference in replicas.wait(list(under_way), seconds):
            shard = under_way.pop(reference)
            if shard in given:
                continue
            try:
                answer = replicas.result(reference)
                reason = "" if is_valid(shard, answer) else "its answer is none"
            except CallFailed as failure:
                reason = str(failure)
            if not reason:
                given[shard] = answer
            elif untried[shard]:
                call(shard)
            elif shard not in under_way.values():
                failed[shard] = reason
    return ShardAnswers(given, failed)
