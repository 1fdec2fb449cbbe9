"""The indexes of one home, open and current: what the service serves.

A build may finish at any time. A thread of the catalog looks at the home twice a second. Whatever
CURRENT newly names is opened alongside the old generation, and then swapped. Calls that use the
old one keeps it to the end; the last to leave closes it. Neither a request nor another index waits
for an index that is being opened or refreshed: each is looked at in a thread of its own.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from klsa_search.errors import IndexDamaged, IndexNotFound, KlsaError, QueryError, StoreError
from klsa_search.search.index import Index
from klsa_search.search.opening import open_index
from klsa_search.service.background import PeriodicTask
from klsa_search.service.opening import FAULTS, Opening, explain, mark_of, open_warm
from klsa_search.storage.aliases import aliases_in, remove_alias, set_alias
from klsa_search.storage.checksums import ChecksumCheck
from klsa_search.storage.maintenance import indexes_in

INTERVAL = 0.5
"""Seconds between two looks at the home."""

TOGETHER = 8
"""Indexes that are opened or refreshed at the same time, at most."""

_REST = 9
"""A generation that could not be opened is left alone for so many times as long as that took."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Opened:
    """One open generation and how many are using it; guarded by the catalog's lock."""

    index: Index
    mark: object
    sums: ChecksumCheck
    users: int = 0
    known: int = 0  # how many of the writes through the catalog it has taken up
    retired: bool = False
    damage: str | None = None

    def close(self) -> None:
        self.sums.stop()
        self.index.close()


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the home holds under one name: an open generation, a reason why not, or both.

    Both: the newest generation, of the mark `tried`, cannot be opened, and its forerunner goes on
    serving; or it is the one that is open, and proved damaged. It is tried again from the time
    `again` on.
    """

    opened: _Opened | None = None
    failure: str | None = None
    tried: object = None
    again: float = 0.0


@dataclass(frozen=True, slots=True)
class Status:
    """One index as the catalog sees it.

    `index` is None if it cannot be served, else pinned to what is served now: its facts and arrays
    can be read however long ago it was replaced; documents can be looked up with a lease alone.
    `sums` is how far its files were compared with their sums since it was opened: see `ChecksumCheck`;
    `damaged` whether what is served proved so.
    """

    name: str
    index: Index | None
    failure: str | None
    sums: str | None = None
    damaged: bool = False

    @classmethod
    def of(cls, name: str, entry: _Entry) -> Status:
        """Tell what the home holds under a name."""
        opened = entry.opened
        if opened is None:
            return cls(name, None, entry.failure)
        sums = opened.sums
        if sums.failure is not None:
            return cls(name, None, sums.failure, sums.state, damaged=True)
        damage = opened.damage
        reason = entry.failure or damage
        index = opened.index.snapshot()
        return cls(name, index, reason, sums.state, damaged=damage is not None)


class Catalog:
    """The open indexes of a home folder by name; safe to share between threads.

    Opens them all on construction: cost is that of opening, milliseconds each, and of compiling the
    query engine where that was never done before, half a minute. One that cannot be opened is
    reported by `statuses` and does not keep the others from being served; StoreError if the home
    itself cannot be read. With `interval` 0 no thread looks at the home, but every use does.
    `opened` opens the index at a path.
    Use as a context manager, or `close` it.
    """

    def __init__(
        self, home: Path, *, interval: float = INTERVAL, opened: Opening = open_index
    ) -> None:
        self.home = home
        self._open = opened
        self._interval = interval
        self._entries: dict[str, _Entry] = {}
        self._aliases: dict[str, str] = {}
        self._lock = threading.Lock()  # of _entries and of every _Opened; held for moments
        self._looking = threading.Lock()  # held while the home is listed
        self._under_way: dict[str, Future[None]] = {}  # by index; guarded by _looking
        self._pool = ThreadPoolExecutor(TOGETHER, thread_name_prefix="klsa-opening")
        self._closed = threading.Event()
        self._unreadable: str | None = None
        self._writes: Counter[str] = Counter()  # through the catalog, those that failed too
        self._told = False  # at first by `statuses`, later by the log
        self._look()
        self._told = True
        if self._unreadable is not None:
            raise StoreError(self._unreadable)
        self.watch = PeriodicTask("catalog", self._begin_look, interval)
        if interval > 0:
            self.watch.start()

    def __enter__(self) -> Catalog:
        """Return itself."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Close."""
        self.close()

    @contextmanager
    def use(self, name: str | None = None) -> Iterator[Index]:
        """Lend an index as it is now; it stays open and the same until the block ends.

        `name` may be left out when the home holds one index. QueryError if it was left out and
        there are several, IndexNotFound if there is none of that name, StoreError if the index is
        there and cannot be opened, or the home holds none at all. IndexDamaged that leaves the
        block is reported by `statuses` until another generation is taken up.
        """
        with self._lent(name) as opened:
            writes = self._writes[opened.index.name]
            if opened.known != writes:  # opened in the place of another, while that was written to
                opened.index.refresh()
                opened.known = writes
            yield opened.index.snapshot()

    @contextmanager
    def at_hand(self, name: str | None = None) -> Iterator[Index | None]:
        """Lend an index as `use` does, or None where that would take up what was written first."""
        with self._lent(name) as opened:
            behind = opened.known != self._writes[opened.index.name]
            yield None if behind else opened.index.snapshot()

    @contextmanager
    def writing(self, name: str) -> Iterator[Index]:
        """Lend an index to write to; who uses it afterwards finds what was written. See `use`."""
        with self._lent(name) as opened:
            name = opened.index.name
            try:
                yield opened.index
            finally:
                with self._lock:
                    self._writes[name] += 1
                    opened.known += opened.known == self._writes[name] - 1

    @contextmanager
    def _lent(self, name: str | None) -> Iterator[_Opened]:
        self._look_first()
        with self._lock:
            opened = self._chosen(name)
            opened.users += 1
        try:
            yield opened
        except IndexDamaged as damage:
            if opened.damage is None:
                _log.warning("%s", damage.message)
            opened.damage = damage.message
            raise
        finally:
            self._give_back(opened)

    def statuses(self) -> list[Status]:
        """Return every index of the home by name, those that cannot be opened included."""
        self._look_first()
        with self._lock:
            return [Status.of(name, entry) for name, entry in sorted(self._entries.items())]

    def aliases(self) -> dict[str, str]:
        """Return the names of indexes that aliases stand for, by alias."""
        self._look_first()
        return self._aliases

    def set_alias(self, name: str, index: str) -> None:
        """Have a name stand for an index: see `klsa_search.storage.aliases.set_alias`."""
        set_alias(self.home, name, index)
        self._aliases = aliases_in(self.home)

    def remove_alias(self, name: str) -> None:
        """Remove an alias: see `klsa_search.storage.aliases.remove_alias`."""
        remove_alias(self.home, name)
        self._aliases = aliases_in(self.home)

    @property
    def at_work(self) -> bool:
        """Whether an index is being opened or refreshed."""
        with self._looking:
            return any(not future.done() for future in self._under_way.values())

    def close(self) -> None:
        """Serve nothing any more; each index is closed when its last user leaves."""
        self.watch.stop()
        with self._looking:
            self._closed.set()
            self._pool.shutdown(wait=False, cancel_futures=True)
        with ExitStack() as closing:
            for name in list(self._entries):
                closing.callback(self._put, name, None)

    def _chosen(self, name: str | None) -> _Opened:
        names = sorted(self._entries)
        if not names:
            raise StoreError(
                "no index to search; build one on the machine of the service with "
                "`klsa-index build SOURCE --name NAME`"
            )
        choices = ", ".join(names)
        if name is None:
            if len(names) > 1:
                raise QueryError(
                    f"index is missing, and several are served; choose one of {choices}",
                    field="index",
                )
            name = names[0]
        name = self._aliases.get(name, name)
        if name not in self._entries:
            raise IndexNotFound(f"no index {name!r}; choose from {choices}", field="index")
        entry = self._entries[name]
        if entry.opened is None:
            raise StoreError(entry.failure or f"index {name!r} is not open", field="index")
        if entry.opened.sums.failure is not None:  # rather no answer than a wrong one
            raise IndexDamaged(entry.opened.sums.failure, field="index")
        return entry.opened

    def _give_back(self, opened: _Opened) -> None:
        with self._lock:
            opened.users -= 1
            last = opened.retired and opened.users == 0
        if last:
            opened.close()

    def _look_first(self) -> None:
        if self._interval <= 0:
            self._look()

    def _look(self) -> None:
        """Bring the entries up to date, but for those at which another look is."""
        for future in self._begun():
            with suppress(CancelledError):  # the catalog was closed
                future.result()

    def _begin_look(self) -> None:
        """Begin to bring the entries up to date; what that raises is reported."""
        for future in self._begun():
            future.add_done_callback(self._report)

    def _report(self, future: Future[None]) -> None:
        failure = None if future.cancelled() else future.exception()
        if failure is not None:
            self.watch.report(failure)

    def _begun(self) -> list[Future[None]]:
        """Begin to bring each entry up to date, unless an earlier look still does."""
        with self._looking:
            if self._closed.is_set():
                return []
            try:
                self._aliases = aliases_in(self.home)
                paths = {path.name: path for path in indexes_in(self.home)}
            except OSError as failure:
                # What is open goes on being served.
                reason = f"cannot read `{self.home}` ({failure}); check its owner and permissions"
                if self._told and reason != self._unreadable:
                    _log.warning("%s", reason)
                self._unreadable = reason
                return []
            self._unreadable = None
            self._under_way = {n: each for n, each in self._under_way.items() if not each.done()}
            new = {
                name: self._pool.submit(self._bring_up_to_date, name, paths.get(name))
                for name in sorted(paths.keys() | self._entries.keys())
                if name not in self._under_way
            }
            self._under_way |= new
            return list(new.values())

    def _bring_up_to_date(self, name: str, path: Path | None) -> None:
        """Serve what is at the path under a name from now on, or nothing if there is no path."""
        with self._lock:
            before = self._entries.get(name, _Entry())
            if before.opened is not None:
                before.opened.users += 1  # so that it is not closed while it is refreshed
        try:
            self._put(name, None if path is None else self._entry(path, before))
        finally:
            if before.opened is not None:
                self._give_back(before.opened)

    def _entry(self, path: Path, before: _Entry) -> _Entry:
        """Return what is at the path: the generation already open if CURRENT still names it."""
        opened, mark, begun = before.opened, None, monotonic()
        try:
            mark = mark_of(path)
            if opened is not None and opened.mark == mark and opened.sums.failure is None:
                opened.index.refresh()
                return _Entry(opened)
            if before.tried == mark and begun < before.again:
                return before
            index = open_warm(path, self._open)
            return _Entry(_Opened(index, mark, ChecksumCheck(index.path, index.manifest)))
        except FAULTS as fault:
            reason = explain(path, fault)
            if self._told and reason != before.failure:
                _log.warning("%s", reason, exc_info=not isinstance(fault, KlsaError | OSError))
            now = monotonic()
            return _Entry(
                opened, reason, mark, now + min(_REST * (now - begun), 60 * self._interval)
            )

    def _put(self, name: str, entry: _Entry | None) -> None:
        """Serve this under a name from now on; the old one is closed when unused."""
        with self._lock:
            before = self._entries.pop(name, None)
            if entry is not None and not self._closed.is_set():
                self._entries[name] = entry
            served = self._entries.get(name, _Entry()).opened
            opened = {each.opened for each in (before, entry) if each is not None} - {served, None}
            gone = [each for each in opened if each is not None and not each.retired]
            for each in gone:
                each.retired = True
            idle = [each for each in gone if each.users == 0]
        with ExitStack() as closing:  # one that fails keeps no other from it
            for each in idle:
                closing.callback(each.close)
