"""How every figure looks and is written: the same content gives the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from klsa_search.errors import SettingsError
from klsa_search.extras import require

FORMATS = ("png", "svg", "pdf")
"""The file name endings that a figure can have."""

GREY = "#4b5563"
PALE = "#e5e7eb"
INK = "#1d1c1a"
TONES = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#b65f92",
    "#a37400",
    "#2f8fc4",
    "#5a5a5a",
    "#7a5bb0",
)
"""Colours told apart by whoever sees fewer: those of Okabe and Ito, their pale ones darkened for
white paper. What has to be read in grey is named or marked besides.
"""

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
_METADATA = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def outlined() -> list[Any]:
    """Effects of a text that is read above points: a white edge."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]


@contextmanager
def drawn(path: Path, width: float, height: float) -> Iterator[Any]:
    """Give an empty figure of this size in inches; when the block ends, it is written to `path`.

    The ending of `path` chooses the format. SettingsError for another ending, MissingExtra
    without matplotlib, OSError.
    """
    ending = path.suffix[1:].lower()
    if ending not in FORMATS:
        raise SettingsError(
            f"{path}: a figure is a .png, an .svg or a .pdf: end its name in one of these",
            field="path",
        )
    require("figures")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
        yield figure
        figure.savefig(path, metadata=_METADATA[ending])
