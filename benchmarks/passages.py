"""What passages cost in build time, memory, size of the index and time of a search.

    python -m benchmarks.passages NAME ... [--data FOLDER] [--json FILE]

NAME is a collection with queries. Each index is built and searched in a process of its own. A
search returns ten hits with snippets; the median processor time of 100 queries, best of
three rounds. The other index has whole documents only.
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
from typing import Any, Final, Literal

from klsa_search import build
from klsa_search.search.index import Index
from studies.effectiveness.kinds import task_of

RANKERS: Final[tuple[Literal["klsa", "bm25"], ...]] = ("klsa", "bm25")
SETTINGS: Final = ("off", "300")
_QUERIES: Final = 100
_ROUNDS: Final = 3
_LIMIT: Final = 3_600
"""Seconds of one collection."""


def measure(name: str, data: Path, passages: str, home: Path) -> dict[str, Any]:
    """Build an index and search it."""
    task = task_of(name, data)
    index = build(task.documents, name="costs", home=home, passages=passages)
    index.warm_up()
    texts = [query.text for query in task.queries][:_QUERIES]
    built = index.manifest.build
    found = {
        "documents": len(index),
        "seconds": built.seconds,
        "peak_memory": built.peak_memory,
        "bytes": sum(path.stat().st_size for path in home.rglob("*") if path.is_file()),
    }
    for ranker in RANKERS:
        found[f"{ranker}_ms"] = min(_median(index, texts, ranker) for _ in range(_ROUNDS))
    index.close()
    return found


def _median(index: Index, texts: list[str], ranker: Literal["klsa", "bm25"]) -> float:
    """Return the median processor time of a search in milliseconds."""
    taken = []
    for text in texts:
        begun = time.process_time()
        index.search(text, 10, ranker=ranker)
        taken.append(1000 * (time.process_time() - begun))
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passages", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--data", type=Path, default=Path("../shared/collections"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=SETTINGS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        with tempfile.TemporaryDirectory(prefix="klsa-passages-") as home:
            print(json.dumps(measure(options.names[0], options.data, options.only, Path(home))))
        return
    found: dict[str, Any] = {}
    print("| | passages | build s | peak MiB | index MB | default, ms | bm25, ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in options.names:
        for passages in SETTINGS:
            command = [sys.executable, "-m", "benchmarks.passages", name]
            command += ["--data", str(options.data), "--only", passages]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, timeout=_LIMIT
            )
            of_index = found.setdefault(name, {})[passages] = json.loads(done.stdout)
            cells = (
                f"{of_index['seconds']:.1f}",
                f"{of_index['peak_memory'] / 2**20:.0f}",
                f"{of_index['bytes'] / 1e6:.1f}",
                f"{of_index['klsa_ms']:.2f}",
                f"{of_index['bm25_ms']:.2f}",
            )
            print("|", " | ".join((name, passages, *cells)), "|", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
