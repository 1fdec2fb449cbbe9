"""What an answer with titles and passages costs, relative to `rank`.

    python -m benchmarks.answers INDEX QUERIES.tsv [--k 10] [--rounds 5] [--json FILE]
                                 [--words 10 20 40 60 300]

With `--words`, queries of so many words are made of those of the file, as people paste and
assistants write them.

`rank` and `search` are asked each query in turns; medians over all of them and all rounds. What
HTTP adds is measured by `benchmarks.service_load`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from klsa_search import open_index


def of_words(queries: list[str], count: int) -> list[str]:
    """Return queries of so many words, which follow each other in these; at most 100."""
    words = " ".join(queries).split()
    starts = range(0, max(len(words) - count, 0) + 1, max(count, len(words) // 100))
    return [" ".join(words[start : start + count]) for start in starts]


def in_process(folder: Path, queries: list[str], k: int, rounds: int) -> dict[str, float]:
    """Median milliseconds of a query, and what `search` takes of what `rank` takes."""
    with closing(open_index(folder)) as index:
        index.warm_up()
        ways: dict[str, Callable[[str, int], object]] = {"rank": index.rank, "search": index.search}
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for query in queries:
                for name, ask in ways.items():
                    begun = time.perf_counter()
                    ask(query, k)
                    taken[name].append(time.perf_counter() - begun)
    found = {name: 1000 * statistics.median(times) for name, times in taken.items()}
    return {**found, "multiple": found["search"] / found["rank"]}


def report(found: dict[str, float]) -> str:
    return "\n".join(
        (
            "| | ms a query | of `rank` |",
            "|---|---|---|",
            f"| `rank` | {found['rank']:.3f} | 1 |",
            f"| `search` | {found['search']:.3f} | {found['multiple']:.2f} |",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--words", type=int, nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    queries = [line.rstrip("\n").partition("\t")[2] for line in options.queries.open()]
    found = in_process(options.index, queries, options.k, options.rounds)
    print(report(found))
    for count in options.words:
        long = in_process(options.index, of_words(queries, count), options.k, options.rounds)
        print(f"\n{count} words a query\n{report(long)}")
        found |= {f"{name} of {count} words": value for name, value in long.items()}
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
