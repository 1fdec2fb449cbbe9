"""What the fast ranking loses against scoring every document in full.

    python -m benchmarks.fast_and_exact [COLLECTION ...] [--data FOLDER]
    python -m benchmarks.fast_and_exact --index FOLDER QUERIES.tsv [--every 10]

For collections with judgements: MAP to depth 1000, both ways. For an index: overlap of the first 10
and of the first 1000, on every n-th query that has an answer.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from klsa_search import build, open_index
from klsa_search.collection import open_collection
from klsa_search.evaluation.measures import Judge, rank_best
from klsa_search.search.index import Index
from studies import command_parser
from studies.datasets import query_texts

FOUR = ("cran", "cran-1837", "cisi", "cacm", "med")
DEPTHS = (10, 1000)


def of_collection(name: str, data: Path | None) -> None:
    collection = open_collection(name, data=data)
    judge = Judge(collection.judgements(), measures=("map",))
    values = []
    with tempfile.TemporaryDirectory() as home:
        index = build(collection, name="default", home=home)
        for exact in (True, False):
            run = rank_best(index, collection.queries(), exact=exact)
            values.append(judge.measure(run).means()["map"])
        index.close()
    full, fast = values
    print(f"{name:10} exact {full:.4f} fast {fast:.4f} ({fast / full - 1:+.2%})", flush=True)


def of_index(index: Index, texts: list[str]) -> None:
    for k in DEPTHS:
        shares, seconds = [], {False: 0.0, True: 0.0}
        for text in texts:
            found = {}
            for exact in (False, True):
                begun = time.perf_counter()
                found[exact] = set(index.rank(text, k, exact=exact)[0].tolist())
                seconds[exact] += time.perf_counter() - begun
            if found[True]:
                shares.append(len(found[False] & found[True]) / len(found[True]))
        fast_ms, exact_ms = (1000 * seconds[way] / len(texts) for way in (False, True))
        print(
            f"{index.name} overlap@{k} {statistics.mean(shares):.4f} of {len(shares)} queries, "
            f"{fast_ms:.2f} ms fast, {exact_ms:.1f} ms exact",
            flush=True,
        )


def main() -> None:
    parser = command_parser("benchmarks.fast_and_exact", __doc__)
    parser.add_argument("collections", nargs="*", default=list(FOUR))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--index", nargs=2, type=Path, metavar=("FOLDER", "QUERIES"))
    parser.add_argument("--every", type=int, default=10)
    options = parser.parse_args()
    if options.index:
        folder, queries = options.index
        of_index(open_index(folder), query_texts(queries)[:: options.every])
        return
    for name in options.collections:
        of_collection(name, options.data)


if __name__ == "__main__":
    main()
