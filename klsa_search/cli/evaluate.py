"""klsa-eval: measure rankings on collections with relevance judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from klsa_search.cli.compare import open_targets, temporary_indexes
from klsa_search.cli.main import klsa_eval, run
from klsa_search.cli.options import (
    FILE,
    FOLDER,
    data_option,
    home_option,
    json_file_option,
    source_options,
)
from klsa_search.cli.output import (
    echo,
    echo_notes,
    make_folders,
    numbers,
    write_json_file,
    write_table,
)
from klsa_search.core.installation import require
from klsa_search.core.progress import progress_bar
from klsa_search.core.wording import counted
from klsa_search.errors import FetchError

if TYPE_CHECKING:
    from klsa_search.evaluation.run_records import RunRecord
    from klsa_search.search.index import Index


@klsa_eval.command("map")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@data_option
@json_file_option
@click.option(
    "--run-dir",
    type=FOLDER,
    help="Also write TREC run files to this folder, named <target>.<system>.run",
)
def map_(
    targets: Sequence[str], data: Path | None, json_file: Path | None, run_dir: Path | None
) -> None:
    """Measure the MAP of rankers on every TARGET.

    The rankers are BM25, LSI, the published method and the default.
    TARGET is cran, cran-1837 (the same with all its judgements counted as relevant), cisi, cacm,
    med, or a folder with queries and judgements in a format that klsa-index build reads.
    """
    require("eval")
    from klsa_search.evaluation.systems import judge_systems

    collections = open_targets(targets, data)
    make_folders(json_file, run_dir and run_dir / "any.run")
    means: dict[str, dict[str, dict[str, float]]] = {}
    notes: list[str] = []
    with progress_bar() as bar, temporary_indexes() as index_of:
        for target, collection in collections.items():
            systems = judge_systems(
                collection,
                partial(index_of, target, collection),
                run_dir=run_dir,
                progress=bar,
                note=notes.append,
            )
            means[collection.name] = {name: system.means() for name, system in systems.items()}
    if json_file is not None:
        write_json_file(json_file, means)
    echo_notes(notes)
    _write_means(means)


@klsa_eval.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--data", type=FOLDER, help="Store them in this folder  [default: the user's cache]")
def fetch(names: Sequence[str], data: Path | None) -> None:
    """Download public test collections: cran, cisi, cacm, med."""
    from klsa_search.collection import public_collections

    data = data or public_collections.cache_directory()
    if data is None:
        raise FetchError(
            "no folder to download to: there is no home directory for a cache; name a folder with "
            "--data FOLDER",
            field="data",
        )
    with progress_bar() as bar:
        folders = public_collections.fetch(names, data, progress=bar)
    for folder in folders:
        echo(str(folder))


def _write_means(means: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Write a table of the measures, with the gain of each system's MAP over BM25."""
    titles = ("map", "over bm25", "ndcg@10", "p@10", "recall@1000")
    rows = []
    for target, systems in means.items():
        base = systems["bm25"]["map"]
        for system, measures in systems.items():
            first, *rest = (f"{value:.4f}" for value in measures.values())
            gain = f"{measures['map'] / base - 1:+.1%}" if base and system != "bm25" else ""
            rows.append((target, system, first, gain, *rest))
    write_table(["target", "system", *numbers(*titles)], rows)


@klsa_eval.command()
@click.argument("record", type=FILE)
@click.option(
    "--queries", type=FILE, required=True, help="Read the recorded queries from this file"
)
@home_option
@click.option(
    "--source",
    metavar="SOURCE",
    help="Rebuild the index from these documents, as recorded, and remove it afterwards",
)
@source_options
@click.option(
    "--run",
    "run_file",
    type=FILE,
    help="Compare with this recorded run, and report the first line that differs",
)
@click.option("--out", type=FILE, help="Write the run to this file")
def replay(
    record: Path,
    queries: Path,
    home: Path,
    source: Any,
    reading: dict[str, Any],
    run_file: Path | None,
    out: Path | None,
) -> None:
    """Reproduce the run of RECORD, and compare it byte for byte.

    RECORD is a file written by klsa-search --record. The index is the one named in
    RECORD, which must not have changed, or rebuilt from --source. The first difference is reported:
    queries, index or run.
    """
    from klsa_search.evaluation.run_records import read_record, refuse_other_files
    from klsa_search.evaluation.run_records import replay as replay_run

    source_of = click.get_current_context().get_parameter_source
    if source is not None and source_of("home") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--home and --source exclude each other: give one of them")
    inputs = {path.resolve() for path in (record, queries, run_file) if path is not None}
    if out is not None and out.resolve() in inputs:
        raise click.UsageError(f"--out {out} is an input file: name another file")
    recorded = read_record(record)
    refuse_other_files(recorded, queries, run_file)
    make_folders(out)
    with _index(recorded, home, source, reading) as index:
        replayed = replay_run(recorded, queries, index, run=run_file, out=out)
        files = len(index.manifest.files)
    echo(
        f"{recorded.run.name}: identical, {counted(replayed.run.queries, 'query', 'queries')}, "
        f"{counted(replayed.run.hits, 'hit')}, sha256 {replayed.run.sha256}"
    )
    compared = f"all {files} files are as recorded"
    if replayed.files:
        compared = f"{len(replayed.files)} of {files} files differ, first {replayed.files[0]}"
    echo(f"index {'opened' if source is None else 'rebuilt'}: {compared}")
    echo_notes(replayed.versions)


@contextmanager
def _index(record: RunRecord, home: Path, source: Any, reading: dict[str, Any]) -> Iterator[Index]:
    """Open the index of a record, or build it in a temporary folder."""
    if source is None:
        from klsa_search.search.index import open_index
        from klsa_search.storage.names import index_path

        with open_index(index_path(home, record.index.name)) as index:
            yield index
        return
    from klsa_search.collection.opening import open_collection
    from klsa_search.evaluation.run_records import build_as_recorded

    collection = open_collection(source, **reading)
    with TemporaryDirectory(prefix="klsa-replay-") as folder:
        with progress_bar() as bar:
            index = build_as_recorded(record, collection, Path(folder), progress=bar)
        with index:
            yield index


main = partial(run, klsa_eval)
