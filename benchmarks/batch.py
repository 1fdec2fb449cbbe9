"""Queries a second of a batch, by number of threads.

    python -m benchmarks.batch INDEX_FOLDER QUERIES.tsv [--threads 1 2] [--k 10 1000] [--rounds 5]

`Index.rank_many`, threads in turn; medians. Every answer is compared with that of one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from klsa_search import Index, open_index
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.parameters import RankerName

RANKERS: tuple[RankerName, ...] = ("klsa", "bm25")

Answers = list[tuple[DocIds, Scores]]


def seconds(
    index: Index, texts: list[str], k: int, ranker: RankerName, threads: int
) -> tuple[float, Answers]:
    begun = time.perf_counter()
    answers = index.rank_many(texts, k, threads=threads, ranker=ranker)
    return time.perf_counter() - begun, answers


def same(one: Answers, other: Answers) -> bool:
    pairs = zip(one, other, strict=True)
    return all(all(map(np.array_equal, alone, together)) for alone, together in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batch", description=__doc__)
    parser.add_argument("index", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--k", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    texts = [line.rstrip("\n").partition("\t")[2] for line in options.queries.open()]
    with closing(open_index(options.index)) as index:
        for ranker in RANKERS:
            for k in options.k:
                _, alone = seconds(index, texts, k, ranker, 1)
                taken: dict[int, list[float]] = {threads: [] for threads in options.threads}
                for _ in range(options.rounds):
                    for threads in options.threads:
                        one, answers = seconds(index, texts, k, ranker, threads)
                        taken[threads].append(one)
                        if not same(alone, answers):
                            raise SystemExit(f"{threads} threads give other answers than one")
                rates = ", ".join(
                    f"{threads}: {len(texts) / statistics.median(values):,.0f}"
                    for threads, values in taken.items()
                )
                print(f"{index.name} {ranker} k = {k}: queries/s by threads {rates}", flush=True)


if __name__ == "__main__":
    main()
