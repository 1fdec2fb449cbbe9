"""klsa-index sync --watch: synchronise an index whenever its source changes.

Each sync compares the whole source with the index, so that no missed or repeated event matters;
events only say when to compare.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from os import sep
from pathlib import Path
from typing import Any, Final

from klsa_search.cli.main import explain
from klsa_search.cli.output import echo
from klsa_search.collection.file_cache import FileCache
from klsa_search.collection.opened_collection import OpenedCollection
from klsa_search.errors import CollectionError, IndexNotFound, KlsaError
from klsa_search.search.index import Index
from klsa_search.search.sync import SyncResult

_QUIET: Final = 100
"""Milliseconds without a change after which changes are taken together."""

_LONGEST: Final = 800
"""Milliseconds of changes that are taken together, at most."""

_TICK: Final = 500
"""Milliseconds after which the loop runs without a change, to try again after a failure."""


def follow(
    index: Index,
    collection: OpenedCollection,
    ticks: Iterable[bool],
    report: Callable[[SyncResult], None],
    *,
    max_delete: str | None = None,
) -> None:
    """Synchronise an index with its source at first, and at each tick with a change.

    ticks   whether the source has changed since the last one
    report  called with the first result, and with each that changed the index or has other problems
    Documents that the source does not have are kept if their deletion is refused or records of the
    source cannot be read; all others are synchronised. Any other failure is written to stderr once.
    If the source is at fault, the next sync waits for a change; otherwise, as while another process
    builds, it runs at the next tick. IndexNotFound if the index was deleted.
    """
    pending, first, failure = True, True, ""
    problems: object = None
    cache, synced = FileCache(index.document), -1  # and the position in the log after the last sync
    for changed in ticks:
        if not (changed or pending):
            continue
        try:
            index.refresh()
            before = index.last_write.seq
            if before != synced:  # others have written: their documents are not those of the files
                cache = FileCache(index.document)
            collection.cache = cache
            result = index.sync(collection, max_delete=max_delete, partial=True)
        except IndexNotFound:
            raise
        except KlsaError as error:
            cache.discard()
            pending = not isinstance(error, CollectionError)
            if explain(error) != failure:
                failure = explain(error)
                echo(f"error: {failure}; watching", err=True)
            continue
        cache.commit()
        synced = before + len(result.added) + len(result.changed) + len(result.deleted)
        previous, problems = problems, (result.refusal, result.skipped.reasons)
        if first or failure or result.batches or problems != previous:
            report(result)
        pending, first, failure = False, False, ""


def ticks_of(source: Path) -> Iterator[bool]:
    """Yield whether a file or folder has changed: twice a second, or soon after a change.

    The first value is True, and what changes from then on is noticed. Hidden files are ignored. A
    source that is missing or replaced as a whole counts as changed.
    """
    is_folder = source.is_dir()
    # Programs replace a file by renaming another, which only the folder notices.
    watched = source if is_folder else source.parent
    while True:
        identity, is_first = _identity(watched), True
        if identity is None:
            yield True
            time.sleep(_TICK / 1000)
            continue
        for changes in _changes(watched, source, recursive=is_folder):
            if _identity(watched) != identity:
                break
            yield is_first or bool(changes)
            is_first = False


def _changes(watched: Path, source: Path, *, recursive: bool) -> Iterator[Any]:
    from watchfiles import watch

    root = str(watched.resolve()) + sep

    def concerns(_: object, path: str) -> bool:
        below = path.removeprefix(root)
        if not recursive:
            return below == source.name
        return not any(part.startswith(".") for part in below.split(sep))

    yield from watch(
        watched.resolve(),
        watch_filter=concerns,
        debounce=_LONGEST,
        step=_QUIET,
        rust_timeout=_TICK,
        yield_on_timeout=True,
        recursive=recursive,
    )


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a folder; None if it does not exist."""
    with suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


@contextmanager
def until_interrupted() -> Iterator[None]:
    """End the block at Ctrl-C or SIGTERM, without an error."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        echo("stopped watching", err=True)
    finally:
        signal.signal(signal.SIGTERM, before)
