"""What exploring an index costs: seconds and memory of every question, each in its own process.

    python -m benchmarks.mining INDEX [--word oil] [--rounds 5] [--json FILE]

INDEX is the folder of an index. `first` is the first answer after opening, with what is made once
and kept; `again` the median of the following, each about another document. `memory` is how much the
most memory in use rose above that of the opened index, the parts of its files that were read
included.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klsa_search import Index, open_index
from klsa_search.mining import classify, classify_texts, cluster, related, strongest_terms
from klsa_search.mining.duplicates import duplicates
from klsa_search.mining.similar import similar

EXAMPLES = 20
TEXTS = 10


@dataclass(frozen=True)
class Asked:
    """What the questions are about, another document every turn."""

    word: str
    id: str
    labels: dict[str, str]
    texts: list[str]

    @classmethod
    def of(cls, index: Index, word: str, turn: int) -> Asked:
        ids = index.ids()
        some = [ids[(turn + 1) * (n + 1) * 7919 % len(ids)] for n in range(EXAMPLES)]
        labels = {one: "ab"[n % 2] for n, one in enumerate(some)}  # what they say costs nothing
        return cls(word, some[0], labels, [index.document(one).text for one in some[:TEXTS]])


QUESTIONS: dict[str, Callable[[Index, Asked], object]] = {
    "similar, latent": lambda index, asked: similar(index, asked.id),
    "similar, document": lambda index, asked: similar(index, asked.id, kernel="document"),
    "strongest_terms": lambda index, asked: strongest_terms(index, asked.id),
    "related": lambda index, asked: related(index, asked.word),
    "related, k = 1000": lambda index, asked: related(index, asked.word, 1000),
    f"classify, {EXAMPLES} examples, 100 answers": lambda index, asked: classify(
        index, asked.labels, k=100
    ),
    f"classify, {EXAMPLES} examples, all": lambda index, asked: classify(index, asked.labels),
    f"classify, {EXAMPLES} examples, {TEXTS} texts": lambda index, asked: classify_texts(
        index, asked.labels, asked.texts
    ),
    "duplicates": lambda index, asked: duplicates(index),
    "cluster, k = 20": lambda index, asked: cluster(index, 20),
    "cluster, k = 100": lambda index, asked: cluster(index, 100),
}


def peak() -> int:
    """Bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(name: str, path: Path, word: str, rounds: int) -> dict[str, Any]:
    with closing(open_index(path)) as index:
        turns = [Asked.of(index, word, turn) for turn in range(rounds + 1)]
        before, seconds = peak(), []
        for asked in turns:
            begun = time.perf_counter()
            QUESTIONS[name](index, asked)
            seconds.append(time.perf_counter() - begun)
            if len(seconds) > 1 and sum(seconds) > 20:
                break
    return {
        "question": name,
        "first": seconds[0],
        "again": statistics.median(seconds[1:]),
        "memory": peak() - before,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mining", description=__doc__)
    parser.add_argument("index", type=Path)
    parser.add_argument("--word", default="oil")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    for name in QUESTIONS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            row = pool.apply(measure, (name, given.index, given.word, given.rounds))
        rows.append(row)
        print(
            f"{name:40} first {1000 * row['first']:9.1f} ms  again {1000 * row['again']:9.1f} ms"
            f"  memory {row['memory'] / 2**20:7.1f} MiB",
            flush=True,
        )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
