"""klsa-eval: measure rankings on collections with relevance judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from klsa_search.cli.compare import compare, judgements
from klsa_search.cli.main import debug_option, run
from klsa_search.cli.options import (
    FOLDER,
    FigurePath,
    data_option,
    json_file_option,
)
from klsa_search.cli.output import (
    echo,
    echo_notes,
    make_folders,
    numbers,
    write_json_file,
    write_table,
)
from klsa_search.cli.replay import replay
from klsa_search.cli.targets import open_targets, temporary_indexes
from klsa_search.core.extras import require
from klsa_search.core.progress import progress_bar
from klsa_search.errors import FetchError


@click.group()
@click.version_option(package_name="klsa-search")
def klsa_eval() -> None:
    """Measure rankings on collections with relevance judgements."""


def main() -> None:
    """Run klsa-eval."""
    run(klsa_eval)


@klsa_eval.command("map")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@data_option
@json_file_option
@click.option(
    "--run-dir",
    type=FOLDER,
    help="Also write TREC run files to this folder, named <target>.<system>.run",
)
@debug_option
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
    with progress_bar() as bar, temporary_indexes() as indexes:
        for target, collection in collections.items():
            index_of = partial(indexes.index, target, collection)
            systems = judge_systems(
                collection, index_of, run_dir=run_dir, progress=bar, note=notes.append
            )
            means[collection.name] = {name: system.means() for name, system in systems.items()}
    if json_file is not None:
        write_json_file(json_file, means)
    echo_notes(notes)
    _write_means(means)


@klsa_eval.command()
@click.argument("target")
@click.option(
    "--out",
    type=FigurePath(),
    required=True,
    help="Write the figure to this file: .png, .svg or .pdf",
)
@data_option
@json_file_option
@debug_option
def figure(target: str, out: Path, data: Path | None, json_file: Path | None) -> None:
    """Draw MAP against α for several z, as in the paper's Figure 1.

    The index is that of the preset "paper"; BM25 and LSI on the same index are the base lines.
    """
    require("eval")
    from klsa_search.evaluation.figures import draw_grid, measure_grid

    (collection,) = open_targets([target], data).values()
    make_folders(json_file, out)
    notes: list[str] = []
    with progress_bar() as bar, temporary_indexes() as indexes:
        index = indexes.index(target, collection, "paper")
        grid = measure_grid(collection, index, progress=bar, note=notes.append)
    echo_notes(notes)
    draw_grid(grid, out)
    if json_file is not None:
        write_json_file(json_file, grid.as_json())
    z, alpha, value = grid.best()
    echo(
        f"{out}: best at z = {z}, α = {alpha:g}: {value:.4f}; "
        f"BM25 {grid.bm25:.4f}, LSI {grid.lsi:.4f}"
    )


klsa_eval.add_command(compare)
klsa_eval.add_command(judgements)
klsa_eval.add_command(replay)


@klsa_eval.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--data",
    type=FOLDER,
    help="Store them in this folder  [default: the user's cache]",
)
@debug_option
def fetch(names: Sequence[str], data: Path | None) -> None:
    """Download public test collections: cran, cisi, cacm, med."""
    from klsa_search.collection.download import fetch as fetch_collections
    from klsa_search.collection.public_collections import cache_directory

    data = data or cache_directory()
    if data is None:
        raise FetchError(
            "no folder to download to: there is no home directory for a cache; name a folder with "
            "--data FOLDER",
            field="data",
        )
    with progress_bar() as bar:
        folders = fetch_collections(names, data, progress=bar)
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
