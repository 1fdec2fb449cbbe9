"""Draw the figures of docs/explanations/effectiveness.md from what the commands wrote.

python -m studies.effectiveness.figures OUT --ablation FILE --leave-one-out FILE
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search.core.drawing import GREY, PALE, save_figure
from studies.effectiveness.measuring import FOUR, TARGETS

SYSTEMS = {"default": "#0b2e59", "rm3": "#a8681c", "published": "#b23a2e"}


def draw_changes(ablation: dict[str, Any], path: Path) -> None:
    """Change of average precision against BM25, each system's queries sorted by it."""
    base = ablation["bm25"]["precisions"]
    with save_figure(path, 7.2, 5.2) as figure:
        panels = figure.subplots(2, 2, sharey=True).ravel()
        for axes, name in zip(panels, FOUR, strict=True):
            axes.axhline(0, color=GREY, linewidth=0.8)
            for system, colour in SYSTEMS.items():
                change = np.sort(np.array(ablation[system]["precisions"][name]) - base[name])
                places = (np.arange(len(change)) + 0.5) / len(change)
                label = f"{system}, {(change < -0.01).mean():.0%} hurt".replace("%", " %")
                axes.plot(places, change, color=colour, linewidth=1.6, label=label)
            axes.set_title(f"{name}, {len(change)} queries", loc="left", fontsize="medium")
            axes.legend(frameon=False, fontsize="small", loc="upper left")
            axes.grid(axis="y", color=PALE, linewidth=0.8)
            axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        figure.supxlabel("share of the queries, the worst first", fontsize="medium")
        figure.supylabel("change of average precision against BM25", fontsize="medium")


def draw_plateau(leave_one_out: dict[str, Any], path: Path) -> None:
    """Gain over BM25 of every point of the grid; the default and the held-out choice marked."""
    points, chosen = leave_one_out["points"], leave_one_out["chosen"]
    with save_figure(path, 7.2, 3.4) as figure:
        axes = figure.subplots()
        for place, name in enumerate(TARGETS):
            gains = np.sort([100 * point["measures"][name]["gain"] for point in points])
            # Spread by rank, so that no two points hide each other and nothing is random.
            aside = np.resize([0, 0.1, -0.1, 0.2, -0.2], len(gains))
            axes.plot(place + aside, gains, "o", color="#9dbcd8", markersize=3.5, zorder=1)
            default = 100 * points[0]["measures"][name]["gain"]
            label = "default" if place == 0 else None
            axes.plot(place, default, "D", color="#0b2e59", markersize=7, zorder=3, label=label)
            if name in chosen:
                held_out = 100 * chosen[name]["measures"][name]["gain"]
                label = "chosen on the other three" if place == 0 else None
                axes.plot(
                    place, held_out, "s", color="#b23a2e", markersize=9, zorder=2, label=label
                )
        axes.set_xticks(range(len(TARGETS)), TARGETS)
        axes.set_ylabel("gain over BM25, %")
        axes.set_ylim(bottom=0)
        axes.set_axisbelow(True)
        axes.grid(axis="y", color=PALE, linewidth=0.8)
        axes.legend(frameon=False, fontsize="small", loc="upper left", ncols=2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--ablation", type=Path, required=True)
    parser.add_argument("--leave-one-out", type=Path, required=True)
    options = parser.parse_args()
    draw_changes(_read(options.ablation), options.out / "effectiveness-queries.png")
    draw_plateau(_read(options.leave_one_out), options.out / "effectiveness-plateau.png")


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


if __name__ == "__main__":
    main()
