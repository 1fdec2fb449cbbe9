"""Figure 1 of the paper: MAP of Kernel LSA against α for several z, on a test collection.

python -m studies.reproduce.figure_1 TARGET --out FILE [--help]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klsa_search.cli.compare import open_targets, temporary_indexes
from klsa_search.cli.main import Command, run
from klsa_search.cli.options import FILE, data_option
from klsa_search.cli.output import echo, echo_notes, make_folders
from klsa_search.core.installation import require
from klsa_search.core.progress import progress_bar, steps

if TYPE_CHECKING:
    from klsa_search.core.parameters import SearchParameters

ALPHAS = tuple(tenths / 10 for tenths in range(11))
SEEDS = (1, 5, 10, 20, 50)
"""α and z of the figure."""

_COLOURS = ("#0b2e59", "#1b6ca8", "#1f8a70", "#a8681c", "#b23a2e")
_MARKERS = ("o", "s", "^", "D", "v")

Lines = Mapping[int, Sequence[float]]
"""MAP at each of `ALPHAS`, by z."""


@click.command(cls=Command)
@click.argument("target")
@click.option("--out", type=FILE, required=True, help="Write the figure to this file")
@data_option
def figure(target: str, out: Path, data: Path | None) -> None:
    """Draw MAP against α for several z.

    The index is that of the preset "paper"; BM25 and LSI on the same index are the base lines.
    """
    require("eval")
    from klsa_search.evaluation.measures import Judge, rank_best
    from klsa_search.evaluation.systems import check_judgements, judged_queries

    (collection,) = open_targets([target], data).values()
    make_folders(out)
    judgements = collection.judgements()
    judge = Judge(judgements, measures=("map",))
    queries = judged_queries(collection, judge)
    notes: list[str] = []
    with progress_bar() as bar, temporary_indexes() as index_of:
        index = index_of(target, collection, "paper")
        check_judgements(collection.name, judgements, queries, index, notes.append)
        step = steps(bar, "points", len(ALPHAS) * len(SEEDS) + 2)

        def measured(parameters: SearchParameters) -> float:
            value = judge.measure(rank_best(index, queries, **parameters)).means()["map"]
            step()
            return value

        bm25, lsi = measured({"ranker": "bm25"}), measured({"ranker": "lsi"})
        lines = {
            z: [measured({"ranker": "klsa", "alpha": alpha, "z": z}) for alpha in ALPHAS]
            for z in SEEDS
        }
    echo_notes(notes)
    draw(collection.name, bm25, lsi, lines, out)
    z, alpha, value = best_of(lines)
    echo(f"{out}: best at z = {z}, α = {alpha:g}: {value:.4f}; BM25 {bm25:.4f}, LSI {lsi:.4f}")


def best_of(lines: Lines) -> tuple[int, float, float]:
    """Return z, α and MAP of the best point; ties go to the smallest z."""
    points = (
        (z, alpha, value)
        for z, line in lines.items()
        for alpha, value in zip(ALPHAS, line, strict=True)
    )
    return max(points, key=lambda point: point[2])


def draw(collection: str, bm25: float, lsi: float, lines: Lines, path: Path) -> None:
    """Draw a line for each z, a grey area below BM25 and a dashed line for LSI."""
    from klsa_search.core.drawing import GREY, PALE, label, save_figure

    values = [bm25, lsi, *(value for line in lines.values() for value in line)]
    margin = 0.08 * (max(values) - min(values)) or 0.01
    bottom = min(values) - margin
    with save_figure(path, 7.2, 4.5) as figure:
        axes = figure.add_subplot()
        axes.set(
            title=f"Kernel LSA on {collection}",
            xlabel="α, share of the expansion (0 is BM25)",
            ylabel="mean average precision",
            xlim=(-0.02, 1.02),
            ylim=(bottom, max(values) + 2 * margin),
            xticks=ALPHAS,
        )
        for (z, line), colour, marker in zip(lines.items(), _COLOURS, _MARKERS, strict=True):
            axes.plot(ALPHAS, line, color=colour, marker=marker, markersize=4.5, label=f"z = {z}")
        axes.axhspan(bottom, bm25, color=PALE, zorder=0, label=f"BM25 {bm25:.3f}")
        axes.axhline(lsi, color=GREY, linestyle=(0, (5, 3)), label=f"LSI {lsi:.3f}")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        z, alpha, value = best_of(lines)
        align = "right" if alpha > 0.8 else "left" if alpha < 0.2 else "center"
        label(axes, f"z = {z}, α = {alpha:g}: {value:.3f}", (alpha, value), (0, 9), ha=align)


main = partial(run, figure)

if __name__ == "__main__":
    main()
