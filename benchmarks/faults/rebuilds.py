"""Generations taken up, one after the other, by a service with few descriptors."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.faults.children import PATIENCE, call
from benchmarks.faults.serving import Server
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import NAME, VERSIONS, Place

_ENOUGH = 3


def run(folder: Path, *, rebuilds: int = 40, descriptors: int = 64) -> list[Tally]:
    """Rebuild an index so many times while it is served; each generation is taken up."""
    tallies = []
    for spectral in ("gvsm", "truncation"):
        tally = Tally(
            f"service: rebuilds, D {spectral}",
            f"a generation, taken up with {descriptors} descriptors",
        )
        tallies.append(tally)
        place = Place(folder / f"rebuilds-{spectral}", spectral)
        call(place.do, "old").given().expect_done()
        with Server(place.home, descriptors=descriptors) as server:
            for turn in range(rebuilds):
                call(place.do, VERSIONS[turn % len(VERSIONS)]).given().expect_done()
                wanted = max(path.name for path in place.index.glob("[0-9]*"))
                if found := _other_than(server, wanted):
                    tally.fail("not taken up", f"{wanted}: {found}")
                else:
                    tally.survive("taken up")
                if tally.failed.total() >= _ENOUGH:
                    break
    return tallies


def _other_than(server: Server, wanted: str) -> str | None:
    """Wait until the service answers from that generation; what it does else, if it never does."""
    end = time.monotonic() + PATIENCE
    while True:
        asked = server.get(f"/search?index={NAME}&q=boat1")
        if asked.outcome == 200 and asked.json["generation"] == wanted:
            return None
        if time.monotonic() > end:
            health = server.get("/health")
            return f"{asked.outcome} {asked.body[:120]!r}; /health: {health.body[:400]!r}"
        time.sleep(0.1)
