"""Figures of an index: its spectrum and its map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from klsa_search.core.array_types import Matrix
from klsa_search.core.drawing import GREY, INK, TONES, label, save_figure
from klsa_search.core.wording import counted
from klsa_search.errors import QueryError
from klsa_search.mining.map import DocumentMap, document_map
from klsa_search.search.index import Index

_WORDS: Final = 2
_FEW: Final = 2_000
_LETTERS: Final = 32
_LABELLED: Final = 50  # largest map that shows the titles of its documents


def draw_spectrum(index: Index, path: Path) -> None:
    """Draw the eigenvalues, and the cumulative share of the trace.

    Raise QueryError for an index without eigenvalues; for other errors see `save_figure`.
    """
    eigenvalues = np.asarray(index.arrays.eigenvalues, np.float64)
    if not len(eigenvalues) or eigenvalues[0] <= 0:
        raise QueryError(
            f"index `{index.name}` has no eigenvalue above 0: its documents are all alike",
            field="what",
        )
    captured = index.manifest.spectra["bm25"].captured
    shares = np.cumsum(eigenvalues) / eigenvalues.sum() * captured
    numbers = np.arange(1, len(eigenvalues) + 1)
    used = index.arrays.latent_dimensions
    with save_figure(path, 7.2, 3.2, [index.name]) as figure:
        left, right = figure.subplots(1, 2)
        left.plot(numbers, eigenvalues, color=TONES[0], linewidth=1.6)
        left.set_ylabel("eigenvalue")
        left.set_ylim(0, None)
        right.plot(numbers, 100 * shares, color=TONES[0], linewidth=1.6)
        right.set_ylabel("explained, % of the trace")
        right.set_ylim(0, 100)
        for axes in (left, right):
            axes.set_xlabel("number of the eigenvector")
            axes.set_xlim(1, max(len(eigenvalues), 2))
            axes.grid(axis="y")
        if 0 < used < len(eigenvalues):
            for axes in (left, right):
                axes.axvline(used, color=GREY, linewidth=1, linestyle=(0, (5, 3)))
            text = f"latent space: {used}, {shares[used - 1]:.0%}"
            label(right, text, (used, 96), (4, 0), fontsize="small", color=GREY, va="top")
        left.set_title(f"Spectrum of {index.name}")


def draw_map(index: Index, path: Path) -> None:
    """Draw the map, with titles of at most 50 documents, else with the words of its clusters.

    Raise QueryError; for other errors see `save_figure`.
    """
    drawn = document_map(index, words=_WORDS)
    documents = index.documents_at(drawn.doc_ids.tolist()) if len(drawn) <= _LABELLED else []
    titles = [shorten(one.title or one.id, _LETTERS, placeholder="…") for one in documents]
    words = [] if titles else [word for one in drawn.clusters for word in one.words]
    shown = [index.name, *titles, *words]
    with save_figure(path, 7.2, 7.2, shown) as figure:
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set_xlim(-0.02, 1.02)
        low, high = (
            (drawn.positions[:, 1].min(), drawn.positions[:, 1].max()) if len(drawn) else (0, 1)
        )
        axes.set_ylim(low - 0.04, high + 0.04)
        tones = np.array([one.tone for one in drawn.clusters], np.int64)[drawn.cluster]
        size = 12 if len(drawn) < _FEW else 4 if len(drawn) < 10 * _FEW else 2
        axes.scatter(
            *drawn.positions.T,
            s=size,
            c=np.array(TONES)[tones],
            alpha=0.75,
            linewidths=0,
            rasterized=True,
        )
        axes.set_title(f"{index.name}: {counted(drawn.documents, 'document')}")
        figure.draw_without_rendering()  # so that the extents of words are known
        if titles:
            _write_titles(axes, titles, drawn.positions)
        else:
            _name_clusters(axes, drawn)


PICTURES: Final[Mapping[str, Callable[[Index, Path], None]]] = MappingProxyType(
    {"spectrum": draw_spectrum, "map": draw_map}
)
"""Figures of an index, by name."""


def _write_titles(axes: Any, titles: Sequence[str], positions: Matrix) -> None:
    """Write each title next to its point, towards the centre of the map, if there is space."""
    taken: list[Any] = []
    for title, point in zip(titles, positions.tolist(), strict=True):
        side, align = (-5, "right") if point[0] > 0.5 else (5, "left")
        offsets = [(side, dy) for dy in (0, 9, -9, 18, -18)]
        _write(axes, title, point, offsets, taken, ha=align, fontsize="x-small")


def _name_clusters(axes: Any, drawn: DocumentMap) -> None:
    from matplotlib.patheffects import withStroke

    outline = [withStroke(linewidth=2.5, foreground="white")]
    taken: list[Any] = []
    offsets = [(0, dy) for dy in (0, 13, -13, 26, -26)]
    style = {"ha": "center", "fontsize": "small", "fontweight": "bold"}
    for one in drawn.clusters:
        words = " · ".join(one.words)
        _write(axes, words, (one.x, one.y), offsets, taken, path_effects=outline, **style)


def _write(
    axes: Any,
    words: str,
    point: Sequence[float],
    offsets: Sequence[tuple[int, int]],
    taken: list[Any],
    **style: Any,
) -> None:
    """Write words at the first offset from a place, in points, that overlaps no earlier words."""
    for offset in offsets:
        text = label(axes, words, point, offset, va="center", color=INK, **style)
        box = text.get_window_extent()
        if not any(box.overlaps(other) for other in taken):
            taken.append(box)
            return
        text.remove()
