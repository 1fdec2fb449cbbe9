"""Forks of a process whose threads search: every child answers, and ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.faults.children import call
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import LAYOUTS, Place

CHILDREN = 25
_GOOD = ("answered as before", "refused in a sentence")


def run(
    folder: Path, *, children: int = CHILDREN, times: int = 1, layouts: tuple[str, ...] = LAYOUTS
) -> list[Tally]:
    """Fork so many children of one process, so many times for each layout."""
    tally = Tally("forks", "a child of a process with four threads that search")
    for layout in layouts:
        place = Place(folder / layout, layout)
        call(place.do, "old").given().expect_done()
        for turn in range(times):
            command = [
                sys.executable,
                "-m",
                "benchmarks.faults.forking",
                str(place.index),
                str(children),
            ]
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=86_400
            )
            if done.returncode:
                tally.fail(
                    "the process itself ended", f"{layout}, time {turn}: {done.stderr[-300:]}"
                )
                continue
            for how, count in json.loads(done.stdout).items():
                if how in _GOOD:
                    tally.survive(how, count)
                else:
                    for _ in range(count):
                        tally.fail(how, f"{layout}, time {turn}")
    return [tally]
