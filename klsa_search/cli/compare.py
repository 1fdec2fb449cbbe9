"""klsa-eval compare and judgements, and the collections and indexes that klsa-eval measures."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klsa_search.cli.main import klsa_eval
from klsa_search.cli.options import PluginChoice, data_option, json_file_option, opened_index
from klsa_search.cli.output import (
    echo,
    echo_notes,
    make_folders,
    numbers,
    wrapped,
    write_json_file,
    write_table,
)
from klsa_search.core.installation import require
from klsa_search.core.parameters import RANKER_NAMES
from klsa_search.core.progress import progress_bar

if TYPE_CHECKING:
    from klsa_search.collection.model import Collection
    from klsa_search.core.parameters import RankerName
    from klsa_search.evaluation.comparison import AtQuery, Comparison, Contrast
    from klsa_search.evaluation.measures import RunMeasures
    from klsa_search.search.index import Index


@klsa_eval.command("judgements")
@opened_index
@click.option(
    "--ranker",
    "rankers",
    type=PluginChoice(RANKER_NAMES),
    multiple=True,
    default=("bm25", "klsa"),
    help="Compare these rankers with the first; repeatable",
)
@json_file_option
def judgements(index: Index, rankers: Sequence[str], json_file: Path | None) -> None:
    """Compare rankers by the judgements of an index.

    Prints MAP and the queries won and lost. Judgements come from the page of klsa-serve and from
    index.judge. A query is won or lost if the difference is above 0.01; p is as in klsa-eval
    compare.
    """
    require("eval")
    from klsa_search.evaluation.systems import compare_rankers, index_judgements

    if len(set(rankers)) < len(rankers):
        raise click.UsageError("a ranker is given twice: give each once")
    make_folders(json_file)
    queries, judged, deleted = index_judgements(index)
    _, comparison = compare_rankers(index, queries, judged, rankers)
    if json_file is not None:
        write_json_file(json_file, comparison.as_json())
    if deleted:
        echo_notes([f"{deleted:,} judgements of deleted documents are left out"])
    _write(comparison, {query.id: query.text for query in queries})


def _write(comparison: Comparison, texts: dict[str, str]) -> None:
    _write_contrasts(comparison, with_intervals=True)
    extremes = [
        (name, end, f"{at.baseline:.2f}", f"{at.value:.2f}", texts[at.query])
        for name, system in comparison.systems.items()
        if system.contrast is not None
        for end, queries in (("won", system.contrast.best), ("lost", system.contrast.worst))
        for at in queries
    ]
    if extremes:
        echo()
        values = numbers(comparison.baseline, "value")
        write_table(["system", "end", *values, *wrapped("query")], extremes)


_TARGET = "{target}"


@klsa_eval.command()
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@data_option
@click.option(
    "--run",
    "runs",
    metavar="NAME=FILE",
    multiple=True,
    callback=lambda _context, _parameter, value: _checked_runs(value),
    help="Add a TREC run file of another system, plain or gzip; {target} in FILE stands for the "
    "name of each target; repeatable",
)
@click.option(
    "--measure",
    type=click.Choice(["map", "ndcg@10", "p@10", "recall@1000"]),
    default="map",
    help="Compare by this measure",
)
@click.option(
    "--baseline", metavar="SYSTEM", default="bm25", help="Compare the other systems with this one"
)
@json_file_option
def compare(
    targets: Sequence[str],
    data: Path | None,
    runs: Mapping[str, str],
    measure: str,
    baseline: str,
    json_file: Path | None,
) -> None:
    """Compare rankers and other systems on every TARGET.

    These are all rankers, those of plug-ins included, the published method, and runs of other
    systems (--run).
    TARGET is as for klsa-eval map. A run file has lines of six columns, in any order: query Q0
    document rank score tag. It is sorted as by trec_eval: by score, then by document ID, both
    descending. A judged query that is missing from the run counts 0.

    A difference of at most 0.01 is a tie. The p values are two-sided, of a paired randomisation
    test (100,000 flips with a fixed seed, or all of them for up to 16 queries) and of a paired
    t-test, each with Holm's correction over the systems of the target.
    """
    require("eval")
    from klsa_search.evaluation.comparison import compare as compare_systems
    from klsa_search.evaluation.systems import all_systems, judge_runs, judge_systems

    rivals = all_systems()
    _check_names([system.name for system in rivals], runs, baseline)
    collections = open_targets(targets, data)
    for name, file in runs.items() if len(collections) > 1 else ():
        if _TARGET not in file:
            raise click.BadParameter(
                f"{name}={file}: with several targets, FILE must contain {_TARGET}",
                param_hint="--run",
            )
    make_folders(json_file)
    # Runs first: their errors show before any index is built.
    judged: dict[str, dict[str, RunMeasures]] = {}
    for target, collection in collections.items():
        files = {name: Path(file.replace(_TARGET, collection.name)) for name, file in runs.items()}
        judged[target] = judge_runs(collection, files, measures=(measure,))
        echo_notes(
            f"{name} has results for {measured.answered} of the {len(measured.queries)} judged "
            f"queries of {collection.name}; the others count 0"
            for name, measured in judged[target].items()
            if measured.answered < len(measured.queries)
        )
    comparisons = []
    notes: list[str] = []
    with progress_bar() as bar, temporary_indexes() as index_of:
        for target, collection in collections.items():
            systems = judge_systems(
                collection,
                partial(index_of, target, collection),
                systems=rivals,
                measures=(measure,),
                progress=bar,
                note=notes.append,
            )
            comparisons.append(
                compare_systems(
                    systems | judged[target],
                    target=collection.name,
                    measure=measure,
                    baseline=baseline,
                )
            )
    if json_file is not None:
        write_json_file(json_file, {c.target: c.as_json() for c in comparisons})
    echo_notes(notes)
    _write_comparisons(comparisons)


def _checked_runs(options: Sequence[str]) -> dict[str, str]:
    """Return the files of options NAME=FILE by name; FILE may contain further signs `=`."""
    files: dict[str, str] = {}
    for option in options:
        name, equals, file = option.partition("=")
        if not (name.strip() and equals and file):
            raise click.BadParameter(f"{option!r} is not of the form NAME=FILE")
        if name in files:
            raise click.BadParameter(f"two runs are named `{name}`: give each a different name")
        files[name] = file
    return files


def _check_names(systems: Sequence[str], runs: Mapping[str, str], baseline: str) -> None:
    for name in runs:
        if name in systems:
            raise click.BadParameter(
                f"`{name}` is a built-in system: give the run another name", param_hint="--run"
            )
    compared = [*systems, *runs]
    if baseline not in compared:
        raise click.BadParameter(
            f"unknown system {baseline!r}; choose one of {', '.join(compared)}",
            param_hint="--baseline",
        )


def _write_comparisons(comparisons: Sequence[Comparison]) -> None:
    from klsa_search.evaluation.comparison import TIE

    for comparison in comparisons:
        queries = len(comparison.systems[comparison.baseline].values)
        echo(f"{comparison.target}: {comparison.measure} over {queries} judged queries")
        echo()
        _write_contrasts(comparison)
        echo()
        _write_extremes(comparison)
        echo()
    echo(
        f"gain, p and the rest are against {comparisons[0].baseline}. p: randomisation test and "
        "t-test, two-sided, Holm-corrected."
    )
    echo(f"Ties differ by at most {TIE:g}; hurt is the share of losses.")


def _write_contrasts(comparison: Comparison, *, with_intervals: bool = False) -> None:
    titles = ["gain", "p rand", "p t", "won", "lost", "tied", "hurt"]
    rows = []
    for name, system in comparison.systems.items():
        cells = [""] * len(titles) if system.contrast is None else _cells(system.contrast)
        if with_intervals:
            low_high = system.interval
            cells.insert(0, "" if low_high is None else f"{low_high[0]:.4f} to {low_high[1]:.4f}")
        rows.append((name, f"{system.mean:.4f}", *cells))
    if with_intervals:
        titles.insert(0, "95%")
    write_table(["system", *numbers(comparison.measure, *titles)], rows)


def _cells(contrast: Contrast) -> list[str]:
    return [
        "" if contrast.gain is None else f"{contrast.gain:+.1%}",
        _p_value(contrast.randomisation_test.holm),
        _p_value(contrast.t_test.holm),
        str(contrast.wins),
        str(contrast.losses),
        str(contrast.ties),
        f"{contrast.hurt:.1%}",
    ]


def _p_value(p: float) -> str:
    return "<.0001" if p < 0.0001 else f"{p:.4f}"


def _write_extremes(comparison: Comparison) -> None:
    title = f"query:{comparison.baseline}→system"
    rows = []
    for name, system in comparison.systems.items():
        if system.contrast is not None:
            rows.append((name, "worst", _queries(system.contrast.worst)))
            rows.append(("", "best", _queries(system.contrast.best)))
    write_table(["system", "end", *wrapped(title)], rows)


def _queries(counts: Sequence[AtQuery]) -> str:
    # No spaces inside, so that a narrow terminal wraps between queries.
    return "  ".join(f"{at.query}:{at.baseline:.2f}→{at.value:.2f}" for at in counts) or "none"


@contextmanager
def temporary_indexes() -> Iterator[Callable[..., Index]]:
    """Yield a function that builds temporary indexes, which are closed and removed at the end."""
    from klsa_search.collection.public_collections import folder_name
    from klsa_search.indexing.build import build

    indexes: dict[tuple[str, str, str], Index] = {}
    with tempfile.TemporaryDirectory(prefix="klsa-eval-") as home, ExitStack() as closing:

        def index_of(
            target: str, collection: Collection, preset: str, ranker: RankerName = "klsa"
        ) -> Index:
            """Return the index of a preset, built once, also for cran and cran-1837."""
            key = (folder_name(target), preset, ranker)
            if key not in indexes:
                name = f"{len(indexes)}-{preset}"
                index = build(collection, name=name, home=home, preset=preset, ranker=ranker)
                indexes[key] = closing.enter_context(index)
            return indexes[key]

        yield index_of


def open_targets(targets: Sequence[str], data: Path | None) -> dict[str, Collection]:
    """Return the collections by target; two targets with the same name are wrong usage."""
    from klsa_search.collection.opening import open_collection

    collections: dict[str, Collection] = {}
    owners: dict[str, str] = {}
    for target in dict.fromkeys(targets):
        collection = open_collection(target, data=data)
        owner = owners.setdefault(collection.name, target)
        if owner != target:
            raise click.UsageError(
                f"{owner} and {target} are both named `{collection.name}`: evaluate one at a time"
            )
        collections[target] = collection
    return collections
