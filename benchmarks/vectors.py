"""What vectors cost: build, size of the index, time of a search, and an approximate index.

    python -m benchmarks.vectors N ... [--dimension 384] [--data DIR] [--json FILE]

N is a number of generated documents (`benchmarks.corpora`), each with a random vector near one of
1,000 centres. Each index is built and searched in a process of its own: the median processor time
of 100 queries for ten hits, by words alone and with a vector, best of three rounds. With usearch
installed, also the time of its approximate index of the same vectors, in float32, and the share of
the ten nearest that it finds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.corpora_generator import documents
from benchmarks.corpora_model import fit
from klsa_search import build
from klsa_search.collection.vectors import quantised
from studies.datasets import read_reuters, reuters_folder

_SPACE: Final = "random"
_CENTRES: Final = 1_000
_QUERIES: Final = 100
_ROUNDS: Final = 3
_LIMIT: Final = 7_200
"""Seconds of one number of documents."""

Floats = npt.NDArray[np.float32]


def random_vectors(count: int, dimension: int, seed: int) -> Iterator[Floats]:
    """Yield vectors near centres that depend on the dimension alone."""
    centres = np.random.default_rng(0).normal(size=(_CENTRES, dimension))
    rng = np.random.default_rng(seed)
    for centre in rng.integers(0, _CENTRES, count):
        yield (centres[centre] + rng.normal(size=dimension)).astype(np.float32)


def measure(count: int, dimension: int, vectors: bool, data: Path, home: Path) -> dict[str, Any]:
    """Build an index and search it."""
    stories = list(read_reuters(data))
    model = fit((story.text for story in stories), 0)

    def records() -> Iterator[dict[str, Any]]:
        rows = random_vectors(count, dimension, 1)
        for number, text in enumerate(documents(model, count, 0)):
            own = {"_vectors": {_SPACE: next(rows)}} if vectors else {}
            yield {"id": str(number), "text": text, **own}

    index = build(records(), name="costs", home=home)
    index.warm_up()
    built = index.manifest.build
    found: dict[str, Any] = {
        "seconds": built.seconds,
        "peak_memory": built.peak_memory,
        "bytes": sum(path.stat().st_size for path in home.rglob("*") if path.is_file()),
    }
    titles = [story.title for story in stories if story.title][:_QUERIES]
    found["words_ms"] = _best(lambda at: index.search(titles[at]), len(titles))
    if vectors:
        queries = list(random_vectors(len(titles), dimension, 2))
        found["both_ms"] = _best(
            lambda at: index.search(titles[at], vector={_SPACE: queries[at]}), len(titles)
        )
        space = index.arrays.vectors[_SPACE]
        stored = [quantised(query)[0] for query in queries]
        found["cosines_ms"] = _best(
            lambda at: space.cosines(stored[at], index.max_doc), len(stored)
        )
        found |= _approximate(count, dimension, queries)
    index.close()
    return found


def _best(call: Callable[[int], object], count: int) -> float:
    """Return the median processor time of a call in milliseconds, best of some rounds."""
    medians = []
    for _ in range(_ROUNDS):
        taken = []
        for at in range(count):
            begun = time.process_time()
            call(at)
            taken.append(1000 * (time.process_time() - begun))
        medians.append(statistics.median(taken))
    return min(medians)


def _approximate(count: int, dimension: int, queries: list[Floats]) -> dict[str, float]:
    """Return what an approximate index of the same vectors costs, and its recall."""
    try:
        from usearch.index import Index as ApproximateIndex
    except ImportError:
        return {}
    rows = np.stack(list(random_vectors(count, dimension, 1)))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    index = ApproximateIndex(ndim=dimension, metric="cos", dtype="i8")
    begun = time.monotonic()
    index.add(np.arange(count), rows, threads=2)
    seconds = time.monotonic() - begun
    hits = 0
    for query in queries:
        nearest = np.argpartition(-(rows @ query), 10)[:10]
        hits += len(np.intersect1d(nearest, index.search(query, 10).keys))
    return {
        "approximate_seconds": seconds,
        "approximate_ms": _best(lambda at: index.search(queries[at], 10), len(queries)),
        "recall": hits / 10 / len(queries),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.vectors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("counts", nargs="+", type=int, metavar="N")
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=("with", "without"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    data = reuters_folder(options.data)
    if options.only:
        with tempfile.TemporaryDirectory(prefix="klsa-vectors-") as home:
            measured = measure(
                options.counts[0], options.dimension, options.only == "with", data, Path(home)
            )
        print(json.dumps(measured))
        return
    found: dict[str, Any] = {}
    for count in options.counts:
        for only in ("without", "with"):
            command = [sys.executable, "-m", "benchmarks.vectors", str(count), "--only", only]
            command += ["--dimension", str(options.dimension), "--data", str(data)]
            done = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True, timeout=_LIMIT
            )
            found[f"{count} {only}"] = json.loads(done.stdout)
            print(f"{count:,} {only}:", found[f"{count} {only}"], flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
