"""Build time and query time on the four SMART collections.

    python -m benchmarks.collections [--data DIR] [--rounds 5] [--json FILE]

Builds each collection once to warm the interpreter and `--rounds` times counted; then runs every
query in the process, ranker by ranker in turn, as many rounds. Prints medians and 99th percentiles.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search import Index, build
from klsa_search.collection import open_collection
from klsa_search.core.config import RankerName

NAMES = ("cran", "cisi", "cacm", "med")
RANKERS: tuple[RankerName, ...] = ("bm25", "lsi", "klsa")


def time_builds(name: str, data: Path | None, home: Path, rounds: int) -> tuple[Index, list[float]]:
    """Build `rounds` + 1 times; return the last index and the seconds of all but the first."""
    seconds = []
    for _ in range(rounds + 1):
        begun = time.perf_counter()
        index = build(name, name=name, home=home, data=data)
        seconds.append(time.perf_counter() - begun)
    return index, seconds[1:]


def time_queries(index: Index, queries: list[str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each `rank(query, k=10)`, rankers in turn within each round."""
    taken: dict[str, list[float]] = {ranker: [] for ranker in RANKERS}
    for round_number in range(rounds + 1):
        for ranker in RANKERS:
            for query in queries:
                begun = time.perf_counter()
                index.rank(query, k=10, ranker=ranker)
                if round_number:
                    taken[ranker].append(1000 * (time.perf_counter() - begun))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report: dict[str, Any] = {}
    print(f"{'':6}{'build s':>9}", *(f"{r + ' ms':>10}{'p99':>7}" for r in RANKERS))
    with tempfile.TemporaryDirectory() as home:
        for name in NAMES:
            queries = [q.text for q in open_collection(name, data=options.data).queries()]
            index, builds = time_builds(name, options.data, Path(home), options.rounds)
            taken = time_queries(index, queries, options.rounds)
            row: dict[str, Any] = {
                "build_seconds": statistics.median(builds),
                "query_ms": {r: statistics.median(taken[r]) for r in RANKERS},
                "query_ms_p99": {r: float(np.quantile(taken[r], 0.99)) for r in RANKERS},
            }
            report[name] = row
            columns = (f"{row['query_ms'][r]:10.3f}{row['query_ms_p99'][r]:7.3f}" for r in RANKERS)
            print(f"{name:6}{row['build_seconds']:9.2f}", *columns)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
