"""How far the halves of documents can be trusted where there are no judgements.

    python -m studies.tuning_margin [--collections ../shared/collections] [--json FILE]

Without judgements `klsa-index tune` chooses α by halves. Under several settings, those of both
presets and some drawn at random, every pair of α is asked for the better one twice: of the
collection's judgements, and of its halves. `tune` believes the halves where the lower end of the
95 % interval of the gain is above MARGIN, or for a smaller α MARGIN_OF_LESS; the table counts such
pairs, those of them in which the promised winner has less MAP than the loser by the judgements, and
shows the largest promise that was not kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import permutations
from pathlib import Path

import numpy as np

from klsa_search.collection import open_collection
from klsa_search.core.config import PRESETS
from klsa_search.evaluation.candidates import ALPHAS, Candidate, draw, measure_candidates
from klsa_search.evaluation.measures import Judge
from klsa_search.evaluation.tuning import MARGIN, MARGIN_OF_LESS, halve, judge_by_first_halves
from klsa_search.indexing.build import build

BASES = 8
"""Settings of each preset under which α is varied: its own, and seven drawn."""
NAMES = ("cran", "cisi", "cacm", "med")


def promises(name: str, data: Path, home: Path) -> list[tuple[bool, float, float]]:
    """Pairs of α: whether it rises, lower end of the gain on halves, gain by judgements."""
    collection = open_collection(name, data=data)
    judge = Judge(collection.judgements(), ("map",))
    found = []
    for preset in sorted(PRESETS):
        index = build(collection, name=name, home=home, preset=preset)
        settings = index.settings.model_dump()
        halves = halve(collection.documents(), index.analyzer)
        first = build(halves.first, name=f"{name}-first", home=home, **settings)
        second = build(halves.second, name=f"{name}-second", home=home, **settings)
        by_halves = Judge(judge_by_first_halves(halves, first), ("map",))
        for base in draw(index.settings)[:BASES]:
            tried = [
                Candidate(base.lengths, {**base.parameters, "ranker": "klsa", "alpha": alpha})
                for alpha in ALPHAS
            ]
            judged = measure_candidates(index, tried, collection.queries(), judge)
            table = measure_candidates(second, tried, halves.queries, by_halves)
            found += pairs_of(table, judged.mean(axis=0))
    return found


def pairs_of(table: np.ndarray, judged: np.ndarray) -> list[tuple[bool, float, float]]:
    found = []
    for before, after in permutations(range(len(judged)), 2):
        gains = table[:, after] - table[:, before]
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        low = (gains.mean() - 1.96 * error) / table[:, before].mean()
        found.append((after > before, float(low), float(judged[after] / judged[before] - 1)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--collections", type=Path, default=Path("../shared/collections"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    head = ("", "alpha", "pairs", "believed", "broken", "worst", "margin needed")
    print("{:6}{:>8}{:>8}{:>10}{:>8}{:>8}{:>15}".format(*head))
    rows: dict[str, dict[str, dict[str, float | None]]] = {}
    with tempfile.TemporaryDirectory() as home:
        for name in NAMES:
            pairs = promises(name, options.collections, Path(home))
            rows[name] = {}
            for word, rises, margin in (("more", True, MARGIN), ("less", False, MARGIN_OF_LESS)):
                some = [(low, gain) for up, low, gain in pairs if up is rises]
                believed = [gain for low, gain in some if low > margin]
                broken = sum(gain < 0 for gain in believed)
                worst = min(believed, default=None)
                needed = max((low for low, gain in some if gain < 0), default=0.0)
                rows[name][word] = {
                    "pairs": len(some),
                    "believed": len(believed),
                    "broken": broken,
                    "worst": worst,
                    "margin_needed": needed,
                }
                shown = "" if worst is None else f"{worst:+.1%}"
                print(
                    f"{name:6}{word:>8}{len(some):8,}{len(believed):10,}{broken:8}{shown:>8}"
                    f"{needed:15.4f}",
                    flush=True,
                )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
