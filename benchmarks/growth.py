"""How time, memory and disk grow with the number of documents.

    python -m benchmarks.growth QUERIES.tsv CORPUS.jsonl ... --home FOLDER [--rounds 5]
        [--json FILE] [--figure FILE]

Each corpus is built into the home unless an index of its name stands there; seconds and peak
memory of the build are those its manifest holds. Queries run one by one on one thread, in rounds
over all indexes in turn; medians. An exponent is the slope of a line through the logarithms;
queries also have one from 100,000 documents on, where what does not grow no longer hides what does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from klsa_search import build, open_index
from klsa_search.core.parameters import RankerName
from klsa_search.search.index import Index
from studies.datasets import query_texts

DEPTHS = (10, 1000)
RANKERS: tuple[RankerName, ...] = ("klsa", "bm25")
LARGE = 100_000


def measure(index: Index, texts: list[str], k: int, ranker: RankerName) -> float:
    """Milliseconds a query."""
    begun = time.perf_counter()
    for text in texts:
        index.rank(text, k, ranker=ranker)
    return 1000 * (time.perf_counter() - begun) / len(texts)


def row_of(index: Index, corpus: Path) -> dict[str, Any]:
    held = index.manifest
    size = sum(path.stat().st_size for path in index.path.iterdir())
    return {
        "documents": len(index),
        "build_seconds": held.build.seconds,
        "peak_memory": held.build.peak_memory,
        "bytes": size,
        "bytes_of_text": corpus.stat().st_size,
    }


def exponent(rows: list[dict[str, Any]], name: str, least: int = 0) -> float | None:
    """None where a line has fewer than two points to go through."""
    some = [row for row in rows if row["documents"] >= least]
    if len(some) < 2:
        return None
    sizes = np.log([row["documents"] for row in some])
    return float(np.polyfit(sizes, np.log([row[name] for row in some]), 1)[0])


def draw(rows: list[dict[str, Any]], figure: Path) -> None:
    sizes = [row["documents"] for row in rows]
    fig, (queries, builds) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for ranker, style in zip(RANKERS, ("-", "--"), strict=True):
        for k, colour in zip(DEPTHS, ("tab:blue", "tab:orange"), strict=True):
            values = [row[f"{ranker}_{k}_ms"] for row in rows]
            queries.loglog(
                sizes, values, style, color=colour, marker="o", label=f"{ranker}, k = {k}"
            )
    queries.set(xlabel="documents", ylabel="ms a query", title="Queries")
    queries.legend()
    builds.loglog(sizes, [row["build_seconds"] for row in rows], marker="o", label="seconds")
    for name, label in (("peak_memory", "peak memory, MiB"), ("bytes", "index, MiB")):
        builds.loglog(sizes, [row[name] / 2**20 for row in rows], marker="o", label=label)
    builds.set(xlabel="documents", title="Builds")
    builds.legend()
    figure.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(figure, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("queries", type=Path)
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    texts = query_texts(options.queries)
    indexes, rows = [], []
    for corpus in options.corpora:
        path = options.home / corpus.stem
        if not (path / "CURRENT").exists():
            build(corpus, name=corpus.stem, home=options.home).close()
        begun = time.perf_counter()
        indexes.append(open_index(path))
        opened = 1000 * (time.perf_counter() - begun)
        rows.append({**row_of(indexes[-1], corpus), "open_ms": opened})
    for k in DEPTHS:
        for ranker in RANKERS:
            for index in indexes:
                measure(index, texts, k, ranker)  # warm
            taken = [
                [measure(index, texts, k, ranker) for index in indexes]
                for _ in range(options.rounds)
            ]
            for row, values in zip(rows, zip(*taken, strict=True), strict=True):
                row[f"{ranker}_{k}_ms"] = statistics.median(values)
    for row in rows:
        print(json.dumps(row))
    exponents = {name: exponent(rows, name) for name in ("build_seconds", "peak_memory", "bytes")}
    for k in DEPTHS:
        for ranker in RANKERS:
            name = f"{ranker}_{k}_ms"
            exponents[name] = exponent(rows, name)
            exponents[f"{name}_from_{LARGE}"] = exponent(rows, name, LARGE)
    print(json.dumps(exponents, indent=1))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "exponents": exponents}, indent=1) + "\n")
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
