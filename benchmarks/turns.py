"""Two states of the package in turns: what a change gains, where a machine's hours differ more.

    git worktree add ../before HEAD~1
    python -m benchmarks.turns INDEX QUERIES.tsv ../before . [--k 10] [--rounds 20]
        [--ranker bm25] [--json FILE]

INDEX is the folder of an index that all of them open. Each runs in a process of its own, on one
processor, the same for all where the system allows it, and answers fifty queries, then the next the
same; so over all queries and over the rounds. Of each fifty the lowest, the first quartile and the
median of the rounds are taken: microseconds a query, the mean over the queries, and as multiples of
the first. First it tells whether their answers are the same to the bit. `make speed` does all this
for the present state and an earlier commit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from studies import command_parser

TOGETHER = 50
MODES = ("one by one", "in batches")


def answer(index: Any, texts: list[str], mode: str, k: int, parameters: dict[str, str]) -> Any:
    if mode == MODES[0]:
        return [index.rank(text, k, **parameters) for text in texts]
    return index.rank_many(texts, k, threads=1, **parameters)


def work(folder: str, queries: str, k: int, parameters: dict[str, str]) -> None:
    """Answer what is asked for on the standard input: a mode, and from which query on."""
    from klsa_search import open_index  # that of the tree this process is of

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    lines = Path(queries).read_text(encoding="utf-8").splitlines()
    texts = [line.partition("\t")[2] for line in lines]
    index = open_index(Path(folder))
    told = hashlib.sha256()
    for mode in MODES:
        for positions, scores in answer(index, texts, mode, k, parameters):
            told.update(positions.tobytes() + scores.tobytes())
    print(json.dumps([told.hexdigest(), len(texts)]), flush=True)
    for line in sys.stdin:
        mode, first = json.loads(line)
        part = texts[first : first + TOGETHER]
        begun = time.perf_counter()
        answer(index, part, mode, k, parameters)
        print((time.perf_counter() - begun) / len(part) * 1e6, flush=True)


class Tree:
    """A process of one state of the package."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        parameters = {"ranker": options.ranker} if options.ranker else {}
        asked = json.dumps([str(options.index), str(options.queries), options.k, parameters])
        self.process = subprocess.Popen(
            [sys.executable, "-P", __file__, asked],  # not with what lies beside it
            env=os.environ | {"PYTHONPATH": str(folder.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        told = self._told()
        if not told:
            raise SystemExit(f"{folder}: the package there ended before it answered")
        self.answers, self.queries = json.loads(told)

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=600)

    def _told(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def took(self, mode: str, first: int) -> float:
        assert self.process.stdin is not None
        print(json.dumps([mode, first]), file=self.process.stdin, flush=True)
        return float(self._told())


def measure(trees: list[Tree], rounds: int, mode: str) -> np.ndarray[Any, Any]:
    """Microseconds a query: (trees, rounds, parts)."""
    firsts = range(0, trees[0].queries, TOGETHER)
    turns = [[[tree.took(mode, at) for tree in trees] for at in firsts] for _ in range(rounds)]
    return np.array(turns).transpose(2, 0, 1)


def main() -> None:
    parser = command_parser("benchmarks.turns", __doc__)
    parser.add_argument("index", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--ranker")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with ExitStack() as stack:
        trees = [stack.enter_context(Tree(folder, options)) for folder in options.trees]
        same = len({tree.answers for tree in trees}) == 1
        print("the same answers" if same else "their answers DIFFER")
        told: dict[str, Any] = {"same_answers": same, "trees": list(map(str, options.trees))}
        print(f"{'':12} {'lowest':>14} {'quartile':>14} {'median':>14}")
        for mode in MODES:
            taken = np.quantile(measure(trees, options.rounds, mode), (0, 0.25, 0.5), axis=1)
            figures = taken.mean(axis=2).T
            told[mode] = figures.round(2).tolist()
            for folder, row in zip(options.trees, figures, strict=True):
                cells = (
                    f"{us:7.1f} {us / of:5.3f}x" for us, of in zip(row, figures[0], strict=True)
                )
                print(f"{mode:12} {'  '.join(cells)}  {folder}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if __spec__ is None:  # as `Tree` runs it, by its path
        work(*json.loads(sys.argv[1]))
    else:
        main()
