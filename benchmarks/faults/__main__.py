"""The campaign of faults, in full.

    python -m benchmarks.faults [PART ...] [--times N] [--json FILE]

Parts: disk, damage, writers, readers, partitions, followers, log, calls; all of them by default.
Prints a table of what was tried and what survived, then the first examples of each failure; N
repeats what depends on chance. Kills at every step of a change are `tests/storage/test_kills.py`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults import (
    damage,
    disk,
    failing_calls,
    followers,
    partition_kills,
    write_damage,
    write_kills,
    write_readers,
)
from benchmarks.faults.children import scratch
from benchmarks.faults.tally import HEAD, Tally, failures, row
from studies import command_parser


def _writers(folder: Path, times: int) -> list[Tally]:
    kills = {"writers": 200, "refitters": 150, "builders": 150}
    return write_kills.run(folder, **{who: number * times for who, number in kills.items()})


def _partitions(folder: Path, times: int) -> list[Tally]:
    kills = {"builds": 50, "writes": 60, "refits": 50, "splits": 60, "settings": 20}
    return partition_kills.run(folder, **{who: number * times for who, number in kills.items()})


PARTS: dict[str, Callable[[Path, int], list[Tally]]] = {
    "disk": lambda folder, times: disk.run(folder),
    "damage": lambda folder, times: damage.run(folder, times=3 * times),
    "writers": _writers,
    "readers": lambda folder, times: write_readers.run(folder, seconds=60 * times),
    "partitions": _partitions,
    "followers": lambda folder, times: followers.run(
        folder, leaders=20 * times, followers=20 * times
    ),
    "log": lambda folder, times: write_damage.run(folder, times=3 * times),
    "calls": lambda folder, times: failing_calls.run(folder),
}


def main() -> None:
    parser = command_parser("benchmarks.faults", __doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--times", type=int, default=1, help="repeat chance so often")
    parser.add_argument("--json", type=Path, help="also write everything to this file")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    tallies: list[Tally] = []
    print(HEAD)
    for name in options.parts or PARTS:
        begun = time.monotonic()
        with scratch() as folder:
            found = PARTS[name](folder, options.times)
        for tally in found:
            print(row(tally), flush=True)
        print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        tallies += found
    if told := failures(tallies):
        print(f"\n{told}")
    if options.json:
        written = json.dumps([tally.as_json() for tally in tallies], indent=1, default=str)
        options.json.write_text(written + "\n", encoding="utf-8")
    sys.exit(1 if any(tally.failed for tally in tallies) else 0)


if __name__ == "__main__":
    main()
