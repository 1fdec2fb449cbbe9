"""What a filter costs beside the same queries without one, from next to nothing to all.

    python -m benchmarks.filtering CORPUS.jsonl QUERIES.tsv [--queries 200] [--rounds 5] [--json F]

CORPUS is one of `benchmarks.corpora`; each document gets a number `place`, of a random order, and
a keyword `shelf`, of ten. `remembered` is `rank` with a mask that is there, as of a filter that was
asked for before, `new` the search with a filter of its own at each query, `plain` without one: µs
a query, medians of rounds in turns. `facets` counts both fields in all that is found.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from klsa_search import Index, build
from klsa_search.collection import Document, open_collection
from klsa_search.collection.queries import read_query_lines

SHARES = (0.00001, 0.0001, 0.001, 0.003, 0.01, 0.1, 0.5, 0.9, 0.99)
"""Of the documents, how many pass."""


def with_fields(corpus: Path) -> Iterator[Document]:
    documents = list(open_collection(corpus).documents())
    places = np.random.default_rng(0).permutation(len(documents)).tolist()
    for document, place in zip(documents, places, strict=True):
        yield replace(document, metadata={"place": place, "shelf": f"shelf {place % 10}"})


def microseconds(ask: Callable[[str, int], Any], queries: list[str]) -> float:
    begin = time.perf_counter()
    for number, query in enumerate(queries):
        ask(query, number)
    return 1e6 * (time.perf_counter() - begin) / len(queries)


def ways(index: Index) -> dict[str, Callable[[str, int], Any]]:
    """Each way to ask: a function of a query and its number."""

    def remembered(text: str) -> Callable[[str, int], Any]:
        return lambda query, _: index.search(query, filter=text)

    def new(most: int) -> Callable[[str, int], Any]:
        # No two are the same text, so that each makes its mask.
        return lambda query, n: index.search(
            query, filter=f"place < {most} AND place > -{n + 1}.{time.perf_counter_ns()}"
        )

    found: dict[str, Callable[[str, int], Any]] = {"plain": lambda query, _: index.search(query)}
    for share in SHARES:
        most = max(1, round(share * len(index)))
        found[f"remembered {share:.3%}"] = remembered(f"place < {most}")
        found[f"new {share:.3%}"] = new(most)
    found["facets"] = lambda query, _: index.search(query, facets=["shelf", "place"])
    found["sorted"] = lambda query, _: index.search(query, sort=["place"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.filtering",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--queries", dest="count", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    texts = [query.text for query in read_query_lines(options.queries)][: options.count]
    with tempfile.TemporaryDirectory(prefix="klsa-filtering-") as home:
        made = build(with_fields(options.corpus), name="filtered", home=home)
        with closing(made) as index:
            index.warm_up()
            asked = ways(index)
            taken: dict[str, list[float]] = {name: [] for name in asked}
            for round_ in range(options.rounds + 1):
                for name, ask in asked.items():
                    spent = microseconds(ask, texts)
                    if round_:  # the first compiles, and makes what is remembered
                        taken[name].append(spent)
    medians = {name: float(np.median(spent)) for name, spent in taken.items()}
    print("| | µs | times plain |\n|---|---|---|")
    for name, spent in medians.items():
        print(f"| {name} | {spent:.0f} | {spent / medians['plain']:.2f} |")
    if options.json:
        options.json.write_text(json.dumps(medians, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
