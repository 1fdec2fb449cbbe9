"""One peer in a process of its own: JSON commands in, JSON answers out, a line each.

python -m benchmarks.peers.worker ENGINE FOLDER STOP_WORDS [OPTION ...]

{"do": "build", "corpus": path}               {"seconds": s, "peak": bytes}
{"do": "open", "queries": [text]}             {"seconds": s, "batch": bool, ...}
{"do": "run", "k": k, "batch": false}         {"seconds": [s, ...], "processor_seconds": s}
{"do": "run", "k": k, "batch": true}          the same with one s, of all queries at once
{"do": "answers", "k": k, "count": n}         {"numbers": [[document number, ...], ...]}
{"do": "peak"}                                {"peak": bytes}
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any


def _peak() -> int:
    """Bytes of this process or of one it has waited for, whichever was larger.

    Not ru_maxrss of the process itself: it begins with that of the parent before exec.
    """
    status = Path("/proc/self/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return 1024 * max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


class Worker:
    """The commands."""

    def __init__(self, name: str, folder: Path, stop_words: list[str], options: list[str]) -> None:
        begun = perf_counter()
        module = importlib.import_module(f"benchmarks.peers.engines.{name}")
        self._imported = perf_counter() - begun
        self._versions = {package: version(package) for package in module.PACKAGES}
        folder.mkdir(parents=True, exist_ok=True)
        self._engine = module.Engine(folder, stop_words, *options)
        self._queries: list[str] = []

    def build(self, corpus: str) -> dict[str, Any]:
        begun = perf_counter()
        self._engine.build(Path(corpus))
        return {"seconds": perf_counter() - begun, "peak": _peak(), "versions": self._versions}

    def open(self, queries: list[str]) -> dict[str, Any]:
        before, begun = _peak(), perf_counter()
        self._engine.open()
        self._queries = queries
        return {
            "seconds": perf_counter() - begun,
            "import_seconds": self._imported,
            "grown": _peak() - before,
            "batch": hasattr(self._engine, "rank_all"),
            "versions": self._versions,
        }

    def run(self, k: int, batch: bool) -> dict[str, Any]:
        gc.collect()
        seconds, worked = [], process_time()
        if batch:
            begun = perf_counter()
            self._engine.rank_all(self._queries, k)
            seconds.append(perf_counter() - begun)
        else:
            rank = self._engine.rank
            for query in self._queries:
                begun = perf_counter()
                rank(query, k)
                seconds.append(perf_counter() - begun)
        return {"seconds": seconds, "processor_seconds": process_time() - worked}

    def answers(self, k: int, count: int) -> dict[str, Any]:
        engine = self._engine
        return {"numbers": [engine.numbers(engine.rank(q, k)) for q in self._queries[:count]]}

    def peak(self) -> dict[str, Any]:
        return {"peak": _peak()}


def main() -> None:
    name, folder, stop_words, *options = sys.argv[1:]
    # Libraries that print to standard output would spoil the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(name, Path(folder), Path(stop_words).read_text().split(), options)
    for line in sys.stdin:
        command = json.loads(line)
        answer = getattr(worker, command.pop("do"))(**command)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
