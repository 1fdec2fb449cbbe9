"""What an answer with titles and passages costs, in process beside `rank` and over HTTP.

    python -m benchmarks.answers HOME NAME QUERIES.tsv [--k 10] [--rounds 5]
                                 [--connections 1 8] [--seconds 10] [--json FILE]

HOME is a home of indexes, NAME one of them. In process `rank` and `search` are asked each query in
turn; medians over all of them and all rounds. Over HTTP it is `benchmarks.service_load`'s
measurement: klsa-serve beside an empty synchronous endpoint, in turn, over connections that are
kept; medians over rounds of requests a second, and of the share of each round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from benchmarks.service_load import SERVICE, YARDSTICK, beside_empty, kept, server
from klsa_search import open_index


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


def over_http(
    home: Path, name: str, queries: list[str], connections: list[int], seconds: float, rounds: int
) -> list[dict[str, float]]:
    """Requests a second, and the service's share of those of the empty endpoint."""
    with ExitStack() as servers:
        empty = servers.enter_context(server(YARDSTICK))
        service = servers.enter_context(server(SERVICE, "--home", str(home), "--port", "0"))
        nothing, searches = [empty.get("/")], service.searches(queries, name)
        kept(service, searches, 1, 1)
        return [
            beside_empty((empty, nothing), (service, searches), count, seconds, rounds)
            for count in connections
        ]


def report(found: dict[str, Any]) -> str:
    inside = found["in_process"]
    lines = [
        "| | ms a query | of `rank` |",
        "|---|---|---|",
        f"| `rank` | {inside['rank']:.3f} | 1 |",
        f"| `search` | {inside['search']:.3f} | {inside['multiple']:.2f} |",
        "",
        "| connections | empty endpoint, requests/s | `GET /search`, requests/s | share |",
        "|---|---|---|---|",
    ]
    lines += [
        "| {connections} | {empty:,.0f} | {rate:,.0f} | {share:.2f} |".format(**row)
        for row in found["http"]
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.answers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("home", type=Path)
    parser.add_argument("name")
    parser.add_argument("queries", type=Path)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    queries = [line.rstrip("\n").partition("\t")[2] for line in options.queries.open()]
    found = {
        "in_process": in_process(options.home / options.name, queries, options.k, options.rounds),
        "http": over_http(
            options.home,
            options.name,
            queries,
            options.connections,
            options.seconds,
            options.rounds,
        ),
    }
    print(report(found))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
