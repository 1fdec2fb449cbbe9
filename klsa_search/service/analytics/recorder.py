"""Recording of searches and events: a queue in memory, stored in batches in the background.

A search only appends to the queue. If the file cannot be written, the queue fills up and further
searches and events are lost, and counted. A process that dies loses its queue: some two seconds.
"""

from __future__ import annotations

import logging
import random
import re
import threading
import time
from collections import deque
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final
from unicodedata import normalize

from klsa_search.errors import KlsaError
from klsa_search.search.pages.results import SearchResults
from klsa_search.service.analytics.store import ID_BITS, EventRow, SearchRow, Store
from klsa_search.service.background import BackgroundWork, PeriodicTask
from klsa_search.storage.maintenance import indexes_in

MAX_QUERY: Final = 200  # characters of a query that are kept
MAX_QUEUE: Final = 20_000  # searches, and events, that wait to be stored; further ones are lost
INTERVAL: Final = 2.0  # seconds between two batches
_BATCH: Final = 5_000
_ROLL_UP_INTERVAL: Final = 3600.0

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")

_log = logging.getLogger(__name__)


def normalised(query: str) -> str:
    """Return a query as it is counted: compatible characters, case folded, single blanks."""
    return _normalised(query[: 2 * MAX_QUERY])


@lru_cache(4096)
def _normalised(query: str) -> str:
    text = normalize("NFKC", _CONTROL.sub(" ", query)).casefold()
    return " ".join(text.split())[:MAX_QUERY].rstrip()


class Recorder(BackgroundWork):
    """Records the searches and events of one process; `record` and `add` are safe in threads.

    days          days of counts that are kept
    min_searches  searches of a query in a day from which its text is kept
    As a context manager it stores what was recorded every two seconds, and once more at the end.
    """

    def __init__(self, home: Path, *, days: int, min_searches: int) -> None:
        self.home = home
        self.days, self.min_searches = days, min_searches
        self.lost = 0
        self.watch = PeriodicTask("analytics", self.flush, INTERVAL)
        self._store = Store(home)
        self._searches: deque[SearchRow] = deque()
        self._events: deque[EventRow] = deque()
        self._flushing = threading.Lock()
        self._may_settle = True
        self._next_roll_up = 0.0  # in seconds of `monotonic`, as the clock may be set back

    @property
    def waiting(self) -> int:
        """Number of searches and events that are not stored yet."""
        return len(self._searches) + len(self._events)

    def record(
        self, index: str, query: str, results: SearchResults, seconds: float, *, typing: bool
    ) -> str | None:
        """Record a search; return its ID, or None for a blank query or if it is lost.

        typing  whether it is a search while the user types
        Cost: some 2 µs, and 3 µs more for a new query.
        """
        text = normalised(query)
        if not text:
            return None
        if len(self._searches) >= MAX_QUEUE:
            self.lost += 1
            return None
        # Not a secret: every key that may search may send events. `secrets` costs a system call.
        chance = random.getrandbits(ID_BITS)
        id_ = (time.time_ns() // 1_000_000) << ID_BITS | chance
        read = results.interpretation
        self._searches.append(
            SearchRow(
                id_,
                index,
                text,
                results.total,
                results.good_match,
                bool(read.corrections) and not read.corrections.keys() <= set(read.unknown),
                bool(read.synonyms),
                int(1e6 * seconds),
                "page" if results.offset else "typing" if typing else "counted",
            )
        )
        return f"{id_:016x}"

    def add(self, event: EventRow) -> None:
        """Record an event."""
        if len(self._events) >= MAX_QUEUE:
            self.lost += 1
        else:
            self._events.append(event)

    def delete(self, index: str) -> None:
        """Delete all searches and events of an index; StoreError."""
        self.flush()
        with self._flushing:
            self._store.forget(index)

    def forget(self, index: str) -> None:
        """Delete those of a deleted index; a failure is logged, and repaired within an hour."""
        try:
            self.delete(index)
        except KlsaError as failure:
            self.watch.report(failure)

    def flush(self) -> None:
        """Store what was recorded; StoreError if that fails, and it is stored later."""
        with self._flushing:
            while self._searches or self._events:
                searches = [
                    self._searches.popleft() for _ in range(min(_BATCH, len(self._searches)))
                ]
                events = [self._events.popleft() for _ in range(min(_BATCH, len(self._events)))]
                try:
                    self._store.add(searches, events)
                except BaseException:
                    self._searches.extendleft(reversed(searches))
                    self._events.extendleft(reversed(events))
                    raise
                self._may_settle = self._may_settle or any(
                    row.status == "typing" for row in searches
                )
            now = time.time()
            if self._may_settle:
                self._may_settle = self._store.settle(now)
            if time.monotonic() >= self._next_roll_up:
                self._store.roll_up(
                    datetime.fromtimestamp(now, UTC),
                    days=self.days,
                    least=self.min_searches,
                    indexes=[path.name for path in indexes_in(self.home)],
                )
                self._next_roll_up = time.monotonic() + _ROLL_UP_INTERVAL

    def close(self) -> None:
        """Stop the thread, and store what was recorded."""
        self.watch.stop()
        try:
            self.flush()
        except KlsaError as failure:
            self.lost += self.waiting
            _log.warning("lost %d searches and events: %s", self.waiting, failure.message)
        with self._flushing:
            self._store.close()
