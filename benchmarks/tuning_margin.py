"""How far the halves of documents can be trusted where there are no judgements.

    python -m benchmarks.tuning_margin [--collections ../shared/collections] [--json FILE]

Every pair of the settings that `klsa-index tune` tries is asked twice which of the two is better:
of the collection's judgements, and of its halves. `tune` believes the halves where the lower end
of the 95 % interval of the gain is above MARGIN; the table counts such pairs, those of them in
which the judgements give the promised winner less MAP than the loser, and shows the largest
promise that was not kept.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from klsa_search.collection import open_collection
from klsa_search.evaluation import Judge
from klsa_search.evaluation.tuning.halves import halve, judge_by_first_halves
from klsa_search.evaluation.tuning.procedure import MARGIN
from klsa_search.evaluation.tuning.space import draw
from klsa_search.evaluation.tuning.table import measure_candidates
from klsa_search.indexing import build

NAMES = ("cran", "cisi", "cacm", "med")


def promises(name: str, data: Path, home: Path) -> list[tuple[float, float]]:
    """Pairs of settings: lower end of the gain on halves, and the gain by judgements, as shares."""
    collection = open_collection(name, data=data)
    index = build(collection, name=name, home=home)
    candidates = draw(index.settings)
    judge = Judge(collection.judgements(), ("map",))
    judged = measure_candidates(index, candidates, collection.queries(), judge).mean(axis=0)
    halves = halve(collection.documents(), index.analyzer)
    first = build(halves.first, name=f"{name}-first", home=home)
    second = build(halves.second, name=f"{name}-second", home=home)
    judge = Judge(judge_by_first_halves(halves, first), ("map",))
    table = measure_candidates(second, candidates, halves.queries, judge)
    found = []
    for before in range(len(candidates)):
        gains = table - table[:, [before]]
        errors = gains.std(axis=0, ddof=1) / np.sqrt(len(gains))
        lows = (gains.mean(axis=0) - 1.96 * errors) / table[:, before].mean()
        kept = judged / judged[before] - 1
        others = np.arange(len(candidates)) != before
        found += list(zip(lows[others].tolist(), kept[others].tolist(), strict=True))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--collections", type=Path, default=Path("../shared/collections"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(
        f"{'':6}{'pairs':>8}{f'above {MARGIN}':>12}{'broken':>8}{'worst':>9}{'margin needed':>15}"
    )
    rows = {}
    with tempfile.TemporaryDirectory() as home:
        for name in NAMES:
            pairs = promises(name, options.collections, Path(home))
            sure = [gain for low, gain in pairs if low > MARGIN]
            needed = max((low for low, gain in pairs if gain < 0), default=0.0)
            rows[name] = {
                "pairs": len(pairs),
                "sure": len(sure),
                "broken": sum(gain < 0 for gain in sure),
                "worst": min(sure, default=None),
                "margin_needed": needed,
            }
            worst = f"{rows[name]['worst']:+.1%}" if sure else ""
            print(
                f"{name:6}{len(pairs):8,}{len(sure):12,}{rows[name]['broken']:8}{worst:>9}"
                f"{needed:15.4f}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
