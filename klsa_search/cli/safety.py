"""klsa-index export, backup, restore: the documents, or the whole index, taken elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from klsa_search.cli.frame import debug_option
from klsa_search.cli.options import home_option
from klsa_search.cli.output import echo, escaped
from klsa_search.errors import IndexNotFound

_FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("name")
@click.argument("file", required=False, type=_FOLDER)
@home_option
@debug_option
def export(name: str, file: Path | None, home: Path) -> None:
    """Write the live documents of an index as JSON lines, to FILE or standard output.

    klsa-index build reads them as the same documents. For a damaged index, all readable documents
    are written, the damage is named, and the command fails.
    """
    from klsa_search.store.export import as_line, readable_documents, refuse_faults
    from klsa_search.store.export import export as export_to
    from klsa_search.store.names import index_path
    from klsa_search.store.recovery import readable_generation

    faults: list[str] = []
    generation = readable_generation(index_path(home, name), faults)
    if file is None:
        lines = map(as_line, readable_documents(generation, faults))
        sys.stdout.writelines(map(escaped, lines) if sys.stdout.isatty() else lines)
        refuse_faults(faults, f"{name} was written to standard output")
    else:
        echo(f"{name}: {export_to(generation, file, faults):,} documents in {file}")


@click.command()
@click.argument("name")
@click.argument("target", type=_FOLDER)
@home_option
@debug_option
def backup(name: str, target: Path, home: Path) -> None:
    """Copy an index to the new folder TARGET.

    The index may be in use. The copy is an index with all writes up to then, including its
    synonyms and judgements; klsa-index restore copies it back.
    """
    from klsa_search.store.backup import copy_index
    from klsa_search.store.names import index_path

    manifest = copy_index(index_path(home, name), target)
    echo(f"{name}: {len(manifest.files)} files copied to {target}, checksums verified")


@click.command()
@click.argument("source", type=_FOLDER)
@click.option("--name", required=True, help="Give the index this name")
@home_option
@debug_option
def restore(source: Path, name: str, home: Path) -> None:
    """Restore the backup at SOURCE as an index with a new name.

    The index appears when the copy is complete; after an interruption, run the command again.
    """
    from klsa_search.store.backup import copy_index
    from klsa_search.store.names import index_path

    if not source.exists():
        raise IndexNotFound(f"no backup at `{source}`; check the path", field="source")
    manifest = copy_index(source, index_path(home, name))
    echo(f"{name}: {len(manifest.files)} files copied from {source}, checksums verified")
