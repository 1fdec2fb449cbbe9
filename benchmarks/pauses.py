"""How long those who search wait while many documents are added in the same process.

    python -m benchmarks.pauses INDEX CORPUS.jsonl QUERIES.tsv [--count 10000] [--seconds 3]
                                [--json FILE]

INDEX is the folder of an index whose D is cut, of which a copy is written to; CORPUS and QUERIES
are those of `benchmarks.corpora`, CORPUS not in it. One thread asks one query after the other, k =
10: for so many seconds alone (`quiet`), then while another adds the documents (`meanwhile`): the
median, and the longest. What is there before is no garbage to look for, as in the service
(`gc.freeze`). `added` is until all are durable and found, `processor` what adding had of the
processors, and `load` the processes that wanted one before.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from klsa_search import Document, Index, open_index
from klsa_search.collection import open_collection


def measured(
    index: Index, documents: Sequence[Document], queries: Sequence[str], span: float
) -> dict[str, float]:
    """All figures, by name."""
    index.warm_up()
    index.add(documents[:1])  # what is made at the first write
    gc.collect()
    gc.freeze()
    took: list[float] = []
    spent: list[float] = []  # of a processor, by the thread that searches
    done = threading.Event()

    def search() -> None:
        for query in cycle(queries):
            if done.is_set():
                return
            begun = time.perf_counter()
            index.rank(query, 10)
            took.append(time.perf_counter() - begun)
            spent.append(time.thread_time())

    load = os.getloadavg()[0]
    searcher = threading.Thread(target=search)
    searcher.start()
    time.sleep(span)
    quiet = len(took)
    begun, worked = time.perf_counter(), time.process_time()
    index.add(documents[1:])
    added, worked = time.perf_counter() - begun, time.process_time() - worked
    done.set()
    searcher.join(600)
    alone, beside = 1000 * np.array(took[:quiet]), 1000 * np.array(took[quiet:])
    return {
        "added_s": added,
        "processor_s": worked - (spent[-1] - spent[quiet - 1]),
        "quiet_ms": float(np.median(alone)),
        "quiet_longest_ms": float(alone.max()),
        "meanwhile_ms": float(np.median(beside)),
        "meanwhile_longest_ms": float(beside.max()),
        "above_50_ms": int((beside > 50).sum()),
        "load": load,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--count", type=int, default=10_000, help="documents that are added")
    parser.add_argument("--seconds", type=float, default=3.0, help="of searching before")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    documents = list(islice(open_collection(options.corpus).documents(), options.count + 1))
    lines = options.queries.read_text(encoding="utf-8").splitlines()
    queries = [line.partition("\t")[2] for line in lines]
    with tempfile.TemporaryDirectory(prefix="klsa-pauses-") as home:
        copy = shutil.copytree(options.index, Path(home) / "copy")
        with closing(open_index(copy)) as index:
            size = len(index)
            found = measured(index, documents, queries, options.seconds)
    print(f"{len(documents) - 1:,} documents into {size:,}")
    for name, value in found.items():
        print(f"{name:22}{value:10.4g}")
    if options.json:
        record = {"documents": size, "added": len(documents) - 1, **found}
        options.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
