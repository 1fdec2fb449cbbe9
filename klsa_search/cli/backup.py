"""klsa-index backup, restore."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klsa_search.cli.groups import klsa_index
from klsa_search.cli.options import home_option
from klsa_search.cli.output import echo, in_bytes, numbers, wrapped, write_table
from klsa_search.errors import IndexNotFound, StoreError

if TYPE_CHECKING:
    from klsa_search.storage.repository import Repository


@klsa_index.command()
@click.argument("arguments", nargs=-1, metavar="[NAME] TARGET")
@click.option("--all", "all_", is_flag=True, help="Back up all indexes and aliases to TARGET")
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(1),
    help="Keep the last N backups at TARGET, with --all  [default: all]",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Back up to a TARGET of another index directory, which can no longer use it, with --all",
)
@home_option
def backup(
    arguments: Sequence[str], all_: bool, keep: int | None, take_over: bool, home: Path
) -> None:
    """Copy the index NAME to the new folder TARGET, or all indexes to TARGET with --all.

    Indexes may be in use. A backup has all writes up to then, with synonyms and judgements, but no
    API keys; klsa-index restore copies it back.

    With --all, TARGET is a directory or a URL of object storage such as s3://bucket/prefix (pip
    install 'klsa-search[remote]' s3fs). It keeps several backups, and only what changed since the
    last one is written. Everything written is read back and compared. TARGET belongs to the index
    directory that backs up to it first; another is refused until it takes the target over.
    """
    if len(arguments) != 1 + (not all_):
        raise click.UsageError("give NAME and TARGET, or --all and TARGET")
    if keep is not None and not all_:
        raise click.UsageError("--keep needs --all")
    if take_over and not all_:
        raise click.UsageError("--take-over needs --all")
    if all_:
        from klsa_search.storage.backup_writer import back_up
        from klsa_search.storage.repository import Repository

        done = back_up(Repository(arguments[0]), home, keep, take_over=take_over)
        echo(
            f"backup {done.number}: {_count(done.indexes)} in {arguments[0]}, "
            f"{in_bytes(done.written)} written, checksums verified"
        )
        if done.faults:
            reasons = "; ".join(f"`{name}`: {fault}" for name, fault in done.faults.items())
            raise StoreError(f"could not back up all indexes, kept their last backup: {reasons}")
        return
    from klsa_search.storage.maintenance import copy_index
    from klsa_search.storage.names import index_path

    name, target = arguments
    manifest = copy_index(index_path(home, name), Path(target))
    echo(f"{name}: {len(manifest.files)} files copied to {target}, checksums verified")


@klsa_index.command()
@click.argument("source")
@click.option("--all", "all_", is_flag=True, help="Restore all indexes and aliases")
@click.option("--name", help="Restore one index, and give it this name")
@click.option(
    "--index", help="Restore this index of a backup of all indexes  [default: the one of --name]"
)
@click.option(
    "--number",
    metavar="N",
    type=click.IntRange(1),
    help="Restore this backup of all indexes  [default: the newest]",
)
@click.option("--list", "list_", is_flag=True, help="List the backups of all indexes at SOURCE")
@home_option
def restore(
    source: str,
    all_: bool,
    name: str | None,
    index: str | None,
    number: int | None,
    list_: bool,
    home: Path,
) -> None:
    """Restore the backup at SOURCE: one index under a new name, or all indexes with --all.

    Nothing is overwritten, and all checksums are compared. An index appears when its copy is
    complete; after an interruption, run the command again.
    """
    if (all_, name is not None, list_).count(True) != 1:
        raise click.UsageError("give one of --name, --all and --list")
    if "://" not in source:
        if not Path(source).exists():
            raise IndexNotFound(f"no backup at `{source}`; check the path", field="source")
        if name is not None and not Path(source, "backups").is_dir():
            _copy(Path(source), home, name)
            return
    from klsa_search.storage.names import index_path
    from klsa_search.storage.repository import Repository, number_of
    from klsa_search.storage.restore import restore_all, restore_index

    repository = Repository(source)
    if list_:
        _list(repository)
    elif name is not None:
        path = index_path(home, name)
        used = number_of(restore_index(repository, index or name, path, number))
        echo(f"{name}: restored from backup {used} in {source}, checksums verified")
    else:
        restored = restore_all(repository, home, number)
        count = _count(len(repository.read(restored).indexes))
        echo(f"{count} restored from backup {number_of(restored)} in {source}, checksums verified")


def _copy(source: Path, home: Path, name: str) -> None:
    """Restore the backup of one index."""
    from klsa_search.storage.maintenance import copy_index
    from klsa_search.storage.names import index_path

    manifest = copy_index(source, index_path(home, name))
    echo(f"{name}: {len(manifest.files)} files copied from {source}, checksums verified")


def _list(repository: Repository) -> None:
    names = repository.names()
    backups = {number: repository.read(name) for number, name in names.items()}
    rows = [
        (f"{number}", backup.created, in_bytes(backup.bytes()), " ".join(sorted(backup.indexes)))
        for number, backup in backups.items()
    ]
    write_table([*numbers("number"), "time", *numbers("size"), *wrapped("indexes")], rows)


def _count(indexes: int) -> str:
    return "1 index" if indexes == 1 else f"{indexes:,} indexes"
