"""Style and output of all figures; the same content gives the same bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klsa_search.core.installation import require
from klsa_search.errors import SettingsError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

FORMATS = ("png", "svg", "pdf")
"""File formats of figures, which are also their suffixes."""

GREY = "#4b5563"
PALE = "#e5e7eb"
INK = "#1d1c1a"
TONES = ("#0072b2", "#d55e00", "#009e73", "#b65f92", "#a37400", "#2f8fc4", "#5a5a5a", "#7a5bb0")
"""Colours of Okabe and Ito, safe for colour blindness; the pale ones are darkened for white paper.

Figures do not rely on colour alone: series are also labelled or marked.
"""

_FONT = "DejaVu Sans"  # comes with matplotlib
_BOXES = "Last Resort"  # a font with a box for every character

_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "figure.titleweight": "bold",
    "font.size": 10,
    "grid.color": PALE,
    "grid.linewidth": 0.8,
    "legend.fontsize": "small",
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "klsa-search",  # ids of the elements; random otherwise
}
# Metadata that matplotlib would write: the date and its version.
_METADATA = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def label(
    axes: Axes, text: str, point: Sequence[float], offset: tuple[float, float], **style: object
) -> Annotation:
    """Write a text at a place of the axes, moved by an offset in points; return it."""
    x, y = point
    return axes.annotate(text, (x, y), xytext=offset, textcoords="offset points", **style)  # type: ignore[arg-type]  # checked by matplotlib


def fonts_of(words: Iterable[str]) -> list[str]:
    """Return the names of fonts that together have the characters of `words`.

    The default comes first, then those of matplotlib with any that it lacks, that with most first:
    each glyph is of the first font that has it. Warns once of characters that no font has.
    Cost: some ms, and about 3 ms per font if the default lacks a character.
    """
    from matplotlib.font_manager import fontManager, get_font

    missing = {ord(character) for word in words for character in word if not character.isspace()}
    missing -= get_font(fontManager.findfont(_FONT)).get_charmap().keys()
    installed = {font.name for font in fontManager.ttflist if missing}
    has = {
        name: missing & get_font(fontManager.findfont(name)).get_charmap().keys()
        for name in sorted(installed)
        if not name.startswith(_BOXES)
    }
    if lacking := missing.difference(*has.values()):
        characters = "".join(map(chr, sorted(lacking)))
        warnings.warn(
            f"no installed font has {characters!r}, drawn as boxes; install one that does, such as "
            "Noto Sans (CJK), and delete the font cache of matplotlib, "
            "~/.cache/matplotlib/fontlist*.json",
            stacklevel=2,
        )
    fonts = sorted(filter(has.get, has), key=lambda name: -len(has[name]))
    return [_FONT, *fonts]


@contextmanager
def save_figure(
    path: Path, width: float, height: float, words: Iterable[str] = ()
) -> Iterator[Any]:
    """Yield an empty figure and write it to `path` when the block ends.

    path           its suffix chooses the format
    width, height  in inches
    words          text of the figure, in any script, which chooses the fonts; see `fonts_of`
    SettingsError for another suffix, MissingExtra without matplotlib, OSError.
    """
    ending = path.suffix[1:].lower()
    if ending not in FORMATS:
        raise SettingsError(
            f"`{path}` is not a .png, .svg or .pdf; end its name in one of these", field="path"
        )
    require("figures")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style = {**_STYLE, "font.family": fonts_of(words)}
    with rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # each was reported
        figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
        yield figure
        figure.savefig(path, metadata=_METADATA[ending])
