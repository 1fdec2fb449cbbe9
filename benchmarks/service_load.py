"""What the service answers under load, relative to the plainest server around the same index.

    python -m benchmarks.service_load HOME NAME QUERIES.tsv [--connections 1 8] [--seconds 10]
                                      [--overload 2] [--requests 2000] [--json FILE]
                                      [--parameters "&highlight=true&facets=topic,place"] [--keys 4]
    python -m benchmarks.service_load HOME NAME QUERIES.tsv --expensive [--seconds 10] [--rounds 3]
                                      [--field NAME]

HOME is an index directory, NAME one of its indexes. klsa-serve runs in a process of its own, and so
does `benchmarks.plain_server`, 15 lines of Starlette under uvicorn; both are sent the same searches
over connections that are kept, one request after the other on each, in turns. The share is of the
plain server's requests a second; the table also has what a request takes of a processor, in
microseconds, of both (Linux), and the share of these, which a busy machine moves less.

With `--expensive` eight clients send expensive requests of one kind after another, and one sends
light searches; `--field` names a keyword field of many values, for kinds that filter, sort and
count by it.

Then so many requests arrive at `overload` times the rate that the most connections reached, whether
or not those before them are answered, and /health is asked ten times a second over connections of
its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote

from benchmarks.service_client import Address, Answer, closed_loop, open_loop
from klsa_search.service.keys import add_key
from studies import command_parser
from studies.datasets import query_texts

PATIENCE = 120.0
"""Seconds after which a client gives up."""

EXPENSIVE_CLIENTS: Final = 8

MAX_QUERY: Final = 10_000
"""Characters of a query that the service accepts."""

SERVICE = "from klsa_search.cli.serve import main; main()"
PLAIN = "from benchmarks.plain_server import main; main()"


@dataclass(frozen=True)
class Server(Address):
    """Where a server listens, and its process."""

    process: int

    def processor_seconds(self) -> float:
        """What it took of processors since its start, in steps of 10 ms."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(program: str, *arguments: str) -> Iterator[Server]:
    """Run a server that says where it serves."""
    command = [sys.executable, "-u", "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("Serving"):
                    port = line.partition("http://127.0.0.1:")[2].split()[0]
                    break
            else:
                raise SystemExit("the server ended before it served")
            yield Server("127.0.0.1", int(port), process.pid)
        finally:
            process.terminate()


def percentile(answers: Sequence[Answer], share: float) -> float:
    """In milliseconds; NaN of no answers."""
    taken = sorted(answer.seconds for answer in answers)
    return 1000 * taken[int(share * (len(taken) - 1))] if taken else float("nan")


def kept(
    address: Server, requests: list[bytes], connections: int, seconds: float
) -> dict[str, float]:
    begun = address.processor_seconds()
    answers, taken = asyncio.run(closed_loop(address, requests, connections, seconds, PATIENCE))
    wrong = Counter(answer.status for answer in answers if answer.status != 200)
    if wrong:
        raise SystemExit(f"answers other than 200: {dict(wrong)}")
    return {
        "rate": len(answers) / taken,
        "processor": 1e6 * (address.processor_seconds() - begun) / len(answers),
        "p50": percentile(answers, 0.5),
        "p99": percentile(answers, 0.99),
    }


def compared(
    plain: tuple[Server, list[bytes]],
    service: tuple[Server, list[bytes]],
    connections: int,
    seconds: float,
    rounds: int,
) -> dict[str, float]:
    """Medians over rounds of what both answer in turn; the share is that of each round."""
    pairs = [
        (kept(*plain, connections, seconds), kept(*service, connections, seconds))
        for _ in range(rounds)
    ]
    row = {
        key: statistics.median(of_service[key] for _, of_service in pairs)
        for key in ("rate", "p50", "p99", "processor")
    }
    return row | {
        "connections": connections,
        "plain": statistics.median(plain_["rate"] for plain_, _ in pairs),
        "share": statistics.median(of["rate"] / plain_["rate"] for plain_, of in pairs),
        "plain_processor": statistics.median(plain_["processor"] for plain_, _ in pairs),
        "processor_share": statistics.median(
            plain_["processor"] / of["processor"] for plain_, of in pairs
        ),
    }


async def overloaded(
    address: Address, requests: list[bytes], rate: float, count: int
) -> tuple[list[Answer], list[Answer]]:
    probes = round(10 * count / rate)
    health = open_loop(address, [address.get("/health")], 10, probes, PATIENCE)
    load = open_loop(address, requests, rate, count, PATIENCE)
    return tuple(await asyncio.gather(load, health))  # type: ignore[return-value]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    queries = query_texts(options.queries)
    found: dict[str, Any] = {"kept": []}
    with ExitStack() as servers:
        plain = servers.enter_context(server(PLAIN, str(options.home / options.name)))
        file = Path(servers.enter_context(TemporaryDirectory()), "keys.json")
        keys = [add_key(file, f"key{number}", ["search"]) for number in range(options.keys)]
        service = servers.enter_context(
            server(SERVICE, "--home", str(options.home), "--port", "0", "--keys", str(file))
        )
        searches = service.searches(queries, options.name, options.parameters, keys)
        kept(service, searches, 1, 1)
        print("connections  plain/s  search/s  share    p50 ms   p99 ms  plain us  us  share")
        for connections in options.connections:
            row = compared(
                (plain, searches), (service, searches), connections, options.seconds, options.rounds
            )
            found["kept"].append(row)
            print(
                f"{connections:11}  {row['plain']:7,.0f}  {row['rate']:8,.0f}  {row['share']:5.3f}"
                f"  {row['p50']:8.1f} {row['p99']:8.1f}  {row['plain_processor']:8,.0f}"
                f"  {row['processor']:,.0f}  {row['processor_share']:.3f}",
                flush=True,
            )
        rate = options.overload * max(row["rate"] for row in found["kept"])
        load, health = asyncio.run(overloaded(service, searches, rate, options.requests))
    found["overload"] = tell(rate, load, health)
    return found


def expensive_requests(
    address: Address, index: str, queries: Sequence[str], field: str | None
) -> dict[str, list[bytes]]:
    """Return kinds of expensive requests, several of each, made of the words of the queries."""
    words = [word for query in queries for word in re.findall("[a-z]{3,}", query.lower())]
    kinds: dict[str, list[bytes]] = {}

    def add(kind: str, texts: Sequence[str], parameters: str = "") -> None:
        kinds[kind] = [
            address.get(f"/search?index={index}&q={quote(text[:MAX_QUERY])}{parameters}")
            for text in texts
        ]

    def joined(count: int, form: str) -> list[str]:
        """Return ten texts of so many pieces, each of two words next to each other."""
        pieces = [form.format(*pair) for pair in pairwise(words)]
        return [" ".join(pieces[first : first + count]) for first in range(0, 10 * count, count)]

    add("k=100, explain", queries[:100], "&k=100&explain=true")
    add("and highlight, quality", queries[:100], "&k=100&explain=true&highlight=true&quality=true")
    add("400 phrases", joined(400, '"{} {}"'))
    add("500 words", joined(500, "{}"))
    add("500 misspelt words", joined(500, "{}qx"))
    searches = [{"q": query, "index": index, "k": 100, "explain": True} for query in queries[:20]]
    kinds["batch of 20, explain"] = [address.post("/multi-search", {"queries": searches})]
    kinds["suggestions"] = [
        address.get(f"/suggest?index={index}&q={quote(word[:2])}&k=20")
        for word in dict.fromkeys(words)
    ]
    if field is not None:
        kinds |= requests_by_field(address, index, field, queries)
    return kinds


def requests_by_field(
    address: Address, index: str, field: str, queries: Sequence[str]
) -> dict[str, list[bytes]]:
    """Return kinds of requests that filter, sort and count by a keyword field."""

    def contains(first: int) -> str:
        """Return a filter of 450 conditions, which no other request has."""
        return " OR ".join(f"{field} CONTAINS {number}" for number in range(first, first + 450))

    def searches(**options: Any) -> list[bytes]:
        return [
            address.post("/search", {"q": query, "index": index, **options}) for query in queries
        ]

    return {
        "450 CONTAINS": [
            address.post("/search", {"q": query, "index": index, "filter": contains(number)})
            for number, query in enumerate(queries)
        ],
        "1,000 facet values": searches(facets=[field], max_facet_values=1000),
        "sort, offset 9,000": searches(sort=[f"{field}:desc"], offset=9000),
        "facet search": [
            address.post(
                f"/indexes/{index}/facet-search", {"field": field, "facet_query": q, "k": 1000}
            )
            for q in "0123456789"
        ],
    }


async def alongside(
    address: Address, light: list[bytes], heavy: list[bytes], seconds: float
) -> tuple[list[Answer], list[Answer]]:
    """Send light requests over one connection while eight others send heavy ones."""
    (answers, _), (expensive, _) = await asyncio.gather(
        closed_loop(address, light, 1, seconds, PATIENCE),
        closed_loop(address, heavy, EXPENSIVE_CLIENTS, seconds, PATIENCE),
    )
    return answers, expensive


def measure_expensive(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the latency of light searches alongside each kind of expensive request."""
    queries = query_texts(options.queries)
    short = [" ".join(re.findall("[a-z]{3,}", query.lower())[:3]) for query in queries]
    found: dict[str, Any] = {}
    with server(SERVICE, "--home", str(options.home), "--port", "0") as service:
        light = service.searches([query for query in short if query], options.name)
        kept(service, light, 1, 1)
        print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
        print("expensive requests      answered/s  refused/s  idle p50  p50 ms   p99 ms  ratio")
        kinds = expensive_requests(service, options.name, queries, options.field)
        for kind, heavy in kinds.items():
            rounds = []
            for _ in range(options.rounds):
                idle = kept(service, light, 1, options.seconds / 2)
                answers, expensive = asyncio.run(alongside(service, light, heavy, options.seconds))
                statuses = Counter(answer.status for answer in expensive)
                rounds.append(
                    {
                        "answered": statuses[200] / options.seconds,
                        "refused": (statuses.total() - statuses[200]) / options.seconds,
                        "idle": idle["p50"],
                        "p50": percentile(answers, 0.5),
                        "p99": percentile(answers, 0.99),
                    }
                )
            row = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
            row["ratio"] = row["p50"] / row["idle"]
            found[kind] = row
            print(
                f"{kind:22}  {row['answered']:10.1f}  {row['refused']:9.1f}  {row['idle']:8.2f}"
                f"  {row['p50']:6.1f}  {row['p99']:7.1f}  {row['ratio']:5.1f}",
                flush=True,
            )
        print(f"load average {os.getloadavg()[0]:.1f}")
    return found


def tell(rate: float, load: list[Answer], health: list[Answer]) -> dict[str, Any]:
    """Print and return what came of the requests above capacity."""
    statuses = dict(sorted(Counter(answer.status for answer in load).items()))
    told: dict[str, Any] = {
        "rate": rate,
        "statuses": statuses,
        "p50": {s: percentile([a for a in load if a.status == s], 0.5) for s in statuses},
        "p99": {s: percentile([a for a in load if a.status == s], 0.99) for s in statuses},
        "slowest": max(answer.seconds for answer in load),
        "health": dict(Counter(answer.status for answer in health)),
        "health_p99": percentile(health, 0.99),
    }
    print(f"{len(load):,} requests at {rate:,.0f} a second, slowest {told['slowest']:.1f} s")
    for status, count in statuses.items():
        name = status or "no answer"
        p50, p99 = told["p50"][status], told["p99"][status]
        print(f"  {name}: {count:,}, p50 {p50:,.0f} ms, p99 {p99:,.0f} ms")
    print(f"  /health: {told['health']}, p99 {told['health_p99']:,.0f} ms")
    return told


def main() -> None:
    parser = command_parser("benchmarks.service_load", __doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("name")
    parser.add_argument("queries", type=Path)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--overload", type=float, default=2)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--parameters", default="", help="of each search, to both servers")
    parser.add_argument("--keys", type=int, default=0, help="API keys that clients send in turns")
    parser.add_argument("--expensive", action="store_true")
    parser.add_argument("--field")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measure_expensive(options) if options.expensive else measure(options)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
