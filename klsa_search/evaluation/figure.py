"""The paper's Figure 1, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from klsa_search.drawing import GREY, PALE, drawn
from klsa_search.evaluation.grid import Grid

_COLOURS = ("#0b2e59", "#1b6ca8", "#1f8a70", "#a8681c", "#b23a2e")
_MARKERS = ("o", "s", "^", "D", "v")


def draw_grid(grid: Grid, path: Path) -> None:
    """Draw MAP against α: a line for each z, a grey one for BM25 and a dashed one for LSI.

    OSError; MissingExtra without matplotlib (extra `figures`).
    """
    with drawn(path, 7.2, 4.5) as figure:
        axes = figure.add_subplot()
        _draw_lines(axes, grid)
        _mark_best(axes, grid)
        _name_lines(axes, grid)
        axes.set_title(f"Kernel LSA on {grid.collection}", loc="left", fontweight="bold")
        axes.set_xlabel("α, share of the expansion (0 is BM25)")
        axes.set_ylabel("mean average precision")


def _draw_lines(axes: Any, grid: Grid) -> None:
    values = [grid.bm25, grid.lsi, *(value for line in grid.points.values() for value in line)]
    margin = 0.08 * (max(values) - min(values)) or 0.01
    bottom = min(values) - margin
    axes.set_ylim(bottom, max(values) + 2 * margin)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks(grid.alphas)
    axes.axhspan(bottom, grid.bm25, color=PALE, linewidth=0, zorder=0)
    axes.axhline(grid.lsi, color=GREY, linewidth=1.2, linestyle=(0, (5, 3)), zorder=1)
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
    names += [(grid.bm25, f"BM25 {grid.bm25:.3f}", GREY), (grid.lsi, f"LSI {grid.lsi:.3f}", GREY)]
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
