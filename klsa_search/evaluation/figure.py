"""The paper's Figure 1, drawn: the same grid gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from klsa_search.errors import MissingExtra, SettingsError
from klsa_search.evaluation.grid import Grid

FORMATS = ("png", "svg")
"""The file name endings that `draw_grid` writes."""

_STYLE: Any = {
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "DejaVu Sans",  # comes with matplotlib: every machine has it
    "font.size": 10,
    "svg.fonttype": "path",
    "svg.hashsalt": "klsa-search",  # ids of the elements; random otherwise
}
# What matplotlib would write beside the picture: the date and its own version.
_METADATA = {"png": {"Software": None}, "svg": {"Creator": None, "Date": None}}
_COLOURS = ("#0b2e59", "#1b6ca8", "#1f8a70", "#a8681c", "#b23a2e")
_MARKERS = ("o", "s", "^", "D", "v")
_REGION = "#e5e7eb"
_GREY = "#4b5563"


def draw_grid(grid: Grid, path: Path) -> None:
    """Draw MAP against α, a line for each z, above the grey of BM25 and the dashes of LSI.

    The ending of `path` chooses the format. SettingsError for another ending, MissingExtra
    without matplotlib, OSError.
    """
    ending = path.suffix[1:].lower()
    if ending not in FORMATS:
        raise SettingsError(
            f"out = {str(path)!r}: a figure is a .png or an .svg: end its name in one of the two",
            field="out",
        )
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra(
            "figures need matplotlib, which is not installed: pip install 'klsa-search[figures]'"
        ) from None
    with rc_context(_STYLE):
        figure = Figure(figsize=(7.2, 4.5), dpi=150, layout="constrained")
        axes = figure.add_subplot()
        _draw_lines(axes, grid)
        _mark_best(axes, grid)
        _name_lines(axes, grid)
        axes.set_title(f"Kernel LSA on {grid.collection}", loc="left", fontweight="bold")
        axes.set_xlabel("α, share of the expansion (0 is BM25)")
        axes.set_ylabel("mean average precision")
        figure.savefig(path, metadata=_METADATA[ending])


def _draw_lines(axes: Any, grid: Grid) -> None:
    values = [grid.bm25, grid.lsi, *(value for line in grid.points.values() for value in line)]
    margin = 0.08 * (max(values) - min(values)) or 0.01
    bottom = min(values) - margin
    axes.set_ylim(bottom, max(values) + 2 * margin)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks(grid.alphas)
    axes.axhspan(bottom, grid.bm25, color=_REGION, linewidth=0, zorder=0)
    axes.axhline(grid.lsi, color=_GREY, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1)
    looks = zip(grid.points.values(), _COLOURS, _MARKERS, strict=True)
    for line, colour, marker in looks:
        axes.plot(grid.alphas, line, color=colour, marker=marker, markersize=4.5, linewidth=1.6)


def _mark_best(axes: Any, grid: Grid) -> None:
    z, alpha, value = grid.best()
    axes.annotate(
        f"z = {z}, α = {alpha:g}: {value:.3f}",
        (alpha, value),
        xytext=(0, 9),
        textcoords="offset points",
        horizontalalignment="right" if alpha > 0.8 else "left" if alpha < 0.2 else "center",
    )


def _name_lines(axes: Any, grid: Grid) -> None:
    """Write the name of each line at its right end, where the eye leaves it."""
    names = [
        (line[-1], f"z = {z}", colour)
        for (z, line), colour in zip(grid.points.items(), _COLOURS, strict=True)
    ]
    names += [(grid.bm25, f"BM25 {grid.bm25:.3f}", _GREY), (grid.lsi, f"LSI {grid.lsi:.3f}", _GREY)]
    names.sort()
    low, high = axes.get_ylim()
    heights = _spread([height for height, _, _ in names], (high - low) / 20)
    for (_, name, colour), height in zip(names, heights, strict=True):
        axes.annotate(
            name,
            (1.02, height),
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            verticalalignment="center",
            annotation_clip=False,
        )


def _spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move ascending heights apart until each is `gap` above the one before, centred as they were.

    Heights that collide become one block around their mean; blocks that collide are merged.
    """
    blocks: list[list[float]] = []
    for height in heights:
        block = [height]
        while blocks and _foot(block, gap) < _foot(blocks[-1], gap) + gap * len(blocks[-1]):
            block = blocks.pop() + block
        blocks.append(block)
    return [_foot(block, gap) + gap * i for block in blocks for i in range(len(block))]


def _foot(block: Sequence[float], gap: float) -> float:
    """Find the height of a block's lowest line."""
    return sum(block) / len(block) - gap * (len(block) - 1) / 2
