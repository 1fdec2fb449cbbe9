"""klsa-index add, delete, refit, compact, split, embed, dump, repair."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.cli.describe import reading_json, write_field_warnings, write_reading
from klsa_search.cli.main import klsa_index
from klsa_search.cli.options import (
    MODELS,
    index_argument,
    json_option,
    memory_option,
    opened_index,
    settings_options,
    source_options,
    without_none,
    workers_option,
)
from klsa_search.cli.output import echo, escaped, write_json
from klsa_search.core.build_settings import FormSettings
from klsa_search.core.wording import counted

if TYPE_CHECKING:
    from klsa_search.search.index import Index


@klsa_index.command()
@opened_index
@click.argument("source")
@source_options
@settings_options(*FormSettings.model_fields, default="as the index reads them")
@json_option
def add(index: Index, source: Any, reading: dict[str, Any], as_json: bool, **forms: Any) -> None:
    """Add the documents of SOURCE to an index.

    SOURCE is as for klsa-index build. A document replaces the one with the same ID. Added
    documents are searchable at once, also by a running service; klsa-index rollback --writes
    undoes the addition. Values in other forms than those of the index are converted.
    """
    from klsa_search.collection.opening import open_collection

    collection = open_collection(source, **reading)
    added = index.add(collection, progress=True, **without_none(forms))
    if as_json:
        facts = index_facts(index) | {"added": added, "warnings": added.warnings.as_json()}
        write_json(facts | reading_json(collection))
    else:
        echo(f"{index.name}: added {counted(added, 'document')}; {len(index):,} in total")
        write_field_warnings(added.warnings)
        write_reading(collection)


@klsa_index.command()
@opened_index
@click.argument("ids", nargs=-1, required=True)
@json_option
def delete(index: Index, ids: tuple[str, ...], as_json: bool) -> None:
    """Delete documents by ID from an index; unknown IDs are reported."""
    count = index.delete(ids)
    if as_json:
        write_json(index_facts(index) | {"deleted": count, "unknown": count.unknown})
    else:
        for id_ in count.unknown:
            echo(f"no document `{id_}` in index `{index.name}`", err=True)
        echo(f"{index.name}: deleted {counted(count, 'document')}; {len(index):,} in total")


@klsa_index.command()
@index_argument
@click.option(
    "--partitions",
    type=click.IntRange(1),
    help="Divide the documents into this many indexes; 1 joins them again [default: unchanged]",
)
@workers_option
@memory_option
@settings_options(default="unchanged")
def refit(path: Path, memory: str | None, **options: Any) -> None:
    """Rebuild an index from its stored documents.

    Documents added after a build are ranked by its statistics until the next refit. Searches and
    writes continue meanwhile. Settings given here become the settings of the index. The index
    before is kept until the next build; klsa-index rollback returns to it.
    """
    from klsa_search.indexing.rewrite import refit as refit_index

    index = refit_index(path, progress=True, memory=memory, **without_none(options))
    content = counted(len(index), "document")
    if (partitions := options["partitions"]) is not None:
        content += f" in {counted(partitions, 'partition')}"
    _write_rebuilt(path, index, content)


@klsa_index.command()
@index_argument
def compact(path: Path) -> None:
    """Merge what was written to an index since its build, without learning from it.

    Deleted documents leave the index, and it opens as fast as after a build; searches and writes
    continue meanwhile. Documents are ranked by the statistics of the last build or refit as before.
    """
    from klsa_search.indexing.compaction import compact as compact_index

    index = compact_index(path, progress=True)
    _write_rebuilt(path, index, counted(len(index), "document"))


def _write_rebuilt(path: Path, index: Index, content: str) -> None:
    """Write the content of a new generation, and close it."""
    echo(f"{path.name}: {content}, generation {index.generation}")
    index.close()


def index_facts(index: Index) -> dict[str, Any]:
    """Return name, generation, size and position of an index after a write, for JSON."""
    return {
        "name": index.name,
        "generation": index.generation,
        "documents": len(index),
        "log_position": index.last_write.seq,
    }


@klsa_index.command()
@index_argument
@click.argument("file", required=False, type=click.Path(path_type=Path))
def dump(path: Path, file: Path | None) -> None:
    """Write the live documents of an index as JSON lines, to FILE or standard output.

    klsa-index build reads them as the same documents. For a damaged index, all readable documents
    are written, the damage is named, and the command fails.
    """
    from klsa_search.storage.repair import (
        export,
        exported_lines,
        readable_generations,
        refuse_faults,
    )

    faults: list[str] = []
    generations = readable_generations(path, faults)
    if file is None:
        lines = exported_lines(generations, faults)
        sys.stdout.writelines(map(escaped, lines) if sys.stdout.isatty() else lines)
        refuse_faults(faults, f"{path.name} was written to standard output")
    else:
        count = export(generations, file, faults)
        echo(f"{path.name}: {counted(count, 'document')} in {file}")


@klsa_index.command()
@index_argument
@memory_option
def repair(path: Path, memory: str | None) -> None:
    """Repair a damaged index, including all writes to it.

    The index is verified first, as by klsa-index verify --deep. A damaged CURRENT file is written
    again; for other damage a new generation is built from the stored documents and the log of
    writes. If these cannot be verified either, nothing is changed: restore a backup, or save all
    readable documents with klsa-index dump.
    """
    from klsa_search.indexing.rewrite import repair as repair_index

    done = repair_index(path, progress=True, memory=memory)
    if done.fault is None:
        echo(f"{path.name}: no damage found; nothing changed")
        done.index.close()
    else:
        echo(f"damage found: {done.fault}")
        _write_rebuilt(path, done.index, f"repaired, {counted(len(done.index), 'document')}")


@klsa_index.command()
@index_argument
@click.option(
    "--space",
    required=True,
    help="Name the space of vectors, such as minilm; searches use this name",
)
@click.option("--embedder", metavar="MODEL", required=True, help=f"Compute them by {MODELS}")
@click.option(
    "--replace", is_flag=True, help="Compute all vectors again if they are by another model"
)
@memory_option
def embed(path: Path, space: str, embedder: str, replace: bool, memory: str | None) -> None:
    """Compute the vectors that documents of an index lack, and rebuild it with them.

    Searches and writes continue meanwhile. If the command is interrupted, another run continues
    where it was.
    """
    from klsa_search.indexing.rewrite import embed as embed_index

    done = embed_index(
        path, space=space, embedder=embedder, replace=replace, progress=True, memory=memory
    )
    if done.documents:
        _write_rebuilt(path, done.index, f"embedded {counted(done.documents, 'document')}")
    else:
        echo(f"{path.name}: all documents have vectors in `{space}`; nothing changed")
        done.index.close()
