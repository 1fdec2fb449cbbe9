"""What analytics cost the service: searches with and without --analytics, in turns.

    python -m benchmarks.analytics HOME NAME QUERIES.tsv [--rounds 9] [--seconds 4]
                                   [--connections 8] [--json FILE]

HOME is an index directory, which gets a file of analytics; NAME is one of its indexes. Two services
run at the same time, one with analytics, and are sent the same searches in turns. Reported are the
medians over rounds of requests a second and of processor microseconds for each request (with the
background work), and the median of the ratios of each round. On a busy machine, compare the
processor time.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.service_load import SERVICE, kept, server, wait_until_compiled


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return medians and ratios of both services."""
    queries = [line.rstrip("\n").partition("\t")[2] for line in options.queries.open()]
    arguments = ["--home", str(options.home), "--port", "0", "--read-only"]
    with server(SERVICE, *arguments) as off, server(SERVICE, *arguments, "--analytics") as on:
        both = []
        for address in (off, on):
            wait_until_compiled(address)
            paths = [f"/search?q={quote(q)}&index={options.name}" for q in queries]
            both.append((address, [address.get(path) for path in paths]))
            kept(*both[-1], options.connections, options.seconds)  # warms up
        rounds = []
        for turn in range(options.rounds):
            order = both if turn % 2 == 0 else both[::-1]
            measured = {at.port: kept(at, asked, options.connections, options.seconds)
                        for at, asked in order}  # fmt: skip
            rounds.append((measured[off.port], measured[on.port]))
    found: dict[str, Any] = {"rounds": len(rounds)}
    for key in ("rate", "processor", "p50", "p99"):
        found[key] = {
            "off": statistics.median(without[key] for without, _ in rounds),
            "on": statistics.median(with_[key] for _, with_ in rounds),
            "ratio": statistics.median(with_[key] / without[key] for without, with_ in rounds),
        }
    return found


def main() -> None:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("name")
    parser.add_argument("queries", type=Path, help="lines of number, tab, query")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = measure(options)
    for key, row in found.items():
        if isinstance(row, dict):
            print(f"{key:10} off {row['off']:9.2f}  on {row['on']:9.2f}  ratio {row['ratio']:.4f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
