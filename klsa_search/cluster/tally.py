"""Which shards answered, for the answer, and whether partial answers are allowed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

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
