"""klsa-index list, info, verify, rollback, delete-index, alias, backup, restore."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.cli.describe import (
    drift_json,
    drift_rows,
    manifest_json,
    manifest_rows,
    partitions_json,
    partitions_rows,
    settings_rows,
    writes_json,
    writes_rows,
)
from klsa_search.cli.main import explain, klsa_index
from klsa_search.cli.options import home_option, index_argument, json_option
from klsa_search.cli.output import (
    Columns,
    echo,
    numbers,
    printable,
    wrapped,
    write_facts,
    write_json,
    write_list,
    write_table,
)
from klsa_search.core.wording import counted, in_bytes
from klsa_search.errors import IndexNotFound, StoreError

if TYPE_CHECKING:
    from klsa_search.storage.manifest import Manifest
    from klsa_search.storage.repository import Repository


@klsa_index.command()
@click.argument("name", required=False)
@click.argument("index", required=False)
@click.option("--delete", is_flag=True, help="Delete the alias NAME; keep its index")
@home_option
@json_option
def alias(name: str | None, index: str | None, delete: bool, home: Path, as_json: bool) -> None:
    """Set the alias NAME to INDEX, or list all aliases.

    The change is atomic: requests for NAME use either the old or the new index.
    """
    from klsa_search.storage.aliases import aliases_in, delete_alias, set_alias

    if delete != (name is not None and index is None):
        raise click.UsageError("give NAME and INDEX, or NAME and --delete, or no arguments")
    if name is not None and index is not None:
        set_alias(home, name, index)
    elif name is not None:
        delete_alias(home, name)
    aliases = aliases_in(home)
    if name is not None and not as_json:
        echo(f"{name} -> {index}" if index else f"deleted alias {name}")
        return
    listed = [{"name": alias, "index": target} for alias, target in aliases.items()]
    rows = list(aliases.items())
    write_list(as_json, listed, ["alias", "index"], rows, f"no aliases in {home}")


@klsa_index.command("list")
@home_option
@json_option
def list_(home: Path, as_json: bool) -> None:
    """List the indexes of the index directory.

    Indexes that cannot be used are listed with the reason.
    """
    from klsa_search.storage.maintenance import indexes_in, unfinished_in
    from klsa_search.storage.partitions import manifest_in_use

    paths = sorted([*indexes_in(home), *unfinished_in(home)])
    manifests = {path.name: _manifest_or_reason(manifest_in_use, path) for path in paths}
    facts = [
        {"name": name, "error": m} if isinstance(m, str) else manifest_json(name, m)
        for name, m in manifests.items()
    ]
    rows = [
        (name, "", "", "", f"unusable: {m}")
        if isinstance(m, str)
        else (name, f"{m.counts.documents:,}", in_bytes(m.bytes()), m.build.created, m.source)
        for name, m in manifests.items()
    ]
    columns: Columns = ["name", *numbers("documents", "size"), "built", *wrapped("source")]
    write_list(as_json, facts, columns, rows, f"no indexes in {home}")


@klsa_index.command()
@index_argument
@json_option
def info(path: Path, as_json: bool) -> None:
    """Show the contents, settings and build of an index."""
    from klsa_search.storage.current import current_build
    from klsa_search.storage.generations import committed_generations
    from klsa_search.storage.manifest import current_manifest
    from klsa_search.storage.partitions import documents_of, is_partitioned, manifest_in_use

    divided = is_partitioned(path)
    generations = documents_of(current_build(path))
    generation = generations[0]
    manifest = manifest_in_use(path)
    facts = manifest_json(path.name, manifest) | {"drift": drift_json(generations)}
    if divided:
        facts["partitions"] = partitions_json(generations)
    else:
        kept = {
            earlier.name: _manifest_or_reason(current_manifest, earlier)
            for earlier in committed_generations(path)
            if earlier.name != generation.name
        }
        facts |= {"generation": generation.name, "writes": writes_json(generation)}
        facts["kept"] = [_generation_json(*entry) for entry in kept.items()]
    if as_json:
        write_json(facts)
        return
    write_facts(
        [
            *manifest_rows(path.name, manifest),
            *([] if divided else writes_rows(facts["writes"])),
            *drift_rows(facts["drift"]),
            ("partitions", f"{len(generations):,}") if divided else ("generation", generation.name),
            *(partitions_rows(facts["partitions"]) if divided else ()),
            *(
                (f"kept {one['generation']}", _generation_text(one))
                for one in facts.get("kept", ())
            ),
            *settings_rows(manifest.checked_settings()),
        ]
    )


@klsa_index.command()
@index_argument
@click.option("--deep", is_flag=True, help="Also analyse all documents again, and compare")
def verify(path: Path, deep: bool) -> None:
    """Verify the checksums of all files and writes of an index.

    Of generations kept for a rollback only the manifests are read. With --deep, everything that
    BM25 uses is also compared with the documents, which takes as long as analysing them.
    klsa-index repair repairs an index that fails.
    """
    from klsa_search.storage.maintenance import verify as verify_index

    if deep:
        from klsa_search.indexing.verify import verify_deep

        manifest = verify_deep(path, progress=True)
    else:
        manifest = verify_index(path)
    compared = ", and BM25 data agree with the documents" if deep else ""
    files = f"{counted(len(manifest.files), 'file')}, {in_bytes(manifest.bytes())}"
    echo(f"{path.name}: {files}, all checksums match{compared}")


@klsa_index.command()
@index_argument
@click.option(
    "--to",
    metavar="GENERATION",
    help="Return to this generation  [default: the newest older than the present one]",
)
@click.option(
    "--writes",
    metavar="N",
    type=click.IntRange(1),
    help="Undo the last N batches of writes instead; klsa-index info lists the last ones",
)
def rollback(path: Path, to: str | None, writes: int | None) -> None:
    """Return to the previous generation, or undo the last writes.

    A build keeps the generation that it replaces; klsa-index info lists them. The present
    generation is kept too, until the next build. This also repairs a damaged CURRENT file.

    With --writes the generation stays and the last batches of writes are undone. A batch is one
    call of klsa-index add or delete, and at most 1,000 documents.
    """
    from klsa_search.storage.maintenance import rollback as roll_back
    from klsa_search.storage.maintenance import undo_writes

    if writes is not None:
        if to is not None:
            raise click.UsageError("--to and --writes exclude each other: give one of them")
        left = undo_writes(path, writes)
        undone = f"undid {counted(writes, 'batch', 'batches')} of writes"
        echo(f"{path.name}: {undone}; {counted(left, 'write')} left in the log")
        return
    back = roll_back(path, to)
    content = _generation_text(_generation_json(back.now, back.manifest))
    echo(f"{path.name}: generation {back.now} is current, {content}")
    if back.before and back.before != back.now:
        command = ["klsa-index", "rollback", path.name]
        command += ["--home", str(path.parent), "--to", back.before]
        echo(f"undo with {shlex.join(command)}, until the next build")


@klsa_index.command()
@index_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation")
def delete_index(path: Path, yes: bool) -> None:
    """Delete an index.

    Files in its folder that do not belong to the index are kept, and listed. If the index is a
    symbolic link, only the link is deleted.
    """
    from klsa_search.storage.directories import is_index
    from klsa_search.storage.maintenance import delete_index as delete_files

    # Not whether it can be read: a damaged index can be deleted too.
    if not yes and is_index(path):
        click.confirm(printable(f"Permanently delete {path}?"), abort=True)
    kept = delete_files(path)
    echo(f"deleted {path}")
    if kept:
        echo(f"kept files that do not belong to the index: {', '.join(map(str, kept))}", err=True)


def _manifest_or_reason(read: Callable[[Path], Manifest], path: Path) -> Manifest | str:
    """Return the manifest that a function reads at a path, or why it cannot be read."""
    try:
        return read(path)
    except (StoreError, OSError) as failure:
        return explain(failure)


def _generation_json(name: str, manifest: Manifest | str) -> dict[str, Any]:
    """Return what a generation contains, or why it cannot be used, for JSON."""
    if isinstance(manifest, str):
        return {"generation": name, "error": manifest}
    return {
        "generation": name,
        "source": manifest.source,
        "documents": manifest.counts.documents,
        "created": manifest.build.created,
    }


def _generation_text(facts: dict[str, Any]) -> str:
    if "error" in facts:
        return f"unusable: {facts['error']}"
    documents = counted(facts["documents"], "document")
    return f"{documents} of {facts['source']}, built {facts['created']}"


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
        from klsa_search.storage.backup import back_up
        from klsa_search.storage.repository import Repository

        done = back_up(Repository(arguments[0]), home, keep, take_over=take_over)
        echo(
            f"backup {done.number}: {counted(done.indexes, 'index', 'indexes')} in {arguments[0]}, "
            f"{in_bytes(done.written)} written, checksums verified"
        )
        if done.faults:
            reasons = "; ".join(f"`{name}`: {fault}" for name, fault in done.faults.items())
            raise StoreError(
                f"some indexes were not backed up; their previous backup is kept: {reasons}"
            )
        return
    from klsa_search.storage.maintenance import copy_index
    from klsa_search.storage.names import index_path

    name, target = arguments
    manifest = copy_index(index_path(home, name), Path(target))
    echo(f"{name}: {counted(len(manifest.files), 'file')} copied to {target}, checksums verified")


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
        count = counted(len(repository.read(restored).indexes), "index", "indexes")
        echo(f"{count} restored from backup {number_of(restored)} in {source}, checksums verified")


def _copy(source: Path, home: Path, name: str) -> None:
    """Restore the backup of one index."""
    from klsa_search.storage.maintenance import copy_index
    from klsa_search.storage.names import index_path

    manifest = copy_index(source, index_path(home, name))
    echo(f"{name}: {counted(len(manifest.files), 'file')} copied from {source}, checksums verified")


def _list(repository: Repository) -> None:
    names = repository.names()
    backups = {number: repository.read(name) for number, name in names.items()}
    rows = [
        (f"{number}", backup.created, in_bytes(backup.bytes()), " ".join(sorted(backup.indexes)))
        for number, backup in backups.items()
    ]
    write_table([*numbers("number"), "time", *numbers("size"), *wrapped("indexes")], rows)
