"""klsa-index export, backup, restore: the documents, or the whole index, taken elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import home_option
from klsa_search.cli.output import echo, escaped

_FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("name")
@click.argument("file", required=False, type=_FOLDER)
@home_option
@debug_option
def export(name: str, file: Path | None, home: Path) -> None:
    """Write the documents of an index as JSON lines, to FILE or to the standard output.

    A build reads them as the same documents. What was deleted or replaced is not among them.
    Of a damaged index it writes all documents that can be read, names what is damaged, and fails.
    """
    from klsa_search.store import index_path
    from klsa_search.store.export import as_line, living, refuse_faults
    from klsa_search.store.export import export as export_to
    from klsa_search.store.recovery import readable_generation

    faults: list[str] = []
    generation = readable_generation(index_path(home, name), faults)
    if file is None:
        lines = map(as_line, living(generation, faults))
        sys.stdout.writelines(map(escaped, lines) if sys.stdout.isatty() else lines)
        refuse_faults(faults, f"{name} was written to the standard output")
    else:
        echo(f"{name}: {export_to(generation, file, faults):,} documents in {file}")


@click.command()
@click.argument("name")
@click.argument("target", type=_FOLDER)
@home_option
@debug_option
def backup(name: str, target: Path, home: Path) -> None:
    """Copy an index to the folder TARGET, which must not be there, while it is in use.

    The copy is an index itself, with all that was written until then; klsa-index restore brings it
    back.
    """
    from klsa_search.store import index_path
    from klsa_search.store.backup import copy_index

    manifest = copy_index(index_path(home, name), target)
    echo(f"{name}: {len(manifest.files)} files copied to {target}, all as built")


@click.command()
@click.argument("source", type=_FOLDER)
@click.option("--name", required=True, help="Name of the index below the home.")
@home_option
@debug_option
def restore(source: Path, name: str, home: Path) -> None:
    """Bring the backup at SOURCE back, as an index of a name that is free.

    It is an index once all of it is there: after an interruption run the command again.
    """
    from klsa_search.store import index_path
    from klsa_search.store.backup import copy_index

    manifest = copy_index(source, index_path(home, name))
    echo(f"{name}: {len(manifest.files)} files copied from {source}, all as built")
