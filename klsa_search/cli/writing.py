"""klsa-index add, remove, refit: change the documents of an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.bars import progress_bar
from klsa_search.cli.compiling import watch_compiling
from klsa_search.cli.facts import unread_for_people, write_field_warnings, write_problems
from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import (
    given,
    home_option,
    json_option,
    memory_option,
    settings_options,
    source_options,
)
from klsa_search.cli.output import echo, write_json
from klsa_search.config import SearchSettings

if TYPE_CHECKING:
    from klsa_search.search.index import Index


@click.command()
@click.argument("name")
@click.argument("source")
@home_option
@source_options
@json_option
@debug_option
def add(
    name: str,
    source: Any,
    home: Path,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Add the documents of SOURCE to an index.

    SOURCE is as for klsa-index build. A document replaces the one with the same ID. Added
    documents are searchable at once, also by a running service; klsa-index rollback --writes
    undoes the addition.
    """
    from klsa_search.collection import open_collection
    from klsa_search.search.opening import open_index
    from klsa_search.store.names import index_path

    collection = open_collection(source, **reading)
    with watch_compiling(_tell_compiling), progress_bar() as bar:
        index = open_index(index_path(home, name))
        added = index.add(collection, progress=bar)
    problems, unread = collection.problems, collection.unread
    if as_json:
        facts = _facts(index) | {"added": added, "warnings": added.warnings.as_json()}
        write_json(facts | {"skipped": problems.as_json(), "unread": unread.as_json()})
    else:
        echo(f"{name}: added {added:,} documents; {len(index):,} in total")
        write_field_warnings(added.warnings)
        if unread.count:
            echo(f"not read: {unread_for_people(unread)}", err=True)
        write_problems(problems)
    index.close()


@click.command()
@click.argument("name")
@click.argument("ids", nargs=-1, required=True)
@home_option
@json_option
@debug_option
def remove(name: str, ids: tuple[str, ...], home: Path, as_json: bool) -> None:
    """Remove documents by ID from an index; unknown IDs are ignored."""
    from klsa_search.search.opening import open_index
    from klsa_search.store.names import index_path

    with watch_compiling(_tell_compiling):
        index = open_index(index_path(home, name))
        count = index.delete(ids)
    if as_json:
        write_json(_facts(index) | {"removed": count})
    else:
        echo(f"{name}: removed {count:,} documents; {len(index):,} in total")
    index.close()


@click.command()
@click.argument("name")
@home_option
@memory_option
@settings_options(*SearchSettings.model_fields, "fields", default="as it is")
@debug_option
def refit(name: str, home: Path, memory: str | None, **options: Any) -> None:
    """Rebuild an index from its stored documents.

    Documents added after a build are ranked by its statistics until the next refit. Searches and
    writes continue meanwhile. Settings given here become the settings of the index.
    """
    from klsa_search.indexing import refit as refit_index
    from klsa_search.store.names import index_path

    with progress_bar() as bar:
        path = index_path(home, name)
        index = refit_index(path, progress=bar, memory=memory, **given(options))
    echo(f"{name}: {len(index):,} documents, generation {index.generation}")
    index.close()


def _facts(index: Index) -> dict[str, Any]:
    return {
        "name": index.name,
        "generation": index.generation,
        "documents": len(index),
        "log_position": index.last_write.seq,
    }


def _tell_compiling(folder: str | None) -> None:
    where = f"once per machine, into {folder}" if folder else "no cache folder is writable"
    echo(f"compiling the engine for writes ({where}) ...", err=True)
