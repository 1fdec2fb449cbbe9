"""The open indexes of an index directory.

A thread scans the directory twice a second. A new generation is opened while the old one is
served, then swapped in. Calls that use the old one keep it; it is closed when the last of them
ends. Each index is opened and refreshed in a thread of a pool, so that neither requests nor other
indexes wait. What a process of the service has changed is read again at the next use: see
`service.changes`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic

from klsa_search.core.wording import suggestion
from klsa_search.errors import IndexDamaged, IndexNotFound, KlsaError, QueryError, StoreError
from klsa_search.search.index import Index, open_index
from klsa_search.service.background import PeriodicTask
from klsa_search.service.changes import ChangeNotices
from klsa_search.service.served_index import (
    FAULTS,
    Entry,
    IndexOpener,
    ServedIndex,
    Status,
    generation_mark,
    open_and_warm_up,
    reason_not_opened,
)
from klsa_search.storage.aliases import aliases_in, delete_alias, set_alias
from klsa_search.storage.checksums import ChecksumCheck
from klsa_search.storage.maintenance import indexes_in

INTERVAL = 0.5  # seconds between two scans of the index directory
MAX_PARALLEL = 8  # maximum number of indexes that are opened or refreshed at the same time
_PAUSE_FACTOR = 9
"""A failed attempt to open or refresh is repeated after this many times as long as it took."""

_log = logging.getLogger(__name__)


class _Lease:
    """Keeps a generation open until its block ends; the block gets a snapshot.

    A generator would take as long as the rest of a lease.
    """

    __slots__ = ("_release", "opened")

    def __init__(self, opened: ServedIndex, release: Callable[[ServedIndex], None]) -> None:
        self.opened, self._release = opened, release

    def __enter__(self) -> Index:
        try:
            return self.opened.index.snapshot()
        except BaseException:
            self._release(self.opened)
            raise

    def __exit__(self, kind: object, failure: BaseException | None, traceback: object) -> None:
        if isinstance(failure, IndexDamaged):
            if self.opened.damage is None:
                _log.warning("%s", failure.message)
            self.opened.damage = failure.message
        self._release(self.opened)


class OpenIndexes(AbstractContextManager["OpenIndexes"]):
    """The open indexes of an index directory by name; safe to share between threads.

    home      index directory
    interval  seconds between two scans; 0: every use scans, and there is no thread
    opener    opens the index at a path
    Opens all indexes on construction, in milliseconds each. An index that cannot be opened is
    reported by `statuses`; the others are served. StoreError if the directory cannot be read.
    Use as a context manager, or `close` it.
    """

    def __init__(
        self, home: Path, *, interval: float = INTERVAL, opener: IndexOpener = open_index
    ) -> None:
        self.home = home
        self._opener = opener
        self._interval = interval
        self._entries: dict[str, Entry] = {}
        self._aliases: dict[str, str] = {}
        self._changes = ChangeNotices(home)
        self._lock = threading.RLock()  # of _entries and every ServedIndex
        self._scan_lock = threading.Lock()  # while the directory is listed
        self._listing = threading.Lock()  # while that is waited for
        self._updates: dict[str, Future[None]] = {}  # by index; guarded by _scan_lock
        self._pool = ThreadPoolExecutor(MAX_PARALLEL, thread_name_prefix="klsa-opening")
        self._closed = threading.Event()
        self._unreadable: str | None = None
        self._alias_fault = ""
        self._log_failures = False  # failures of the first scan are in `statuses`
        self._listed = self._changes.version(None)  # version of the directory when it was listed
        self.scan()
        self._log_failures = True
        if self._unreadable is not None:
            raise StoreError(self._unreadable)
        self.watch = PeriodicTask("catalog", self.start_scan, interval)
        if interval > 0:
            self.watch.start()

    def __exit__(self, *failure: object) -> None:
        """Close."""
        self.close()

    def use(self, name: str | None = None) -> AbstractContextManager[Index]:
        """Return a context with a snapshot of an index, which stays open until the block ends.

        name  may be None if the directory has one index
        QueryError if it is None and there are several, IndexNotFound for an unknown name,
        StoreError if the index cannot be opened, or there is none. An IndexDamaged that leaves the
        block is reported by `statuses` until another generation is loaded.
        """
        self.catch_up(name)
        return self._lease(name)

    def use_if_current(self, name: str | None = None) -> AbstractContextManager[Index | None]:
        """Return the same as `use`, or None if the index would have to apply writes first."""
        if self.is_listed:
            self._scan_without_thread()
            with self._lock:
                index = self._index_of(name)
                if index is None or self._entries[index].version == self._changes.version(index):
                    return self._lease(name)
        return nullcontext()

    @contextmanager
    def writing(self, name: str) -> Iterator[Index]:
        """Yield an index to write to; later uses find what was written. See `use`."""
        self.catch_up(name)
        lease = self._lease(name)
        with lease:
            try:
                yield lease.opened.index
            finally:
                self._changes.announce(lease.opened.index.name)

    def load(self, name: str) -> None:
        """Open the new generation of an index; later uses, in all processes, wait for theirs."""
        self._wait_for_updates([name])  # it may have begun before
        self._submit_updates([name])
        self._wait_for_updates([name])
        self._changes.announce(name)

    def catch_up(self, name: str | None = None) -> None:
        """Read an index again if it was changed, and the directory; None: the only index."""
        self._scan_without_thread()
        self.list_again()
        self._update_now([name])

    def catch_up_all(self) -> None:
        """Read all indexes again that were changed, and the directory."""
        self.list_again()
        self._update_now(list(self._entries))

    @property
    def is_listed(self) -> bool:
        """Whether no index was created or deleted, and no alias changed. Cost: 0.5 µs."""
        return self._listed == self._changes.version(None)

    def list_again(self) -> None:
        """Read the directory again if an index was created or deleted, or an alias changed."""
        if not self.is_listed:
            with self._listing:
                version = self._changes.version(None)
                if version != self._listed:
                    for _ in range(2):  # an update that runs already may have begun before it
                        wait(self._submit_updates(()))
                    self._listed = version

    def is_current(self, name: str | None) -> bool:
        """Return whether `catch_up` has nothing to do. Cost: 2 µs."""
        name = self._index_of(name)
        entry = None if name is None else self._entries.get(name)
        return self.is_listed and (entry is None or entry.version == self._changes.version(name))

    def _update_now(self, names: Sequence[str | None]) -> None:
        """Update the entries that were changed, and wait."""
        for _ in range(2):  # an update that runs already may have begun before the change
            indexes = {index for name in names if (index := self._index_of(name)) is not None}
            outdated = [name for name in indexes if not self.is_current(name)]
            if outdated:
                self._submit_updates(outdated)
                self._wait_for_updates(outdated)

    def _index_of(self, name: str | None) -> str | None:
        """Return the index of a name or alias, or the only index; None if there is none."""
        with self._lock:
            if name is None:
                return next(iter(self._entries)) if len(self._entries) == 1 else None
            name = self._aliases.get(name, name)
            return name if name in self._entries else None

    def _lease(self, name: str | None) -> _Lease:
        """Return a lease of an index, to be used as a context; errors of `use`."""
        with self._lock:
            opened = self._select(name)
            opened.users += 1
            return _Lease(opened, self._release)

    def statuses(self) -> list[Status]:
        """Return all indexes by name, including those that cannot be opened."""
        self._scan_without_thread()
        with self._lock:
            return [Status.of(name, entry) for name, entry in sorted(self._entries.items())]

    def aliases(self) -> dict[str, str]:
        """Return the index of each alias."""
        self._scan_without_thread()
        return self._aliases

    def refresh(self, name: str) -> None:
        """Open an index that was just created, or close one that was deleted, and wait."""
        self._changes.announce(name)
        self._changes.announce(None)
        self.catch_up(name)

    def set_alias(self, name: str, index: str) -> None:
        """Point an alias at an index: see `klsa_search.storage.catalog.set_alias`."""
        set_alias(self.home, name, index)
        self._changes.announce(None)

    def delete_alias(self, name: str) -> None:
        """Delete an alias: see `klsa_search.storage.catalog.delete_alias`."""
        delete_alias(self.home, name)
        self._changes.announce(None)

    @property
    def is_busy(self) -> bool:
        """Whether an index is being opened or refreshed."""
        with self._scan_lock:
            return any(not future.done() for future in self._updates.values())

    def close(self) -> None:
        """Stop serving; each index is closed when its last user leaves."""
        self.watch.stop()
        with self._scan_lock:
            self._closed.set()
            self._pool.shutdown(wait=False, cancel_futures=True)
        with ExitStack() as closing:
            for name in list(self._entries):
                closing.callback(self._replace, name, None)

    def _select(self, name: str | None) -> ServedIndex:
        index = self._index_of(name)
        if index is None:
            raise self._unknown(name)
        entry = self._entries[index]
        if entry.opened is None:
            raise StoreError(entry.failure or f"index {index!r} is not open", field="index")
        if entry.opened.checksums.failure is not None:  # it could give wrong answers
            raise IndexDamaged(entry.opened.checksums.failure, field="index")
        return entry.opened

    def _unknown(self, name: str | None) -> KlsaError:
        """Return the error for a name of no index, or for none where there are several."""
        choices = ", ".join(sorted(self._entries))
        if name is not None:
            target = self._aliases.get(name, name)
            near = suggestion(target, self._entries)
            step = f"{near}choose from {choices}" if choices else "create it with POST /indexes"
            return IndexNotFound(f"no index `{target}`; {step}", field="index")
        if choices:
            return QueryError(
                f"`index` is required, because several indexes are served; choose one of {choices}",
                field="index",
            )
        return StoreError(
            "no index to search; create one with POST /indexes, or on the machine of the "
            "service with `klsa-index build SOURCE --name NAME`"
        )

    def _release(self, opened: ServedIndex) -> None:
        with self._lock:
            opened.users -= 1
            last = opened.retired and opened.users == 0
        if last:
            opened.close()

    def _scan_without_thread(self) -> None:
        if self._interval <= 0:
            self.scan()

    def scan(self) -> None:
        """Update all entries, except those that are being updated, and wait."""
        for future in self._submit_updates():
            with suppress(CancelledError):  # they were closed
                future.result()

    def _wait_for_updates(self, names: Collection[str]) -> None:
        with self._scan_lock:
            updates = [self._updates[name] for name in names if name in self._updates]
        wait(updates)

    def start_scan(self) -> None:
        """Start to update all entries; exceptions are reported."""
        for future in self._submit_updates():
            future.add_done_callback(self._report)

    def _report(self, future: Future[None]) -> None:
        failure = None if future.cancelled() else future.exception()
        if failure is not None:
            self.watch.report(failure)

    def _submit_updates(self, names: Collection[str] | None = None) -> list[Future[None]]:
        """Submit an update of each entry that is not being updated, and return the updates.

        names  of the entries, besides new ones and those that are gone; the result has those that
               run already too. By default all
        """
        with self._scan_lock:
            if self._closed.is_set():
                return []
            try:
                paths = {path.name: path for path in indexes_in(self.home)}
            except OSError as failure:
                # Open indexes are still served.
                reason = f"cannot read `{self.home}` ({failure}); check its owner and permissions"
                if self._log_failures and reason != self._unreadable:
                    _log.warning("%s", reason)
                self._unreadable = reason
                return []
            self._unreadable = None
            try:
                self._aliases, fault = aliases_in(self.home), ""
            except StoreError as failure:  # those that were read before stay
                fault = failure.message
            if fault not in ("", self._alias_fault):
                _log.warning("%s", fault)
            self._alias_fault = fault
            self._updates = {n: update for n, update in self._updates.items() if not update.done()}
            wanted = sorted(
                paths.keys() | self._entries.keys()
                if names is None
                else (paths.keys() ^ self._entries.keys()) | {*names}
            )
            new = {
                name: self._pool.submit(self._update, name, paths.get(name))
                for name in wanted
                if name not in self._updates
            }
            self._updates |= new
            return list(new.values() if names is None else map(self._updates.__getitem__, wanted))

    def _update(self, name: str, path: Path | None) -> None:
        """Serve the index at a path under a name, or nothing if the path is None."""
        version = self._changes.version(name)
        with self._lock:
            before = self._entries.get(name, Entry())
            if before.opened is not None:
                before.opened.users += 1  # so that it is not closed while it is refreshed
        try:
            entry = None if path is None else self._entry(path, before)
            if entry is not None and entry.failure is None:  # else the next use reads it again
                entry = replace(entry, version=version)
            self._replace(name, entry)
        finally:
            if before.opened is not None:
                self._release(before.opened)

    def _entry(self, path: Path, before: Entry) -> Entry:
        """Return the entry of a path, with the open generation if CURRENT still names it."""
        opened, mark, begin = before.opened, None, monotonic()
        try:
            mark = generation_mark(path)
            if before.failed_mark == mark and begin < before.retry_at:
                return before
            if opened is not None and opened.mark == mark and opened.checksums.failure is None:
                opened.index.refresh()
                return Entry(opened)
            index = open_and_warm_up(path, self._opener)
            return Entry(ServedIndex(index, mark, ChecksumCheck(index.generations)))
        except FAULTS as fault:
            reason = reason_not_opened(path, fault)
            if self._log_failures and reason != before.failure:
                _log.warning("%s", reason, exc_info=not isinstance(fault, KlsaError | OSError))
            now = monotonic()
            is_refresh = opened is not None and opened.mark == mark
            longest = (1 if is_refresh else 60) * self._interval
            pause = min(_PAUSE_FACTOR * (now - begin), longest)
            return Entry(opened, reason, mark, now + pause, before.version)

    def _replace(self, name: str, entry: Entry | None) -> None:
        """Replace the entry of a name; the old generation is closed when unused."""
        with self._lock:
            before = self._entries.pop(name, None)
            if entry is not None and not self._closed.is_set():
                self._entries[name] = entry
            served = self._entries.get(name, Entry()).opened
            opened = {holder.opened for holder in (before, entry) if holder} - {served}
            retired = [index for index in opened if index is not None and not index.retired]
            for index in retired:
                index.retired = True
            idle = [index for index in retired if index.users == 0]
        with ExitStack() as closing:  # closes the others if one fails
            for index in idle:
                closing.callback(index.close)
