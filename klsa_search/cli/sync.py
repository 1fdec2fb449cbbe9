"""klsa-index sync: make an index contain exactly the documents of a source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.cli.describe import (
    reading_json,
    write_field_warnings,
    write_reading,
    write_unread,
)
from klsa_search.cli.documents import index_facts
from klsa_search.cli.main import debug_option
from klsa_search.cli.options import index_argument, json_option, source_options
from klsa_search.cli.output import echo, write_json
from klsa_search.core.extras import require
from klsa_search.core.progress import progress_bar

if TYPE_CHECKING:
    from klsa_search.collection.opened_collection import OpenedCollection
    from klsa_search.search.index import Index
    from klsa_search.search.sync import SyncResult


@click.command()
@index_argument
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
    help="Stay, and synchronise again whenever the file or folder SOURCE changes, until Ctrl-C",
)
@json_option
@debug_option
def sync(
    path: Path,
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
    from klsa_search.search.opening import open_index

    if watch:
        if dry_run or as_json:
            raise click.UsageError("--watch cannot be combined with --dry-run or --json")
        require("watch")
    with open_index(path) as index:
        # One bad file must not keep the others out for as long as the source is watched.
        skipping = {"on_error": "skip"} if watch else {}
        collection = open_collection(source, **{**skipping, **index.manifest.reading, **reading})
        if watch:
            _watch(index, collection, max_delete, ids=ids)
            return
        with progress_bar() as bar:
            result = index.sync(collection, max_delete=max_delete, dry_run=dry_run, progress=bar)
        if as_json:
            facts = {"dry_run": dry_run, "warnings": result.warnings.as_json()}
            facts = index_facts(index) | result.as_json(ids=ids) | facts
            write_json(facts | reading_json(collection))
        else:
            _write(index, collection, result, ids=ids, dry_run=dry_run)


def _watch(
    index: Index, collection: OpenedCollection, max_delete: str | None, *, ids: bool
) -> None:
    from klsa_search.cli.watch import follow, ticks_of, until_interrupted

    if collection.root is None:
        raise click.UsageError(f"--watch needs a file or folder, and {collection.name} is neither")
    ticks = ticks_of(collection.root)
    with until_interrupted():
        follow(
            index,
            collection,
            ticks,
            lambda result: _write(index, collection, result, ids=ids),
            max_delete=max_delete,
        )


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
        echo(f"not deleted: {len(result.kept):,} documents, because {result.refusal}", err=True)
    for field in result.removed_fields:
        echo(f"note: no document of the source has the field '{field}' any more", err=True)
    write_field_warnings(result.warnings)
    write_unread(collection)
    write_reading(collection)
