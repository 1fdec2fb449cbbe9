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
    """Make an index that is damaged again, from the documents it holds.

    It is verified as by klsa-index verify --deep, and built anew where that fails, with all that
    was written to it. Its documents, its manifest and its log of writes have to be whole; else a
    backup, or klsa-index rollback, is the way back.
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
        echo(f"{name}: made again from its {len(index):,} documents, generation {index.generation}")
    index.close()
