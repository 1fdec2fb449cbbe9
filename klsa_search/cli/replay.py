"""klsa-eval replay: reproduce a recorded run, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from klsa_search.cli.main import debug_option
from klsa_search.cli.options import home_option, source_options
from klsa_search.cli.output import echo, echo_notes, make_folders
from klsa_search.core.progress import progress_bar

if TYPE_CHECKING:
    from klsa_search.evaluation.record import RunRecord
    from klsa_search.search.index import Index

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("record", type=_FILE)
@click.option(
    "--queries", type=_FILE, required=True, help="Read the recorded queries from this file"
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
    type=_FILE,
    help="Compare with this recorded run, and report the first line that differs",
)
@click.option("--out", type=_FILE, help="Write the run to this file")
@debug_option
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
    from klsa_search.evaluation.record import read_record
    from klsa_search.evaluation.replay import refuse_other_files
    from klsa_search.evaluation.replay import replay as replay_run

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
        f"{recorded.run.name}: identical, {replayed.run.queries:,} queries, "
        f"{replayed.run.hits:,} hits, sha256 {replayed.run.sha256}"
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
        from klsa_search.search.opening import open_index
        from klsa_search.storage.names import index_path

        with closing(open_index(index_path(home, record.index.name))) as index:
            yield index
        return
    from klsa_search.collection.opening import open_collection
    from klsa_search.evaluation.replay import build_as_recorded

    collection = open_collection(source, **reading)
    with TemporaryDirectory(prefix="klsa-replay-") as folder:
        with progress_bar() as bar:
            index = build_as_recorded(record, collection, Path(folder), progress=bar)
        with closing(index):
            yield index
