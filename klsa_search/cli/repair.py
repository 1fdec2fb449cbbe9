"""klsa-index repair: rebuild a damaged index from its stored documents."""

from __future__ import annotations

from pathlib import Path

import click

from klsa_search.bars import progress_bar
from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import home_option, memory_option
from klsa_search.cli.output import echo


@click.command()
@click.argument("name")
@home_option
@memory_option
@debug_option
def repair(name: str, home: Path, memory: str | None) -> None:
    """Repair a damaged index, including all writes to it.

    The index is verified first, as by klsa-index verify --deep. A damaged CURRENT file is written
    again; for other damage a new generation is built from the stored documents and the log of
    writes. If these cannot be verified either, nothing is changed: restore a backup, or save all
    readable documents with klsa-index export.
    """
    from klsa_search.indexing import repair as repair_index
    from klsa_search.store.names import index_path

    with progress_bar() as bar:
        done = repair_index(index_path(home, name), progress=bar, memory=memory)
    index = done.index
    if done.fault is None:
        echo(f"{name}: no damage found; nothing changed")
    else:
        echo(f"damage found: {done.fault}")
        echo(f"{name}: repaired, {len(index):,} documents, generation {index.generation}")
    index.close()
