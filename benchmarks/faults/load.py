"""More requests than can be answered, and the end of the service amid them."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

from benchmarks.faults.children import call
from benchmarks.faults.serving import PATIENCE, Asked, Server, ask
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import NAME, Place
from klsa_search.service.schemas.requests import MAX_HITS

_BOUND = 60.0
"""Seconds in which a service ends that is told to."""

_MOMENT = 1.0
"""Seconds before the signal from which on a request may come too late; where the service is so busy
that /health takes longer, it is behind by that.
"""


def run(
    folder: Path, *, requests: int = 2000, documents: int = 1500, measured: float = 10
) -> list[Tally]:
    """Ask at twice the capacity, /health meanwhile; then again, and end the service amid that.

    measured  seconds in which the capacity is found
    """
    place = Place(folder / "load", "truncation", documents)
    call(place.do, "old").given().expect_done()
    path = (
        f"/search?index={NAME}&q=shared1+shared2+shared3+boat1+wing2&k={min(documents, MAX_HITS)}"
    )
    with Server(place.home) as server:
        rate = 2 * asyncio.run(_capacity(server.port, path, measured))
        load, health = asyncio.run(_overload(server.port, path, rate, requests))
        ending, signalled = asyncio.run(_end(server, path, rate))
        code = server.left(_BOUND)
        taken = time.monotonic() - signalled
        return [
            _of_load(load, rate),
            _of_health(health),
            _of_end(ending, signalled, _behind(health), code, taken, server.errors()),
        ]


async def _capacity(port: int, path: str, seconds: float) -> float:
    """Requests a second that eight get answered who ask in turn, once it is warm."""
    first = await ask(port, path)
    if first.outcome == 422:
        raise ValueError(f"{path} is refused: {first.body!r}")
    begun, done = time.monotonic(), 0

    async def in_turn() -> None:
        nonlocal done
        while time.monotonic() < begun + seconds:
            asked = await ask(port, path)
            done += asked.outcome == 200  # not in one line: `done` would be read before the wait

    await asyncio.gather(*(in_turn() for _ in range(8)))
    return max(1.0, done / (time.monotonic() - begun))


async def _at(port: int, path: str, rate: float, count: int) -> list[Asked]:
    """So many requests, so many a second, whether or not those before are answered."""
    begun = time.monotonic()

    async def later(turn: int) -> Asked:
        await asyncio.sleep(begun + turn / rate - time.monotonic())
        return await ask(port, path)

    return await asyncio.gather(*(later(turn) for turn in range(count)))


async def _overload(
    port: int, path: str, rate: float, count: int
) -> tuple[list[Asked], list[Asked]]:
    probes = max(5, round(4 * count / rate))
    load, health = await asyncio.gather(
        _at(port, path, rate, count), _at(port, "/health", 4, probes)
    )
    return load, health


async def _end(server: Server, path: str, rate: float) -> tuple[list[Asked], float]:
    """Ask for six seconds, and tell the service to end after four."""

    async def signal() -> float:
        await asyncio.sleep(4)
        server.terminate()
        return time.monotonic()

    asked, signalled = await asyncio.gather(_at(server.port, path, rate, round(6 * rate)), signal())
    return asked, signalled


def _of_load(load: list[Asked], rate: float) -> Tally:
    tally = Tally("service: twice the capacity", f"a search, answered within {PATIENCE:.0f} s")
    for asked in load:
        if asked.outcome in (200, 503):
            tally.survive(f"answered {asked.outcome}")
        else:
            tally.fail(str(asked.outcome), f"after {asked.seconds:.1f} s: {asked.body[:200]!r}")
    tally.notes = {"a second": rate, "slowest": max(asked.seconds for asked in load)}
    return tally


def _of_health(health: list[Asked]) -> Tally:
    tally = Tally("service: /health meanwhile", f"/health, answered within {PATIENCE:.0f} s")
    for asked in health:
        if asked.outcome == 200:
            tally.survive("answered 200")
        else:
            tally.fail(str(asked.outcome), f"after {asked.seconds:.1f} s: {asked.body[:200]!r}")
    taken = [asked.seconds for asked in health]
    tally.notes = {"median": statistics.median(taken), "slowest": max(taken)}
    return tally


def _behind(health: list[Asked]) -> float:
    """Seconds that a request may have to wait until it is read."""
    return max(_MOMENT, *(asked.seconds for asked in health))


def _of_end(
    ending: list[Asked],
    signalled: float,
    behind: float,
    code: int | None,
    taken: float,
    errors: str,
) -> Tally:
    tally = Tally("service: SIGTERM under load", "a search, and the end of the service")
    for asked in ending:
        late = asked.sent > signalled - behind
        if asked.outcome in (200, 503):
            tally.survive(f"answered {asked.outcome}")
        elif late and asked.outcome in ("refused", "dropped"):
            tally.survive("too late, and refused")
        else:
            when = f"sent {signalled - asked.sent:.1f} s before the signal"
            tally.fail(str(asked.outcome), f"{when}: {asked.body[:200]!r}")
    if code is None:
        tally.fail("the service lives on", f"{_BOUND:.0f} s after the signal")
    elif code:
        tally.fail("the service ends with another code", str(code))
    else:
        tally.survive("ended with 0")
    if "Traceback" in errors:
        tally.fail("a traceback on stderr", errors[-300:])
    tally.notes = {"seconds to the end": taken}
    return tally
