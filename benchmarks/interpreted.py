"""What compiling is worth: a build and queries, compiled and by the same functions in Python.

    python -m benchmarks.interpreted SOURCE [--queries 20] [--json FILE]

Processor seconds of the build and median milliseconds of a query, each in a process of its own.
Without compiled code a query goes by NumPy where there is such a way, as commands do that answer
one question; where there is none, in a build above all, Python runs the function itself. That is
what remained if numba, two fifths of an installation, were left out. What is compiled is kept from
the first run on: let it run twice.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

WAYS = ("compiled", "in Python")


def leave_compiling() -> None:
    """Have every function run as it is written."""
    from klsa_search.core import compiling

    cast("Any", compiling.Compiled).__call__ = lambda self, *given: self.py_func(*given)
    compiling.disable_compiling()


def inside(way: str, source: str, home: str, queries: int) -> dict[str, float]:
    """Build and ask in this process."""
    from klsa_search import build, open_index

    if way == "in Python":
        leave_compiling()
    begun = time.process_time()
    build(source, name="one", home=home).close()
    found = {"build_s": time.process_time() - begun}
    index = open_index(Path(home) / "one")
    first = index.documents(range(min(queries, len(index))))
    asked = [" ".join(document.text.split()[:5]) for document in first]
    for ranker in ("klsa", "bm25"):
        took = []
        for query in asked * 2:
            begun = time.perf_counter()
            index.rank(query, 10, ranker=ranker)
            took.append(time.perf_counter() - begun)
        found[f"{ranker}_ms"] = statistics.median(took[len(asked) :]) * 1e3
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="What compiling is worth.")
    parser.add_argument("source")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", nargs=2, metavar=("WAY", "HOME"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        way, home = asked.inside
        print(json.dumps(inside(way, asked.source, home, asked.queries)))
        return
    rows = {}
    print(f"{'':12} build, s  klsa, ms  bm25, ms")
    for way in WAYS:
        with tempfile.TemporaryDirectory(prefix="klsa-interpreted-") as home:
            command = [sys.executable, "-m", "benchmarks.interpreted", asked.source]
            command += ["--queries", str(asked.queries), "--inside", way, home]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, timeout=86_400
            )
        rows[way] = json.loads(done.stdout.splitlines()[-1])
        print(f"{way:12} {rows[way]['build_s']:8.1f} {rows[way]['klsa_ms']:9.3f} "
              f"{rows[way]['bm25_ms']:9.3f}", flush=True)  # fmt: skip
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
