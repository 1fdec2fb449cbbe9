"""What a build takes, phase by phase, beside what its plan says and what bm25s takes.

    python -m benchmarks.build CORPUS... [--memory 1GiB] [--lexical] [--bm25s] [--json FILE]

CORPUS is a file such as `python -m benchmarks.corpora` writes. Each run is a process of its own, so
that its peak memory is its own: that of the process, and with it that of the analysing processes
as if all of them had their peaks at once. --lexical stops after the postings: reading, analysing,
storing, counting and the weights of BM25, without anything that expands. --bm25s runs bm25s's
tokenisation (Snowball stems, English stop words) and index on the same texts, which stores none.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from klsa_search.core.config import Settings
from klsa_search.core.parallel import processors


class Clock:
    """A progress callback that notes when each phase was last heard of."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.ends: dict[str, float] = {}

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        self.ends[phase] = time.perf_counter() - self.started

    def phases(self) -> dict[str, float]:
        ends = dict(sorted(self.ends.items(), key=lambda item: item[1]))
        begins = [0.0, *ends.values()]
        return {name: end - begin for begin, (name, end) in zip(begins, ends.items(), strict=False)}


def lexical(corpus: str, memory: int) -> dict[str, Any]:
    """The lexical part of a build."""
    from klsa_search.collection import open_collection
    from klsa_search.indexing.reading import read
    from klsa_search.indexing.weighing import postings_of

    settings, clock = Settings(), Clock()
    with tempfile.TemporaryDirectory() as folder:
        counts, *_ = read(open_collection(corpus), Path(folder), settings, clock, memory=memory)
        postings_of(counts, settings)
    clock("postings", 1, 1)
    return {"documents": counts.matrix.shape[0], "phases": clock.phases()}


def whole(corpus: str, memory: int) -> dict[str, Any]:
    """A whole build, and the plan of it."""
    from klsa_search.indexing.build import build

    clock = Clock()
    with tempfile.TemporaryDirectory() as home:
        index = build(corpus, name="a", home=home, progress=clock, memory=memory)
        size = index.manifest.bytes()
        index.close()
    clock("files", 1, 1)
    return {"documents": len(index), "phases": clock.phases(), "bytes": size}


def planned(corpus: str, memory: int) -> dict[str, Any]:
    from klsa_search.indexing.plan import plan

    told = plan(corpus, memory=memory)
    return {
        "documents": told.shape.documents,
        "phases": {cost.phase: cost.seconds for cost in told.phases},
        "bytes": told.size,
        "peak": told.peak_memory,
    }


def rival(corpus: str, memory: int) -> dict[str, Any]:
    import bm25s
    import Stemmer

    clock = Clock()
    with open(corpus, encoding="utf-8") as lines:
        texts = [record["title"] + " " + record["text"] for record in map(json.loads, lines)]
    clock("documents", 1, 1)
    tokens = bm25s.tokenize(
        texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False
    )
    clock("tokens", 1, 1)
    bm25s.BM25().index(tokens, show_progress=False)
    clock("postings", 1, 1)
    return {"documents": len(texts), "phases": clock.phases()}


RUNS = {"whole": whole, "plan": planned, "lexical": lexical, "bm25s": rival}


def run(kind: str, corpus: str, memory: int) -> None:
    started = time.perf_counter()
    told = RUNS[kind](corpus, memory)
    told["seconds"] = time.perf_counter() - started
    own, others = (
        resource.getrusage(who).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    told.setdefault("peak", own)
    told["peak_with_workers"] = own + processors() * others
    print(json.dumps(told))


def main() -> None:
    from klsa_search.indexing.checks import memory_budget

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("--memory", help="the budget")
    parser.add_argument("--lexical", action="store_true", help="stop after the postings")
    parser.add_argument("--bm25s", action="store_true", help="run bm25s too")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--run", choices=sorted(RUNS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    memory = memory_budget(options.memory)
    if options.run:
        run(options.run, options.corpora[0], memory)
        return
    kinds = ["lexical"] if options.lexical else ["plan", "whole"]
    kinds += ["bm25s"] * options.bm25s
    figures: dict[str, dict[str, Any]] = {}
    for corpus in options.corpora:
        for kind in kinds:
            command = [sys.executable, "-m", "benchmarks.build", corpus, "--run", kind]
            printed = subprocess.check_output([*command, "--memory", str(memory)], timeout=86_400)
            told = figures.setdefault(corpus, {})[kind] = json.loads(printed)
            show(f"{Path(corpus).name} {kind}", told)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def show(title: str, told: dict[str, Any]) -> None:
    seconds = sum(told["phases"].values())
    phases = ", ".join(f"{name} {time_:.1f}" for name, time_ in told["phases"].items())
    print(
        f"{title}: {told['documents']:,} documents, {seconds:.1f} s "
        f"({1e6 * seconds / max(told['documents'], 1):.1f} µs each), "
        f"peak {told['peak'] / 2**20:,.0f} MiB, with workers at most "
        f"{told['peak_with_workers'] / 2**20:,.0f}; {phases}"
        + (f"; index {told['bytes'] / 2**20:,.0f} MiB" if "bytes" in told else ""),
        flush=True,
    )


if __name__ == "__main__":
    main()
