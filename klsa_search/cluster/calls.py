"""Call all shards at once, with replicas, deadlines and partial answers.

A slow call is repeated elsewhere, a failed one is not waited for, and what comes back is
looked at before it is used: no request hangs because a machine does.
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
class Tally:
    """Shards that were asked for one answer, in however many rounds.

    partial  whether an answer may do without some of them
    total    how many there are; `failed` those that gave no answer, and why
    """

    partial: bool = False
    total: int = 0
    failed: dict[int, str] = field(default_factory=dict)

    def note(self, total: int, failed: dict[int, str]) -> None:
        """Count a round; ShardMissing where one may not be missing, or all are."""
        self.total = total
        self.failed |= failed
        if failed and (not self.partial or len(self.failed) == total):
            number, reason = next(iter(failed.items()))
            step = "" if self.partial else ", or ask for what the others have with partial=true"
            raise ShardMissing(
                f"{len(failed)} of {total} shards do not answer (shard {number}: "
                f"{reason}); check that all machines of the cluster are up{step}"
            )


_tally: ContextVar[Tally | None] = ContextVar("klsa_tally", default=None)


@contextmanager
def tallied(*, partial: bool = False) -> Iterator[Tally]:
    """Tell which shards are asked in this thread until the block ends."""
    tally = Tally(partial)
    before = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(before)


def current_tally() -> Tally:
    """The tally of this thread; an unused one if there is none."""
    return _tally.get() or Tally()


HEDGE: Final = 0.25
"""Seconds after which a second replica is asked for the same."""

PATIENCE: Final = 10.0
"""Seconds after which a shard counts as missing."""

_GLANCE: Final = 0.05  # seconds between looks at the deadline of the request

Reference = Any
"""Of a call that is under way; equal to none but itself."""


class Replicas(Protocol):
    """The processes that have shards, some of each.

    network  the network file system that one of them reads the index through; None without
    """

    shards: int
    replicas: int
    network: str | None

    def call(self, shard: int, replica: int, method: str, arguments: Sequence[Any]) -> Reference:
        """Begin a call."""

    def wait(self, under_way: Sequence[Reference], seconds: float) -> Sequence[Reference]:
        """Wait until one of them ends, so long at most; which have."""

    def result(self, reference: Reference) -> Any:
        """What a call that ended gave; `CallFailed` where it gave nothing."""


class CallFailed(Exception):
    """A call of a replica that failed, and why."""


class Answers(NamedTuple):
    """What was answered, by shard, and why others did not answer."""

    given: dict[int, Any]
    failed: dict[int, str]


def call_all(
    replicas: Replicas,
    method: str,
    arguments: Sequence[Sequence[Any] | None],
    fits: Callable[[int, Any], bool],
    *,
    first: int = 0,
    hedge: float = HEDGE,
    patience: float = PATIENCE,
) -> Answers:
    """Call a method of every shard, with arguments of its own; of none that has None.

    fits   whether an answer is one: what a broken machine sends must not be used
    first  the replica that is asked first, so that all have something to do
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
        if passed > patience:
            for shard in untried.keys() - given.keys() - failed.keys():
                failed[shard] = f"no answer within {patience:g} s"
            break
        if not hedged and passed > hedge:
            hedged = True
            for shard in untried.keys() - given.keys() - failed.keys():
                if untried[shard]:
                    call(shard)
        until = patience if hedged else hedge
        seconds = min(max(until - passed, 0.0), _GLANCE)
        for reference in replicas.wait(list(under_way), seconds):
            shard = under_way.pop(reference)
            if shard in given:
                continue
            try:
                answer = replicas.result(reference)
                reason = "" if fits(shard, answer) else "its answer is none"
            except CallFailed as failure:
                reason = str(failure)
            if not reason:
                given[shard] = answer
            elif untried[shard]:
                call(shard)
            elif shard not in under_way.values():
                failed[shard] = reason
    return Answers(given, failed)
