"""The indexes of one home, open and current: what the service serves.

A build may finish at any time. The catalog looks at the home when it is used, at most once a
second, opens whatever CURRENT newly names beside the old generation, and then swaps. Whoever is
using the old one keeps it to the end; the last to leave closes it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from klsa_search.errors import IndexNotFound, KlsaError, QueryError, StoreError
from klsa_search.search import Index, open_index
from klsa_search.store import current_generation, indexes_in

INTERVAL = 1.0
"""Seconds between two looks at the home."""


@dataclass(slots=True, eq=False)
class _Opened:
    """One open generation and how many are using it; guarded by the catalog's lock."""

    index: Index
    mark: tuple[object, ...]
    users: int = 0
    retired: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the home holds under one name: an open generation, a reason why not, or both.

    Both: the newest generation cannot be opened, and its forerunner goes on serving.
    """

    opened: _Opened | None
    failure: str | None


@dataclass(frozen=True, slots=True)
class Status:
    """One index as the catalog sees it; `index` is None if it cannot be served."""

    name: str
    index: Index | None
    failure: str | None


class Catalog:
    """The open indexes of a home folder by name; safe to share between threads.

    Opens them all on construction: cost is that of opening, milliseconds each, and of compiling the
    query engine where that was never done before, half a minute. One that cannot be opened is
    reported by `statuses` and does not keep the others from being served. Use as a context manager,
    or `close` it.
    """

    def __init__(self, home: Path, *, interval: float = INTERVAL) -> None:
        self.home = home
        self._interval = interval
        self._entries: Mapping[str, _Entry] = {}
        self._lock = threading.Lock()  # of _entries and of every _Opened; held for moments
        self._looking = threading.Lock()  # held by the one thread that looks at the home
        self._next_look = 0.0
        self._closed = False
        self._look()

    def __enter__(self) -> Catalog:
        """Return itself."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Close."""
        self.close()

    @contextmanager
    def use(self, name: str | None = None) -> Iterator[Index]:
        """Lend an index; it stays open and the same until the block ends.

        `name` may be left out when the home holds one index. QueryError if it was left out and
        there are several, IndexNotFound if there is none of that name, StoreError if the index is
        there and cannot be opened, or the home holds none at all.
        """
        self._look()
        with self._lock:
            opened = self._chosen(name)
            opened.users += 1
        try:
            yield opened.index
        finally:
            self._give_back(opened)

    def statuses(self) -> list[Status]:
        """Return every index of the home by name, those that cannot be opened included."""
        self._look()
        with self._lock:
            return [
                Status(name, entry.opened.index if entry.opened else None, entry.failure)
                for name, entry in sorted(self._entries.items())
            ]

    def close(self) -> None:
        """Serve nothing any more; each index is closed when its last user leaves."""
        with self._looking:
            self._closed = True
            self._swap({})

    def _chosen(self, name: str | None) -> _Opened:
        names = sorted(self._entries)
        if not names:
            raise StoreError(
                f"there is no index in {self.home}: build one with "
                f"klsa-index build SOURCE --name NAME --home {self.home}"
            )
        choices = ", ".join(names)
        if name is None:
            if len(names) > 1:
                raise QueryError(
                    f"index is missing and several are served: choose one of {choices}",
                    field="index",
                )
            name = names[0]
        if name not in self._entries:
            raise IndexNotFound(f"there is no index {name!r}: choose from {choices}", field="index")
        entry = self._entries[name]
        if entry.opened is None:
            raise StoreError(entry.failure or f"index {name!r} is not open", field="index")
        return entry.opened

    def _give_back(self, opened: _Opened) -> None:
        with self._lock:
            opened.users -= 1
            last = opened.retired and opened.users == 0
        if last:
            opened.index.close()

    def _look(self) -> None:
        """Bring the entries up to date, unless that was done just now or is being done."""
        if time.monotonic() < self._next_look or not self._looking.acquire(blocking=False):
            return
        try:
            if not self._closed:
                self._swap({path.name: self._entry(path) for path in self._paths()})
                self._next_look = time.monotonic() + self._interval
        finally:
            self._looking.release()

    def _paths(self) -> list[Path]:
        try:
            return indexes_in(self.home)
        except OSError as failure:
            raise StoreError(
                f"{self.home} cannot be read ({failure}): check its owner and its mode"
            ) from failure

    def _entry(self, path: Path) -> _Entry:
        """Return what is at the path: the generation already open if CURRENT still names it."""
        before = self._entries.get(path.name)
        opened = before.opened if before else None
        try:
            mark = _mark(path)
            if opened is None or opened.mark != mark:
                opened = _Opened(open_index(path), mark)
                opened.index.warm_up()  # at once, after the first time
        except (KlsaError, OSError) as failure:
            return _Entry(opened, str(failure))
        return _Entry(opened, None)

    def _swap(self, entries: Mapping[str, _Entry]) -> None:
        """Serve these entries from now on; close what nobody uses any more."""
        kept = [entry.opened for entry in entries.values()]
        with self._lock:
            gone = [
                entry.opened
                for entry in self._entries.values()
                if entry.opened is not None and entry.opened not in kept
            ]
            self._entries = entries
            for opened in gone:
                opened.retired = True
            idle = [opened for opened in gone if opened.users == 0]
        for opened in idle:
            opened.index.close()


def _mark(path: Path) -> tuple[object, ...]:
    """Return what changes whenever CURRENT is replaced, even by one of the same content."""
    generation = current_generation(path)
    stat = generation.stat()
    return generation.name, stat.st_ino, stat.st_mtime_ns
