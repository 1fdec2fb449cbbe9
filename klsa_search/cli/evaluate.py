"""klsa-eval: judge the engine on collections whose answers are known."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klsa_search.cli.frame import debug_option, run
from klsa_search.cli.options import cache_home, collections_home, data_option
from klsa_search.cli.output import Column, progress_bar, write_table

if TYPE_CHECKING:
    from klsa_search.collection import Collection
    from klsa_search.search import Index

_FIGURES = (".png", ".svg")

json_file_option = click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the figures to this file, in full precision.",
)


@click.group()
@click.version_option(package_name="klsa-search")
def klsa_eval() -> None:
    """Judge the engine on collections whose answers are known."""


def main() -> None:
    """Run klsa-eval."""
    run(klsa_eval)


@klsa_eval.command("map")
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@data_option
@json_file_option
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write TREC run files to this folder, <target>.<system>.run.",
)
@debug_option
def map_(
    targets: Sequence[str], data: Path | None, json_file: Path | None, run_dir: Path | None
) -> None:
    """Measure BM25, LSI, the published method and the default on every TARGET.

    TARGET is cran, cran-1837 (the same with all its judgements counted as relevant), cisi, cacm,
    med, or a folder with queries and judgements in a format that klsa-index build reads.
    """
    from klsa_search.evaluation import judge_systems

    collections = _open(targets, data)
    _make_folders(json_file, run_dir and run_dir / "any.run")
    means: dict[str, dict[str, dict[str, float]]] = {}
    with progress_bar() as bar, _workshop() as workshop:
        for target, collection in collections.items():
            index_of = partial(workshop.index, target, collection)
            systems = judge_systems(collection, index_of, run_dir=run_dir, progress=bar)
            means[collection.name] = {name: found.means() for name, found in systems.items()}
    if json_file is not None:
        _write_file(json_file, means)
    _write_means(means)


@klsa_eval.command()
@click.argument("target")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    callback=lambda _context, _parameter, path: _checked_figure(path),
    help="The figure, .png or .svg.",
)
@data_option
@json_file_option
@debug_option
def figure(target: str, out: Path, data: Path | None, json_file: Path | None) -> None:
    """Draw MAP against α for several z, as in the paper's Figure 1.

    The index is that of the preset "paper"; BM25 and LSI on the same index are the base lines.
    """
    from klsa_search.evaluation import draw_grid, measure_grid

    (collection,) = _open([target], data).values()
    _make_folders(json_file, out)
    with progress_bar() as bar, _workshop() as workshop:
        index = workshop.index(target, collection, "paper")
        grid = measure_grid(collection, index, progress=bar)
    draw_grid(grid, out)
    if json_file is not None:
        _write_file(json_file, grid.as_json())
    z, alpha, value = grid.best()
    click.echo(
        f"{out}: best at z = {z}, α = {alpha:g}: {value:.4f}; "
        f"BM25 {grid.bm25:.4f}, LSI {grid.lsi:.4f}"
    )


@klsa_eval.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to put them in.  [default: the user's cache]",
)
@debug_option
def fetch(names: Sequence[str], data: Path | None) -> None:
    """Download public collections: cran, cisi, cacm, med."""
    from klsa_search.collection import fetch as fetch_collections

    with progress_bar() as bar:
        folders = fetch_collections(names, data or cache_home(), progress=bar)
    for folder in folders:
        click.echo(str(folder))


class _Workshop:
    """Builds the indexes that judging needs, each once, in a folder that goes away."""

    def __init__(self, home: Path, opened: ExitStack) -> None:
        self._home = home
        self._opened = opened
        self._indexes: dict[tuple[str, str], Index] = {}

    def index(self, target: str, collection: Collection, preset: str) -> Index:
        """Give the index of a preset; cran and cran-1837 have the same documents, so one index."""
        from klsa_search.collection.known import folder_name
        from klsa_search.indexing import build

        key = (folder_name(target), preset)
        if key not in self._indexes:
            name = f"{len(self._indexes)}-{preset}"
            index = build(collection, name=name, home=self._home, preset=preset)
            self._opened.callback(index.close)
            self._indexes[key] = index
        return self._indexes[key]


@contextmanager
def _workshop() -> Iterator[_Workshop]:
    with tempfile.TemporaryDirectory(prefix="klsa-eval-") as home, ExitStack() as opened:
        yield _Workshop(Path(home), opened)


def _open(targets: Sequence[str], data: Path | None) -> dict[str, Collection]:
    """Open each target once; two that would answer under one name are wrong usage."""
    from klsa_search.collection import open_collection

    collections: dict[str, Collection] = {}
    owners: dict[str, str] = {}
    for target in dict.fromkeys(targets):
        collection = open_collection(target, data=collections_home(data))
        owner = owners.setdefault(collection.name, target)
        if owner != target:
            raise click.UsageError(
                f"{owner} and {target} are both called {collection.name}: judge one at a time"
            )
        collections[target] = collection
    return collections


def _checked_figure(path: Path) -> Path:
    if path.suffix.lower() not in _FIGURES:
        raise click.BadParameter(f"{path} does not end in one of {', '.join(_FIGURES)}")
    return path


def _make_folders(*files: Path | None) -> None:
    """Make the folders of the files to come, before the work and not after it."""
    for file in files:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)


def _write_file(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _write_means(means: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """Write the table for people, with the gain of each system's MAP over BM25's."""
    columns = [Column("target"), Column("system"), Column("map", right=True)]
    columns += [Column("over bm25", right=True), Column("ndcg@10", right=True)]
    columns += [Column("p@10", right=True), Column("recall@1000", right=True)]
    rows = []
    for target, systems in means.items():
        base = systems["bm25"]["map"]
        for system, measures in systems.items():
            first, *rest = (f"{value:.4f}" for value in measures.values())
            gain = f"{measures['map'] / base - 1:+.1%}" if base and system != "bm25" else ""
            rows.append((target, system, first, gain, *rest))
    write_table(columns, rows)
