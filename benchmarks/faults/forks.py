"""Forks of a process whose threads search: every child answers, and ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.faults.children import call
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import SPECTRAL, Place

CHILDREN = 25
_GOOD = ("answered as before", "refused in a sentence")


def run(
    folder: Path, *, children: int = CHILDREN, times: int = 1, functions: tuple[str, ...] = SPECTRAL
) -> list[Tally]:
    """Fork so many children of one process, so many times for each function."""
    tally = Tally("forks", "a child of a process with four threads that search")
    for spectral in functions:
        place = Place(folder / spectral, spectral)
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
                    "the process itself ended", f"{spectral}, time {turn}: {done.stderr[-300:]}"
                )
                continue
            for how, count in json.loads(done.stdout).items():
                if how in _GOOD:
                    tally.survive(how, count)
                else:
                    for _ in range(count):
                        tally.fail(how, f"{spectral}, time {turn}")
    return [tally]
