"""What writing to an index costs, and what it costs those who search meanwhile and afterwards.

    python -m benchmarks.writing CORPUS.jsonl QUERIES.tsv [--first 20000] [--count 1000]
                                 [--alone 50] [--seconds 3] [--json FILE]

CORPUS and QUERIES are those of `benchmarks.corpora`. An index is built of the first documents; a
copy of it is written to. `durable` is until a batch is acknowledged on the disk, `searchable` from
then until `refresh` has taken it up, both for `count` documents added, and deleted, at once;
`upsert` the median of so many documents replaced one by one. `open` is opening the index, before
and after. Queries are asked one after the other, k = 10, and latencies are medians over all of
them: `quiet` of the index as built, `meanwhile` while another process adds documents one by one and
deletes them again, and this one takes them up four times a second; `delta` of an index to which the
last tenth of the first documents was added, beside `whole`, that which was built of them all, in
turns.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from klsa_search import Document, Index, build, open_index
from klsa_search.collection import open_collection
from klsa_search.storage.generations import writing
from klsa_search.storage.write_log_writer import LogWriter
from studies.datasets import query_texts

_TURNS = 5
_EVERY = 0.25  # seconds between two looks for what was written


def write(index: Index, puts: Sequence[Document], deletes: Sequence[str] = ()) -> tuple[float, ...]:
    """Seconds until a batch is durable, and from then until it is searchable."""
    begun = time.perf_counter()
    with writing(index.path.parent), LogWriter(index.path) as writer:
        writer.append(puts, deletes)
    durable = time.perf_counter()
    index.refresh()
    return durable - begun, time.perf_counter() - durable


def seconds(work: Callable[[], object], times: int) -> float:
    """Median seconds of a call."""
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return float(np.median(found))


def latencies(index: Index, queries: Sequence[str]) -> list[float]:
    """Seconds of each query."""
    found = []
    for query in queries:
        begun = time.perf_counter()
        index.rank(query, 10)
        found.append(time.perf_counter() - begun)
    return found


def meanwhile(path: Path, queries: Sequence[str], later: Sequence[Document], span: float) -> float:
    """Median latency while another process writes, and a thread takes it up."""
    index, found = open_index(path), list[float]()
    done = threading.Event()

    def follow() -> None:
        while not done.wait(_EVERY):
            index.refresh()

    corpus = path.with_name("later.jsonl")
    corpus.write_text("".join(json.dumps(_record(each)) + "\n" for each in later), "utf-8")
    command = "import sys; from benchmarks.writing import write_on; write_on(*sys.argv[1:])"
    writer = subprocess.Popen(
        [sys.executable, "-c", command, path, corpus], cwd=Path(__file__).parents[1]
    )
    follower = threading.Thread(target=follow)
    follower.start()
    begun = index.last_write.seq
    while index.last_write.seq == begun and writer.poll() is None:  # it has yet to start
        time.sleep(_EVERY)
    until = time.perf_counter() + span
    while time.perf_counter() < until:
        found += latencies(index, queries[:100])
    done.set()
    follower.join(600)
    writer.terminate()
    writer.wait(timeout=86_400)
    index.close()
    return float(np.median(found))


def _record(document: Document) -> dict[str, str]:
    return {"id": document.id, "title": document.title, "text": document.text}


def write_on(path: str, corpus: str) -> None:
    """Add documents one by one and delete them again, until this process is ended."""
    index, later = open_index(path), list(open_collection(corpus).documents())
    while True:
        for document in later:
            index.add([document])
        index.delete([document.id for document in later])


def in_turns(one: Index, other: Index, queries: Sequence[str]) -> tuple[float, float]:
    """Median latencies of two indexes."""
    for index in (one, other):
        latencies(index, queries)
    found: tuple[list[float], list[float]] = [], []
    for _ in range(_TURNS):
        for index, own in zip((one, other), found, strict=True):
            own += latencies(index, queries)
    return float(np.median(found[0])), float(np.median(found[1]))


def measured(
    documents: list[Document], queries: list[str], options: argparse.Namespace, home: Path
) -> dict[str, float]:
    """All figures, by name."""
    first, later = documents[: options.first], documents[options.first :]
    some, kept = later[: options.count], options.first - options.first // 10
    build(first, name="first", home=home).close()
    grown = shutil.copytree(home / "first", home / "grown")
    found = {"open_ms": 1000 * seconds(lambda: open_index(grown).close(), 5)}
    index = open_index(grown)
    index.warm_up()
    write(index, later[-1:])  # what is made at the first write
    found["durable_s"], found["searchable_s"] = write(index, some)
    gone = [document.id for document in first[: options.count]]
    found["deleted_durable_s"], found["deleted_searchable_s"] = write(index, [], gone)
    again = iter(first[-options.alone :])
    found["upsert_ms"] = 1000 * seconds(lambda: index.add([next(again)]), options.alone)
    index.close()
    found["open_written_ms"] = 1000 * seconds(lambda: open_index(grown).close(), 5)
    with_tenth, whole = build(first[:kept], name="tenth", home=home), open_index(home / "first")
    with_tenth.add(first[kept:])
    delta, alike = in_turns(with_tenth, whole, queries)
    found |= {"delta_us": 1e6 * delta, "whole_us": 1e6 * alike, "delta_ratio": delta / alike}
    for each in (with_tenth, whole):
        each.close()
    built = open_index(home / "first")
    latencies(built, queries)
    quiet = float(np.median(latencies(built, queries)))
    built.close()
    busy = meanwhile(home / "first", queries, some, options.seconds)
    return found | {
        "quiet_us": 1e6 * quiet,
        "meanwhile_us": 1e6 * busy,
        "meanwhile_ratio": busy / quiet,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--first", type=int, default=20_000, help="documents that are built in")
    parser.add_argument("--count", type=int, default=1_000, help="documents written at once")
    parser.add_argument("--alone", type=int, default=50, help="documents written one by one")
    parser.add_argument("--seconds", type=float, default=3.0, help="of searching while one writes")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    least = options.first + options.count + 1
    documents = list(islice(open_collection(options.corpus).documents(), least))
    if len(documents) < least:
        parser.error(f"{options.corpus} has {len(documents)} documents: ask for fewer")
    queries = query_texts(options.queries)
    with tempfile.TemporaryDirectory(prefix="klsa-writing-") as home:
        found = measured(documents, queries, options, Path(home))
    print(f"{options.count:,} documents into {options.first:,}")
    for name, value in found.items():
        print(f"{name:22}{value:10.4g}")
    if options.json:
        record = {"documents": options.first, "written": options.count, **found}
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
