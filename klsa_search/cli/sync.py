"""klsa-index sync: make an index contain exactly the documents of a source, once or always.

With --watch, each sync compares the whole source with the index, so that no missed or repeated
event matters; events only say when to compare.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from os import sep
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from klsa_search.cli.describe import reading_json, write_field_warnings, write_reading
from klsa_search.cli.documents import index_facts
from klsa_search.cli.main import explain, klsa_index
from klsa_search.cli.options import json_option, opened_index, source_options
from klsa_search.cli.output import echo, write_json
from klsa_search.core.installation import require
from klsa_search.core.wording import counted
from klsa_search.errors import CollectionError, IndexNotFound, KlsaError

if TYPE_CHECKING:
    from klsa_search.collection.model import Document
    from klsa_search.collection.opened_collection import OpenedCollection
    from klsa_search.search.index import Index
    from klsa_search.search.sync import SyncResult
    from klsa_search.storage.write_log import LogPosition


@klsa_index.command()
@opened_index
@click.argument("source")
@source_options
@click.option(
    "--max-delete",
    metavar="LIMIT",
    help="Refuse a source that would delete more documents, as a number or a share such as 20%  "
    "[default: 20%, but at least 10]",
)
@click.option("--dry-run", is_flag=True, help="Report the differences and change nothing")
@click.option("--ids", is_flag=True, help="List the IDs of all documents that differ")
@click.option(
    "--watch",
    is_flag=True,
    help="Keep running, and synchronise again when the file or folder SOURCE changes, until Ctrl-C",
)
@json_option
def sync(
    index: Index,
    source: Any,
    reading: dict[str, Any],
    max_delete: str | None,
    dry_run: bool,
    ids: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """Make an index contain exactly the documents of SOURCE.

    SOURCE is as for klsa-index build, and has all documents. Changed documents are replaced, and
    those that SOURCE does not have are deleted; unchanged ones cost nothing. SOURCE is read with
    the options of the build, unless others are given here. klsa-index rollback --writes undoes it.
    """
    from klsa_search.collection.opening import open_collection

    if watch:
        if dry_run or as_json:
            raise click.UsageError("--watch cannot be combined with --dry-run or --json")
        require("watch")
    # One bad file must not keep the others out for as long as the source is watched.
    skipping = {"on_error": "skip"} if watch else {}
    collection = open_collection(source, **{**skipping, **index.manifest.reading, **reading})
    if watch:
        _watch(index, collection, max_delete, ids=ids)
        return
    result = index.sync(collection, max_delete=max_delete, dry_run=dry_run, progress=True)
    if as_json:
        facts = {"dry_run": dry_run, "warnings": result.warnings.as_json()}
        facts = index_facts(index) | result.as_json(ids=ids) | facts
        write_json(facts | reading_json(collection))
    else:
        _write(index, collection, result, ids=ids, dry_run=dry_run)


def _watch(
    index: Index, collection: OpenedCollection, max_delete: str | None, *, ids: bool
) -> None:
    if collection.root is None:
        raise click.UsageError(f"--watch needs a file or folder, and {collection.name} is neither")
    ticks = ticks_of(collection.root)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        follow(
            index,
            collection,
            ticks,
            lambda result: _write(index, collection, result, ids=ids),
            max_delete=max_delete,
        )
    except KeyboardInterrupt:
        echo("stopped watching", err=True)
    finally:
        signal.signal(signal.SIGTERM, before)


def _write(
    index: Index,
    collection: OpenedCollection,
    result: SyncResult,
    *,
    ids: bool,
    dry_run: bool = False,
) -> None:
    echo(
        f"{index.name}: {len(result.added):,} added, {len(result.changed):,} changed, "
        f"{len(result.deleted):,} deleted, {result.unchanged:,} unchanged"
        + ("; dry run, nothing was changed" if dry_run else f"; {len(index):,} in total")
    )
    if ids:
        for kind in ("added", "changed", "deleted"):
            for id_ in getattr(result, kind):
                echo(f"{kind:7}  {id_}")
    if result.kept:
        kept = counted(len(result.kept), "document")
        echo(f"not deleted: {kept}, because {result.refusal}", err=True)
    for field in result.removed_fields:
        echo(f"note: no document of the source has the field '{field}' any more", err=True)
    write_field_warnings(result.warnings)
    write_reading(collection)


_QUIET: Final = 100  # milliseconds without a change after which changes are taken together
_LONGEST: Final = 800  # milliseconds of changes that are taken together, at most
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
    from klsa_search.collection.folder import FileCache

    def stored(document_id: str) -> Document:
        return index.document(document_id)  # as it is at each call: a bound method keeps a state

    pending, first, failure = True, True, ""
    problems: object = None
    cache = FileCache(stored)
    synced: tuple[str, LogPosition] | None = None  # generation and its last write after a sync
    for changed in ticks:
        if not (changed or pending):
            continue
        try:
            index.refresh()
            state = generation, before = index.generation, index.last_write
            if state != synced:
                # Others have written or built: these documents may not be those of the files.
                cache = FileCache(stored)
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
        seq = before.seq + len(result.added) + len(result.changed) + len(result.deleted)
        synced = generation, before._replace(seq=seq)
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
