"""What passages, vectors and partitions cost: builds, memory, disk, and the time of a search.

    python -m benchmarks.index_costs SOURCE ... [--passages off 300] [--vectors 0 384]
        [--partitions 1 4] [--workers 1 2] [--data DIR] [--json FILE]

SOURCE is a number of generated documents (`benchmarks.corpora`), `reuters` for Reuters-21578, or
the name of a collection, searched by its own queries; the others are searched by titles of Reuters.
An index is built with each combination of the values: `--vectors` gives each document a random
vector of so many values, near one of 1,000 centres. Each index is built in a process of its own and
searched in another one: seconds of the build, of which the processor, and the highest memory of its
processes; bytes on disk; seconds to open; the median processor time of a search for ten hits by the
default, by BM25 and with a vector, best of three rounds, and of the comparison of vectors alone;
the memory of the searching process that no other shares; the median time of a write of one
document; and the share of the first ten hits that agree with the first index.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.corpora import documents, fit
from klsa_search import build, open_index
from klsa_search.collection.vectors import quantised
from klsa_search.search.index import Index
from studies import command_parser
from studies.datasets import collections_home, read_reuters, reuters_folder
from studies.effectiveness.kinds import task_of

_NAME: Final = "costs"
_SPACE: Final = "random"
_CENTRES: Final = 1_000
_QUERIES: Final = 100
_ROUNDS: Final = 3
_WRITES: Final = 9
_LIMIT: Final = 14_400
"""Seconds of one step."""

Floats = npt.NDArray[np.float32]


def random_vectors(dimension: int, seed: int) -> Iterator[Floats]:
    """Yield vectors without end, near centres that depend on the dimension alone."""
    centres = np.random.default_rng(0).normal(size=(_CENTRES, dimension))
    rng = np.random.default_rng(seed)
    while True:
        yield (rng.choice(centres) + rng.normal(size=dimension)).astype(np.float32)


def records_of(source: str, data: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the documents of a source."""
    if source == "reuters" or source.isdigit():
        stories = list(read_reuters(reuters_folder(data)))
        if source == "reuters":
            yield from ({"id": s.id, "title": s.title, "text": s.text} for s in stories)
        else:
            model = fit((story.text for story in stories), 0)
            texts = documents(model, int(source), 0)
            yield from ({"id": str(number), "text": text} for number, text in enumerate(texts))
    else:
        for document in task_of(source, data or collections_home()).documents:
            yield {"id": document.id, "title": document.title, "text": document.text}


def queries_of(source: str, data: Path | None) -> list[str]:
    """Return the queries of a source."""
    if source == "reuters" or source.isdigit():
        texts = (story.title for story in read_reuters(reuters_folder(data)) if story.title)
    else:
        texts = (query.text for query in task_of(source, data or collections_home()).queries)
    return list(texts)[:_QUERIES]


def measure_build(options: argparse.Namespace, home: Path) -> dict[str, Any]:
    """Build an index."""
    source, dimension = options.sources[0], options.vectors[0]

    def records() -> Iterator[dict[str, Any]]:
        vectors = random_vectors(dimension, 1) if dimension else None
        for record in records_of(source, options.data):
            yield record | ({"_vectors": {_SPACE: next(vectors)}} if vectors else {})

    begun = time.monotonic()
    build(
        records(),
        name=_NAME,
        home=home,
        passages=options.passages[0],
        partitions=options.partitions[0],
        workers=options.workers[0],
    ).close()
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "seconds": time.monotonic() - begun,
        "processor_seconds": sum(usage.ru_utime + usage.ru_stime for usage in used),
        "peak_memory": max(usage.ru_maxrss for usage in used) * 1024,
        "bytes": sum(path.stat().st_size for path in home.rglob("*") if path.is_file()),
    }


def measure_search(options: argparse.Namespace, home: Path) -> dict[str, Any]:
    """Open an index, search it and write to it."""
    texts, dimension = queries_of(options.sources[0], options.data), options.vectors[0]
    begun = time.monotonic()
    index = open_index(home / _NAME)
    figures: dict[str, Any] = {
        "open_seconds": time.monotonic() - begun,
        "documents": len(index),
        "default_ms": _best(lambda at: index.search(texts[at]), len(texts)),
        "bm25_ms": _best(lambda at: index.search(texts[at], ranker="bm25"), len(texts)),
    }
    if dimension:
        figures |= _with_vectors(index, texts, dimension)
    figures["private_memory"] = _private_memory()
    figures["first_ten"] = [[hit.id for hit in index.search(text).hits] for text in texts]
    seconds = []
    for at in range(_WRITES):
        begun = time.perf_counter()
        index.add([{"id": f"new-{at}", "text": texts[at]}])
        seconds.append(time.perf_counter() - begun)
    return figures | {"write_ms": 1000 * statistics.median(seconds)}


def _with_vectors(index: Index, texts: Sequence[str], dimension: int) -> dict[str, float]:
    queries = list(islice(random_vectors(dimension, 2), len(texts)))
    space = index.arrays.vectors[_SPACE]
    stored = [quantised(query)[0] for query in queries]
    return {
        "with_vector_ms": _best(
            lambda at: index.search(texts[at], vector={_SPACE: queries[at]}), len(texts)
        ),
        "cosines_ms": _best(lambda at: space.cosines(stored[at], index.max_doc), len(texts)),
    }


def _best(call: Callable[[int], object], count: int) -> float:
    """Return the median processor time of a call in milliseconds, best of some rounds."""
    medians = []
    for _ in range(_ROUNDS):
        seconds = []
        for at in range(count):
            begun = time.process_time()
            call(at)
            seconds.append(time.process_time() - begun)
        medians.append(statistics.median(seconds))
    return 1000 * min(medians)


def _private_memory() -> int:
    """Return the bytes of this process that no other process shares."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines[1:]}
    return 1024 * (int(sizes["Private_Clean"]) + int(sizes["Private_Dirty"]))


def agreement(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]]) -> float:
    """Return the mean share of the hits of some searches that are among those of others."""
    pairs = zip(first, second, strict=True)
    return statistics.fmean(len({*one} & {*two}) / len(one) for one, two in pairs if one)


def main() -> None:
    parser = command_parser("benchmarks.index_costs", __doc__)
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    parser.add_argument("--passages", nargs="+", default=["off"])
    parser.add_argument("--vectors", nargs="+", type=int, default=[0], metavar="DIMENSION")
    parser.add_argument("--partitions", nargs="+", type=int, default=[1])
    parser.add_argument("--workers", nargs="+", type=int, default=[1])
    parser.add_argument("--data", type=Path, help="folder of the collections or of Reuters")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", choices=("build", "search"), help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        measure = measure_build if options.step == "build" else measure_search
        print(json.dumps(measure(options, options.home)))
        return
    axes = ("passages", "vectors", "partitions", "workers")
    figures: dict[str, Any] = {}
    for source in options.sources:
        first: list[list[str]] = []
        for values in product(*(getattr(options, axis) for axis in axes)):
            arguments = [f"--{axis}={value}" for axis, value in zip(axes, values, strict=True)]
            with tempfile.TemporaryDirectory(prefix="klsa-costs-") as home:
                command = [sys.executable, "-m", "benchmarks.index_costs", source, *arguments]
                command += [
                    "--home",
                    home,
                    *(["--data", str(options.data)] if options.data else []),
                ]
                measured: dict[str, Any] = {}
                for step in ("build", "search"):
                    done = subprocess.run(
                        [*command, "--step", step],
                        check=True,
                        stdout=subprocess.PIPE,
                        text=True,
                        timeout=_LIMIT,
                    )
                    measured |= json.loads(done.stdout)
            hits = measured.pop("first_ten")
            first = first or hits
            measured["first_ten_agreement"] = agreement(first, hits)
            label = " ".join([source, *arguments])
            figures[label] = measured
            print(f"{label}: {measured}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
