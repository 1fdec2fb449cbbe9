"""klsa-index list, info, verify, rollback, delete, alias."""

from __future__ import annotations

import shlex
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
from klsa_search.cli.groups import klsa_index
from klsa_search.cli.main import explain
from klsa_search.cli.options import home_option, index_argument, json_option
from klsa_search.cli.output import (
    echo,
    in_bytes,
    numbers,
    printable,
    wrapped,
    write_facts,
    write_json,
    write_table,
)
from klsa_search.core.progress import progress_bar
from klsa_search.errors import StoreError

if TYPE_CHECKING:
    from klsa_search.storage.manifest import Manifest


@klsa_index.command()
@click.argument("name", required=False)
@click.argument("index", required=False)
@click.option("--remove", is_flag=True, help="Remove the alias NAME; keep its index")
@home_option
@json_option
def alias(name: str | None, index: str | None, remove: bool, home: Path, as_json: bool) -> None:
    """Set the alias NAME to INDEX, or list all aliases.

    The change is atomic: requests for NAME use either the old or the new index.
    """
    from klsa_search.storage.catalog import aliases_in, remove_alias, set_alias

    if remove != (name is not None and index is None):
        raise click.UsageError("give NAME and INDEX, or NAME and --remove, or no arguments")
    if name is not None and index is not None:
        set_alias(home, name, index)
    elif name is not None:
        remove_alias(home, name)
    aliases = aliases_in(home)
    if as_json:
        write_json([{"name": alias, "index": target} for alias, target in aliases.items()])
    elif name is not None:
        echo(f"{name} -> {index}" if index else f"removed alias {name}")
    elif aliases:
        write_table(["alias", "index"], list(aliases.items()))
    else:
        echo(f"no aliases in {home}")


@klsa_index.command("list")
@home_option
@json_option
def list_(home: Path, as_json: bool) -> None:
    """List the indexes of the index directory.

    Indexes that cannot be used are listed with the reason.
    """
    from klsa_search.storage.maintenance import indexes_in, unfinished_in

    paths = sorted([*indexes_in(home), *unfinished_in(home)])
    manifests = {path.name: _manifest_or_reason(path) for path in paths}
    if as_json:
        write_json(
            [
                {"name": name, "error": m} if isinstance(m, str) else manifest_json(name, m)
                for name, m in manifests.items()
            ]
        )
    elif not manifests:
        echo(f"no indexes in {home}")
    else:
        rows = [
            (name, "", "", "", f"unusable: {m}")
            if isinstance(m, str)
            else (name, f"{m.counts.documents:,}", in_bytes(m.bytes()), m.build.created, m.source)
            for name, m in manifests.items()
        ]
        titles = numbers("documents", "size")
        write_table(["name", *titles, "built", *wrapped("source")], rows)


@klsa_index.command()
@index_argument
@json_option
def info(path: Path, as_json: bool) -> None:
    """Show the contents, settings and build of an index."""
    from klsa_search.storage.current import current_generation
    from klsa_search.storage.generations import committed_generations
    from klsa_search.storage.partitions import is_partitioned, manifest_in_use, parts_of

    divided = is_partitioned(path)
    generations = [current_generation(part) for part in parts_of(path)]
    generation = generations[0]
    manifest = manifest_in_use(path)
    kept = {
        other.name: _generation_or_reason(other)
        for other in ([] if divided else committed_generations(path))
        if other.name != generation.name
    }
    if as_json:
        facts = manifest_json(path.name, manifest) | {"drift": drift_json(generations)}
        if divided:
            facts |= {"partitions": partitions_json(generations)}
        else:
            kept_json = [_kept_json(*entry) for entry in kept.items()]
            facts |= {"generation": generation.name, "writes": writes_json(generation)}
            facts |= {"kept": kept_json}
        write_json(facts)
        return
    write_facts(
        [
            *manifest_rows(path.name, manifest),
            *([] if divided else writes_rows(generation)),
            *drift_rows(generations),
            ("partitions", f"{len(generations):,}") if divided else ("generation", generation.name),
            *(partitions_rows(generations) if divided else ()),
            *((f"kept {name}", _kept_text(entry)) for name, entry in kept.items()),
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

        with progress_bar() as bar:
            manifest = verify_deep(path, progress=bar)
    else:
        manifest = verify_index(path)
    compared = ", and BM25 data agree with the documents" if deep else ""
    files = f"{len(manifest.files)} files, {in_bytes(manifest.bytes())}"
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
    call of klsa-index add or remove, and at most 1,000 documents.
    """
    from klsa_search.storage.maintenance import rollback as roll_back
    from klsa_search.storage.maintenance import undo_writes

    if writes is not None:
        if to is not None:
            raise click.UsageError("--to and --writes exclude each other: give one of them")
        left = undo_writes(path, writes)
        batches = "1 batch" if writes == 1 else f"{writes:,} batches"
        echo(f"{path.name}: undid {batches} of writes; {left:,} writes remain in the log")
        return
    back = roll_back(path, to)
    echo(f"{path.name}: generation {back.now} is current, {_of(back.manifest)}")
    if back.before and back.before != back.now:
        command = ["klsa-index", "rollback", path.name]
        command += ["--home", str(path.parent), "--to", back.before]
        echo(f"undo with {shlex.join(command)}, until the next build")


@klsa_index.command()
@index_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation")
def delete(path: Path, yes: bool) -> None:
    """Delete an index.

    Files in its folder that do not belong to the index are kept, and listed. If the index is a
    symbolic link, only the link is deleted.
    """
    from klsa_search.storage.directories import is_index
    from klsa_search.storage.maintenance import delete_index

    # Not whether it can be read: a damaged index can be deleted too.
    if not yes and is_index(path):
        click.confirm(printable(f"Permanently delete {path}?"), abort=True)
    kept = delete_index(path)
    echo(f"deleted {path}")
    if kept:
        echo(f"kept files that do not belong to the index: {', '.join(map(str, kept))}", err=True)


def _manifest_or_reason(path: Path) -> Manifest | str:
    """Return the manifest of an index, or why it cannot be read."""
    from klsa_search.storage.partitions import manifest_in_use

    try:
        return manifest_in_use(path)
    except (StoreError, OSError) as failure:
        return explain(failure)


def _generation_or_reason(generation: Path) -> Manifest | str:
    from klsa_search.storage.manifest import current_manifest

    try:
        return current_manifest(generation)
    except (StoreError, OSError) as failure:
        return explain(failure)


def _kept_text(kept: Manifest | str) -> str:
    return f"unusable: {kept}" if isinstance(kept, str) else _of(kept)


def _kept_json(generation: str, kept: Manifest | str) -> dict[str, Any]:
    if isinstance(kept, str):
        return {"generation": generation, "error": kept}
    return {
        "generation": generation,
        "source": kept.source,
        "documents": kept.counts.documents,
        "created": kept.build.created,
    }


def _of(manifest: Manifest) -> str:
    counts, built = manifest.counts, manifest.build
    return f"{counts.documents:,} documents of {manifest.source}, built {built.created}"
