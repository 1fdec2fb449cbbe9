"""What partitions cost: building with one worker or more, size, memory, time of a search.

    python -m benchmarks.partitions N|reuters [--partitions 1 4] [--workers 1 2] [--data DIR]
                                    [--cluster local] [--json FILE]

N is a number of generated documents (`benchmarks.corpora`); `reuters` are those of Reuters-21578.
Each index is built in a process of its own and searched in another one, with the titles of Reuters
as queries: seconds of the build and the highest memory of its processes; bytes on disk; seconds to
open; the median time of a search for ten hits by the default and by BM25, of the best of three
rounds; the memory of the searching process that no other shares; the median time of a write of
one document; and the share of the hits of the first index that this one has. With `--cluster`,
processes of a Ray cluster serve the partitions: also the most memory that one of them does not
share, and the mean of the bytes that go to them and come back for a search.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.corpora_generator import documents
from benchmarks.corpora_model import fit
from klsa_search import build, open_index
from studies.datasets import read_reuters, reuters_folder

_NAME: Final = "costs"
_QUERIES: Final = 200
_ROUNDS: Final = 3
_WRITES: Final = 9
_LIMIT: Final = 14_400
"""Seconds of one step."""


def stories(data: Path, count: int | None) -> Iterator[dict[str, str]]:
    """Yield the documents of Reuters, or generated ones."""
    read = list(read_reuters(data))
    if count is None:
        for story in read:
            yield {"id": story.id, "title": story.title, "text": story.text}
        return
    model = fit((story.text for story in read), 0)
    for number, text in enumerate(documents(model, count, 0)):
        yield {"id": str(number), "text": text}


def measure_build(
    data: Path, count: int | None, home: Path, partitions: int, workers: int
) -> dict[str, Any]:
    """Build an index."""
    begun = time.monotonic()
    build(
        stories(data, count),
        name=_NAME,
        home=home,
        passages="off",
        partitions=partitions,
        workers=workers,
    ).close()
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "seconds": time.monotonic() - begun,
        "processor_seconds": sum(each.ru_utime + each.ru_stime for each in used),
        "peak_memory": max(each.ru_maxrss for each in used) * 1024,
        "bytes": sum(path.stat().st_size for path in home.rglob("*") if path.is_file()),
    }


class _Counting:
    """Counts the bytes of calls and answers: see `cluster.calls.Replicas`."""

    def __init__(self, replicas: Any) -> None:
        self._replicas, self.sent, self.received = replicas, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._replicas, name)

    def call(self, partition: int, replica: int, call: Any) -> Any:
        self.sent += len(pickle.dumps(call, pickle.HIGHEST_PROTOCOL))
        return self._replicas.call(partition, replica, call)

    def result(self, reference: Any) -> Any:
        found = self._replicas.result(reference)
        self.received += len(pickle.dumps(found, pickle.HIGHEST_PROTOCOL))
        return found


class _Cluster:
    """A Ray cluster whose calls can be counted: see `cluster.index.Cluster`."""

    def __init__(self, address: str) -> None:
        from klsa_search.cluster.ray import RayCluster

        self._cluster = RayCluster(address)
        self.counting: Any = None

    def replicas(self, generations: Sequence[Path], tokenizer: str | None) -> Any:
        self.counting = _Counting(self._cluster.replicas(generations, tokenizer))
        return self.counting

    def measure(self, search: Callable[[int], object]) -> dict[str, Any]:
        """Return what goes to the processes and back for a search, and their memory."""
        counting = self.counting
        counting.sent = counting.received = 0
        for at in range(_QUERIES):
            search(at)
        processes = [process for row in counting.processes() for process in row]
        return {
            "sent_bytes": counting.sent / _QUERIES,
            "received_bytes": counting.received / _QUERIES,
            "host_private_memory": max(map(_private_memory, processes)),
        }


def measure_search(data: Path, home: Path, cluster: str | None) -> dict[str, Any]:
    """Open an index and search it."""
    titles = [story.title for story in read_reuters(data) if story.title][:_QUERIES]
    begun = time.monotonic()
    served = None if cluster is None else _Cluster(cluster)
    if served is None:
        index = open_index(home / _NAME)
    else:
        from klsa_search.cluster.index import ClusterIndex

        index = ClusterIndex.open(home / _NAME, served)
    opened = time.monotonic() - begun
    if served is None:  # processes of a cluster are warm
        index.warm_up()
    found: dict[str, Any] = {
        "open_seconds": opened,
        "documents": len(index),
        "default_ms": _best(lambda at: index.search(titles[at])),
        "bm25_ms": _best(lambda at: index.search(titles[at], ranker="bm25")),
        "private_memory": _private_memory("self"),
    }
    found["first_ten"] = [[hit.id for hit in index.search(title).hits] for title in titles]
    if served is not None:
        found |= served.measure(lambda at: index.search(titles[at]))
    found["write_ms"] = statistics.median(
        _milliseconds(lambda: index.add([{"id": f"new-{at}", "text": titles[at]}]))  # noqa: B023 - called at once
        for at in range(_WRITES)
    )
    return found


def _best(call: Callable[[int], object]) -> float:
    """Return the median time of a call in milliseconds, best of some rounds."""
    medians = []
    for _ in range(_ROUNDS):
        taken = []
        for at in range(_QUERIES):
            taken.append(_milliseconds(lambda: call(at)))  # noqa: B023 - called at once
        medians.append(statistics.median(taken))
    return min(medians)


def _milliseconds(call: Callable[[], object]) -> float:
    """Return the time of a call."""
    begun = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - begun)


def _agreement(first: Sequence[Sequence[str]], hits: Sequence[Sequence[str]]) -> float:
    """Return the mean share of the hits of some searches that are among others."""
    shares = [len({*one} & {*two}) / len(one) for one, two in zip(first, hits, strict=True) if one]
    return statistics.fmean(shares)


def _private_memory(process: int | str) -> int:
    """Return the bytes of a process that no other process shares."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines[1:]}
    return 1024 * (int(sizes["Private_Clean"]) + int(sizes["Private_Dirty"]))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.partitions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("documents", metavar="N|reuters")
    parser.add_argument("--partitions", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--workers", nargs="+", type=int, default=[1])
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--cluster", help="address of a Ray cluster, or local")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", choices=("build", "search"), help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    data = reuters_folder(options.data)
    count = None if options.documents == "reuters" else int(options.documents)
    if options.step == "build":
        partitions, workers = options.partitions[0], options.workers[0]
        print(json.dumps(measure_build(data, count, options.home, partitions, workers)))
        return
    if options.step == "search":
        print(json.dumps(measure_search(data, options.home, options.cluster)))
        return
    found: dict[str, Any] = {}
    first: list[list[str]] = []
    for partitions in options.partitions:
        for workers in options.workers if partitions > 1 else [1]:
            with tempfile.TemporaryDirectory(prefix="klsa-partitions-") as home:
                command = [sys.executable, "-m", "benchmarks.partitions", options.documents]
                command += ["--home", home, "--data", str(data), "--partitions", str(partitions)]
                command += ["--workers", str(workers)]
                if options.cluster and partitions > 1:
                    command += ["--cluster", options.cluster]
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
            measured["first_ten_agreement"] = _agreement(first, hits)
            label = f"{options.documents}, {partitions} partitions, {workers} workers"
            found[label] = measured
            print(f"{label}: {measured}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
