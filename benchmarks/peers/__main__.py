"""Install the peers, run them against each other, plot what came out."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.peers.driver import compare, of_length
from benchmarks.peers.environments import CACHE, PEERS, install, plot, print_tables
from studies.datasets import query_texts


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--cache", type=Path, default=CACHE, help="environments and indexes")
    commands = parser.add_subparsers(dest="command", required=True)
    installing = commands.add_parser("install", help="make the environments")
    running = commands.add_parser("run", help="measure on one corpus")
    running.add_argument("corpus", type=Path, help="JSON lines with a field text")
    running.add_argument("queries", type=Path, help="lines of a number, a tab, a query")
    running.add_argument("--k", type=int, nargs="+", default=[10, 1000])
    running.add_argument("--words", type=int, help="words of a query, of QUERIES joined")
    running.add_argument("--rounds", type=int, default=5)
    running.add_argument("--json", type=Path)
    for command in (installing, running):
        command.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    plotting = commands.add_parser("plot", help="queries a second against N")
    plotting.add_argument("reports", type=Path, nargs="+")
    plotting.add_argument("--figure", type=Path, required=True)
    return parser.parse_args()


def main() -> None:
    options = _arguments()
    if options.command == "install":
        install(options.cache, options.peers)
    elif options.command == "plot":
        plot([json.loads(path.read_text()) for path in options.reports], options.figure)
    else:
        texts = query_texts(options.queries)
        report = compare(
            options.peers,
            options.corpus,
            texts if options.words is None else of_length(texts, options.words),
            options.cache,
            options.k,
            options.rounds,
        )
        print_tables(report)
        if options.json:
            options.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
