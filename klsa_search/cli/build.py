"""klsa-index build, plan."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.cli.describe import (
    manifest_json,
    manifest_rows,
    reading_json,
    write_reading,
)
from klsa_search.cli.main import klsa_index
from klsa_search.cli.options import (
    chosen_settings,
    config_option,
    home_option,
    json_option,
    memory_option,
    preset_option,
    settings_options,
    source_options,
    workers_option,
)
from klsa_search.cli.output import echo, printable, write_facts, write_json
from klsa_search.core.progress import format_duration
from klsa_search.core.wording import counted, in_bytes
from klsa_search.embedding.options import by_space

if TYPE_CHECKING:
    from klsa_search.collection.model import Collection
    from klsa_search.indexing.build import Plan
    from klsa_search.indexing.generation_builder import PartitionWorkers


@klsa_index.command()
@click.argument("source")
@click.option("--name", required=True, help="Give the index this name")
@home_option
@config_option
@preset_option
@source_options
@memory_option
@click.option(
    "--replace",
    is_flag=True,
    help="Replace an index that was built from another source, without asking",
)
@click.option(
    "--vectors",
    metavar="SPACE=FILE.npy",
    multiple=True,
    help="Add vectors to the documents: row i of the array is that of the i-th document of SOURCE; "
    "repeatable",
)
@click.option(
    "--partitions",
    type=click.IntRange(1),
    help="Divide the documents into this many indexes, which search and write as one  "
    "[default: as many as the memory needs]",
)
@workers_option
@click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Build partitions by the processes of this Ray cluster, which must have the same index "
    "directory: local, auto or HOST:PORT",
)
@settings_options()
@json_option
def build(
    source: Any,
    name: str,
    home: Path,
    config: Path | None,
    reading: dict[str, Any],
    memory: str | None,
    replace: bool,
    vectors: tuple[str, ...],
    partitions: int | None,
    workers: int | None,
    cluster: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Build an index from SOURCE.

    SOURCE is a file or a folder, the name of a collection (cran, cisi, cacm, med), python-docs,
    sqlite:FILE?table=NAME, or - for standard input: docs/guides/import-documents.md.

    An index of the same name is replaced when the new one is complete, and stays available until
    then; klsa-index rollback returns to it. If it was built from another source, or this version
    cannot read it, replacing it needs your confirmation, or --replace without a terminal.
    """
    settings = chosen_settings(config, options)
    from klsa_search.collection.opened_collection import unread_text
    from klsa_search.collection.opening import open_collection
    from klsa_search.indexing.build import build as build_index
    from klsa_search.storage.directories import is_index
    from klsa_search.storage.names import index_path

    if workers and partitions in (None, 1):
        raise click.UsageError("--workers needs --partitions")
    if cluster and (workers or partitions in (None, 1)):
        raise click.UsageError("--cluster needs --partitions, and takes no --workers")
    collection = open_collection(source, **reading)
    if vectors:
        collection.add_vectors(by_space("vectors", vectors, "minilm=vectors.npy"))
    path = index_path(home, name)
    existed = is_index(path)
    if not replace and sys.stdin is not None and sys.stdin.isatty():
        replace = _confirm_replace(path, collection)
    index = build_index(
        collection,
        name=name,
        home=home,
        memory=memory,
        partitions=partitions,
        workers=_on_cluster(cluster) if cluster else workers,
        progress=True,
        replace=replace,
        **settings,
    )
    if not len(index):
        shown = source if isinstance(source, str) else collection.name
        echo(
            f"warning: {shown} has no documents, so every search of {name} will be empty", err=True
        )
    elif not index.manifest.counts.terms:
        echo(
            "warning: the texts have only stop words and signs, so only queries of stop words "
            "alone find documents; --stop-words none indexes these like other words"
            if collection.intake.has_texts
            else "warning: no document has a title or text, so every search of "
            f"{name} will be empty; name the field of the texts with --text",
            err=True,
        )
    if as_json:
        write_json(manifest_json(index.name, index.manifest) | reading_json(collection))
        return
    unread = collection.unread
    not_read = [("not read", unread_text(unread))] if unread.count else []
    divided = [("partitions", f"{partitions:,}")] if partitions and partitions > 1 else []
    write_facts([*manifest_rows(index.name, index.manifest), *divided, *not_read])
    if existed:
        echo(
            f"note: all documents were indexed again; klsa-index sync {name} SOURCE applies only "
            "the differences",
            err=True,
        )
    write_reading(collection, unread=False)


def _on_cluster(address: str) -> PartitionWorkers:
    """Connect to a cluster; return what runs tasks there."""
    from klsa_search.cluster.ray import connect, run_tasks

    connect(address)
    return partial(run_tasks, address)


def _confirm_replace(path: Path, collection: Collection) -> bool:
    """Confirm replacing an index of another source; Abort if declined, False if not needed."""
    from klsa_search.indexing.checks import address, is_unreadable, other_source

    before = other_source(path, collection)
    if before is not None:
        content = (
            f"{counted(before.counts.documents, 'document')} of "
            f"{before.source_path or before.source}, built {before.build.created}"
        )
    elif is_unreadable(path):
        content = "an index that this version cannot read"
    else:
        return False
    echo(f"{path} contains {content}", err=True)
    if before is not None:
        echo(f"klsa-index sync {path.name} SOURCE applies only the differences", err=True)
    new_source = address(collection) or collection.name
    what = "it" if before is None else "them"
    question = f"Replace {what} with those of {new_source}?"
    return click.confirm(printable(question), abort=True, err=True)


@klsa_index.command()
@click.argument("source", required=False)
@click.option(
    "--documents", type=click.IntRange(1), help="Plan for this many documents, without SOURCE"
)
@click.option(
    "--words", type=click.IntRange(1), help="Assume this many words in a document, on average"
)
@memory_option
@config_option
@preset_option
@source_options
@settings_options()
@json_option
def plan(
    source: Any,
    documents: int | None,
    words: int | None,
    memory: str | None,
    config: Path | None,
    reading: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Estimate the memory, time and disk that a build takes, and the service of its index.

    Reads the first documents of SOURCE; other arguments are those of klsa-index build. Without
    SOURCE, give --documents and --words: sizes are then those of English texts. Builds nothing.
    """
    settings = chosen_settings(config, options)
    from klsa_search.indexing.build import plan as planned
    from klsa_search.indexing.build import plan_of_size

    if source is not None and (documents or words):
        raise click.UsageError("--documents and --words replace SOURCE; give one or the other")
    if source is not None:
        plan = planned(source, memory=memory, **reading, **settings)
    elif documents and words:
        plan = plan_of_size(documents, words, memory=memory, **reading, **settings)
    else:
        raise click.UsageError("give SOURCE, or --documents and --words")
    if as_json:
        write_json(plan.as_json())
    else:
        _write_plan(plan)


def _write_plan(plan: Plan) -> None:
    from klsa_search.collection.opened_collection import unread_text

    size = plan.size
    about = "" if size.documents == size.sampled else "about "
    sampled = f", {size.sampled:,} of them read" if size.sampled else ""
    write_facts(
        [
            ("source", plan.source),
            ("documents", f"{about}{size.documents:,}{sampled}"),
            *([("passages", f"about {size.passages:,}")] if size.passages else []),
            ("bytes", f"{about}{in_bytes(size.bytes)}"),
            *([("not read", unread_text(plan.unread))] if plan.unread.count else []),
        ]
    )
    echo()
    write_facts(
        [
            ("memory of the build", f"about {in_bytes(plan.peak_memory)}"),
            ("processor time", f"about {format_duration(plan.seconds)}"),
            ("disk", f"about {in_bytes(plan.disk)}"),
            ("memory of the service", f"about {in_bytes(plan.serving_memory)} for one process"),
            ("searches per second", f"about {plan.searches_per_second:,}"),
        ]
    )
    if not plan.fits:
        echo()
        echo(
            f"warning: the memory limit of {in_bytes(plan.budget)} is too small for one partition; "
            "raise --memory, or klsa-index build divides the documents"
        )
