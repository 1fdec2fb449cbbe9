"""klsa-index repair: making an index that is damaged again from its documents."""

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
    """Mend a damaged index, with all writes to it.

    It is verified as by klsa-index verify --deep. A damaged CURRENT is written again; after other
    damage a new generation is built from the documents and the log of writes. Where these cannot be
    proven to be what was written, nothing is changed: restore a backup, or write all documents that
    can be read to a file with klsa-index export.
    """
    from klsa_search.indexing import repair as repair_index
    from klsa_search.store import index_path

    with progress_bar() as bar:
        done = repair_index(index_path(home, name), progress=bar, memory=memory)
    index = done.index
    if done.fault is None:
        echo(f"{name} is whole: nothing was done")
    else:
        echo(f"found: {done.fault}")
        echo(f"{name}: whole again, {len(index):,} documents, generation {index.generation}")
    index.close()
