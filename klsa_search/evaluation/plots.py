"""Figures: MAP against α for several z [KLSA Figure 1], and gains and losses by query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search.collection.model import Collection
from klsa_search.core.drawing import GREY, PALE, label, save_figure
from klsa_search.core.parameters import SearchParameters
from klsa_search.core.progress import Progress, steps
from klsa_search.evaluation.comparison import TIE, Comparison
from klsa_search.evaluation.measures import Judge, rank_best
from klsa_search.evaluation.systems import check_judgements, judged_queries
from klsa_search.search.index import Index

_WIN = "#1b6ca8"
_LOSS = "#b23a2e"
_TIE = "#9ca3af"
_FEW = 80
_PANEL = (7.2, 2.1)  # inches


def draw_differences(comparisons: Sequence[Comparison], system: str, path: Path) -> None:
    """Draw the differences of one system to the baseline, largest first, one panel per target.

    All panels have the same scale; p is the corrected one of the randomisation test. KeyError if a
    comparison does not have the system; OSError; MissingExtra without matplotlib (extra `figures`).
    """
    width, height = _PANEL
    with save_figure(path, width, height * len(comparisons) + 0.5) as figure:
        panels = figure.subplots(len(comparisons), sharey=True, squeeze=False)[:, 0]
        for axes, comparison in zip(panels, comparisons, strict=True):
            _draw_panel(axes, comparison, system)
        first = comparisons[0]
        title = f"{system} against {first.baseline}, query by query"
        figure.suptitle(title, x=0.01, ha="left")
        figure.supylabel(f"difference in {first.measure}", fontsize="medium")
        panels[-1].set_xlabel(
            f"queries, largest gain first; grey: at most {TIE:g} either way; dashed: the mean"
        )


def _draw_panel(axes: Any, comparison: Comparison, system: str) -> None:
    differences = np.sort(comparison.differences(system))[::-1]
    count = len(differences)
    contrast = comparison.systems[system].contrast
    assert contrast is not None, "the baseline has no contrast"
    colours = np.repeat(
        [_WIN, _TIE, _LOSS], [contrast.wins, contrast.ties, contrast.losses]
    ).tolist()
    positions = (np.arange(count) + 0.5) / count
    # Gaps between many thin bars would cause moiré.
    width = (0.86 if count <= _FEW else 1) / count
    axes.bar(positions, differences, width=width, color=colours, linewidth=0, zorder=2)
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=3)
    mean = float(differences.mean())
    axes.axhline(mean, color=GREY, linewidth=0.8, linestyle=(0, (5, 3)), zorder=3)
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.grid(axis="y")
    axes.set_title(comparison.target, fontsize="medium")
    p = contrast.randomisation_test.holm
    facts = (
        f"mean {mean:+.3f}, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'};  "
        f"{contrast.wins} won, {contrast.ties} tied, {contrast.losses} lost"
    )
    axes.set_title(facts, loc="right", fontsize="small", weight="normal", color=GREY)


_COLOURS = ("#0b2e59", "#1b6ca8", "#1f8a70", "#a8681c", "#b23a2e")
_MARKERS = ("o", "s", "^", "D", "v")


def draw_grid(grid: Grid, path: Path) -> None:
    """Draw MAP against α: a line for each z, a grey one for BM25 and a dashed one for LSI.

    OSError; MissingExtra without matplotlib (extra `figures`).
    """
    values = [grid.bm25, grid.lsi, *(value for line in grid.points.values() for value in line)]
    margin = 0.08 * (max(values) - min(values)) or 0.01
    bottom = min(values) - margin
    with save_figure(path, 7.2, 4.5) as figure:
        axes = figure.add_subplot()
        axes.set(
            title=f"Kernel LSA on {grid.collection}",
            xlabel="α, share of the expansion (0 is BM25)",
            ylabel="mean average precision",
            xlim=(-0.02, 1.02),
            ylim=(bottom, max(values) + 2 * margin),
            xticks=grid.alphas,
        )
        looks = zip(grid.points.items(), _COLOURS, _MARKERS, strict=True)
        for (z, line), colour, marker in looks:
            axes.plot(
                grid.alphas, line, color=colour, marker=marker, markersize=4.5, label=f"z = {z}"
            )
        axes.axhspan(bottom, grid.bm25, color=PALE, zorder=0, label=f"BM25 {grid.bm25:.3f}")
        axes.axhline(grid.lsi, color=GREY, linestyle=(0, (5, 3)), label=f"LSI {grid.lsi:.3f}")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        z, alpha, value = grid.best()
        align = "right" if alpha > 0.8 else "left" if alpha < 0.2 else "center"
        label(axes, f"z = {z}, α = {alpha:g}: {value:.3f}", (alpha, value), (0, 9), ha=align)


ALPHAS = tuple(tenths / 10 for tenths in range(11))
SEEDS = (1, 5, 10, 20, 50)
"""α and z of the figure."""


@dataclass(frozen=True)
class Grid:
    """MAP by α and z on one collection, and that of BM25 and LSI.

    `points` has one MAP for each of `alphas`, by z.
    """

    collection: str
    bm25: float
    lsi: float
    alphas: tuple[float, ...]
    points: dict[int, tuple[float, ...]]

    def best(self) -> tuple[int, float, float]:
        """Return z, α and MAP of the best point; ties go to the smallest z."""
        flat = [
            (z, alpha, value)
            for z, values in self.points.items()
            for alpha, value in zip(self.alphas, values, strict=True)
        ]
        return max(flat, key=lambda point: point[2])

    def as_json(self) -> dict[str, Any]:
        """Return the grid as JSON."""
        return {
            "collection": self.collection,
            "bm25": self.bm25,
            "lsi": self.lsi,
            "alpha": list(self.alphas),
            "map": {str(z): list(values) for z, values in self.points.items()},
        }


def measure_grid(
    collection: Collection,
    index: Index,
    *,
    progress: Progress | None = None,
    note: Callable[[str], object] | None = None,
) -> Grid:
    """Return MAP of Kernel LSA by α and z, and of BM25 and LSI on the same index.

    progress  called with ("points", done, total)
    note      called with a text for judgements whose query or document does not exist

    Cost: 57 runs of the judged queries. Raise CollectionError as `judge_systems`.
    """
    judgements = collection.judgements()
    judge = Judge(judgements, measures=("map",))
    queries = judged_queries(collection, judge)
    check_judgements(collection.name, judgements, queries, index, note)
    step = steps(progress, "points", len(ALPHAS) * len(SEEDS) + 2)

    def mean(parameters: SearchParameters) -> float:
        value = judge.measure(rank_best(index, queries, **parameters)).means()["map"]
        step()
        return value

    return Grid(
        collection=collection.name,
        bm25=mean({"ranker": "bm25"}),
        lsi=mean({"ranker": "lsi"}),
        alphas=ALPHAS,
        points={
            z: tuple(mean({"ranker": "klsa", "alpha": alpha, "z": z}) for alpha in ALPHAS)
            for z in SEEDS
        },
    )
