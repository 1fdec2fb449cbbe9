"""What a cluster of processes of this machine gives and costs, beside one process.

    python -m benchmarks.cluster answers CORPUS.jsonl QUERIES.tsv --shards 1 2 4 8 [--asked 1000]
    python -m benchmarks.cluster search CORPUS.jsonl QUERIES.tsv [--shards 4] [--asked 200]
    python -m benchmarks.cluster build CORPUS.jsonl [--shards 4] [--workers 4] [--rounds 2]

`answers` counts queries whose ten hits or scores are not those of one process: default, bm25 and
exact (a tenth of the queries), each without and with a filter. `search` tells where the time of a
query goes, medians in ms: both rounds, and what the process that asks does besides.
`build` builds in turns, plain and by workers: seconds, processor seconds, and the most memory that
one process had, MiB, of Ray's workers or of the one that leads; the files must be the same.
It needs the extra `cluster`. --documents takes the first so many.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.filtering import with_fields
from klsa_search import Index, build
from klsa_search.cluster.host import RemoteShards
from klsa_search.cluster.index import ShardedIndex
from klsa_search.cluster.ray import RayShardCluster
from klsa_search.collection.queries import read_query_lines
from klsa_search.storage.manifest import read_manifest

WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "bm25": {"ranker": "bm25"},
    "exact": {"exact": True},
}
FILTERED = {"filter": "place < 5000"}


def differing(one: Index, many: Index, queries: list[str], options: dict[str, Any]) -> int:
    """How many queries are answered otherwise."""
    pairs = zip(
        one.search_many(queries, **options), many.search_many(queries, **options), strict=True
    )
    return sum((a.hits, a.total) != (b.hits, b.total) for a, b in pairs)


def answers(index: Index, queries: list[str], shards: list[int]) -> list[dict[str, Any]]:
    found = []
    for count in shards:
        with ShardedIndex(index.path, RayShardCluster("local", count)) as spread:
            for name, way in WAYS.items():
                asked = queries[:: 10 if name == "exact" else 1]
                for options in (way, way | FILTERED):
                    other = differing(index, spread, asked, options)
                    told = f"{name}{' filtered' if 'filter' in options else ''}"
                    print(f"{count:3} shards  {told:17} {len(asked):5} queries, {other} differ")
                    found.append(
                        {"shards": count, "way": told, "queries": len(asked), "differ": other}
                    )
    return found


def phases(index: Index, queries: list[str], shards: int) -> dict[str, float]:
    """Medians in ms of one query at a time."""
    with ShardedIndex(index.path, RayShardCluster("local", shards)) as spread:
        took: dict[str, list[float]] = {"best": [], "scores": []}
        asked = RemoteShards._asked

        def timed(self: RemoteShards, method: str, *rest: Any) -> Any:
            begin = time.perf_counter()
            try:
                return asked(self, method, *rest)
            finally:
                took[method].append(1e3 * (time.perf_counter() - begin))

        def each(target: Index) -> list[float]:
            times = []
            for query in queries:
                begin = time.perf_counter()
                target.search(query)
                times.append(1e3 * (time.perf_counter() - begin))
            return times

        RemoteShards._asked = timed  # type: ignore[assignment, method-assign]
        try:
            each(spread), each(index)
            for times in took.values():
                times.clear()
            whole, alone = each(spread), each(index)
        finally:
            RemoteShards._asked = asked  # type: ignore[method-assign]
    rest = [t - a - b for t, a, b in zip(whole, took["best"], took["scores"], strict=True)]
    return {
        "one process": median(alone),
        "shards": median(whole),
        "first round": median(took["best"]),
        "second round": median(took["scores"]),
        "who asks": median(rest),
    }


@contextmanager
def watched(beside: Callable[[str], bool]) -> Iterator[dict[str, float]]:
    """The most memory that one process had meanwhile, of those whose command line fits: MiB."""
    most, ended = {"MiB": 0.0}, threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    if beside((folder / "cmdline").read_text().replace("\0", " ")):
                        status = (folder / "status").read_text()
                        peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
                        most["MiB"] = max(most["MiB"], peak)
                except (OSError, IndexError):  # it ended
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join(600)


def built(source: Path, home: Path, name: str, *options: str) -> dict[str, float]:
    command = [
        sys.executable,
        "-c",
        "from klsa_search.cli.index import main; main()",
        "build",
        str(source),
    ]
    command += ["--name", name, "--home", str(home), *options]
    begin, before = time.perf_counter(), os.times()
    with (
        watched(lambda line: line.startswith("ray::")) as worker,
        watched(lambda line: f"--name {name}" in line) as leader,
    ):
        subprocess.run(command, check=True, capture_output=True, timeout=86_400)
    after = os.times()
    return {
        "seconds": time.perf_counter() - begin,
        # Of processes that are no children of the command's, as Ray's, nothing is known.
        "processor": after.children_user + after.children_system
        - before.children_user - before.children_system,
        "leader MiB": leader["MiB"],
        "worker MiB": worker["MiB"],
    }  # fmt: skip


def builds(source: Path, shards: int, workers: int, rounds: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    ways: dict[str, tuple[str, ...]] = {
        "plain": (),
        "cluster": ("--cluster", "local", "--shards", str(shards), "--workers", str(workers)),
    }
    with tempfile.TemporaryDirectory() as folder:
        home, sums = Path(folder), {}
        for _ in range(rounds):
            for name, options in ways.items():
                told = built(source, home, name, *options)
                files = read_manifest(home / name / "000001").files
                sums[name] = {each: entry.sha256 for each, entry in files.items()}
                shutil.rmtree(home / name)
                print(name, *(f"{each} {value:.1f}" for each, value in told.items()), sep="  ")
                found.append({"way": name, **told})
        print("the same files" if sums["plain"] == sums["cluster"] else "OTHER FILES")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("answers", "search", "build"))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("queries", type=Path, nargs="?")
    parser.add_argument("--shards", type=int, nargs="+", default=[4])
    parser.add_argument("--asked", type=int, default=1000, help="queries, at most")
    parser.add_argument("--documents", type=int)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found: Any
    if given.what == "build":
        with tempfile.TemporaryDirectory() as folder:
            source = given.corpus
            if given.documents is not None:
                source = Path(folder) / "some.jsonl"
                with given.corpus.open("rb") as lines, source.open("wb") as some:
                    some.writelines(islice(lines, given.documents))
            found = builds(source, given.shards[0], given.workers, given.rounds)
    else:
        queries = [query.text for query in read_query_lines(given.queries)][: given.asked]
        documents = islice(with_fields(given.corpus), given.documents)
        with (
            tempfile.TemporaryDirectory() as home,
            closing(build(documents, name="one", home=home)) as index,
        ):
            if given.what == "answers":
                found = answers(index, queries, given.shards)
            else:
                found = phases(index, queries, given.shards[0])
                print("  ".join(f"{name} {value:.2f}" for name, value in found.items()))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
