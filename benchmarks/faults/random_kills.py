"""Kills at random moments of builds, under a reader that searches in a loop."""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from benchmarks.faults.answers import answers_of
from benchmarks.faults.children import Child, call
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import (
    SPECTRAL,
    VERSIONS,
    Known,
    Place,
    Said,
    known_of,
    names_in,
    state,
    whole,
)
from klsa_search import open_index
from klsa_search.errors import KlsaError

_HELD = 10
"""Times that an index is asked before it is opened anew."""


def run(
    folder: Path, *, builds: int = 150, seed: int = 0, functions: tuple[str, ...] = SPECTRAL
) -> list[Tally]:
    """Begin so many builds of each function, and kill each at a moment of chance."""
    kills = Tally("random kills: builds", "SIGKILL from outside at a random moment of a build")
    reads = Tally("random kills: reader", "an answer of a reader meanwhile")
    for spectral in functions:
        place = Place(folder / spectral, spectral)
        known = call(known_of, folder / "known" / spectral, spectral).given()
        call(place.do, "old").given().expect_done()
        stop = folder / f"stop-{spectral}"
        with Child(_read, place.index, known, stop) as reader:
            _kill(place, known, random.Random(f"{seed} {spectral}"), builds, kills)
            stop.touch()
            ended = reader.end()
        if ended.well:
            for how, times in ended.answer.items():
                (reads.survive(how, times) if how in VERSIONS else reads.fail(how, how))
        else:
            reads.fail("the reader ended", str(ended))
    return [kills, reads]


def _kill(place: Place, known: Known, chance: random.Random, builds: int, tally: Tally) -> None:
    before, taken = "old", [_seconds(place, "old")]
    for number in range(builds):
        version = chance.choice([other for other in VERSIONS if other != before])
        with Child(place.do, version) as build:
            began = time.monotonic()
            time.sleep(0.8 * chance.random() * statistics.median(taken[-9:]))
            build.kill()
            ended = build.end()
        where = f"{place.spectral}, build {number}: {before} to {version}"
        found = call(state, place.index, known)
        if ended.well and ended.answer.code:
            tally.fail("a build failed", f"{where}: {ended.answer.words}")
        elif found.answer not in (before, version):
            tally.fail("neither old nor new", f"{where}: {found}")
        else:
            tally.survive(
                "done before the kill" if ended.well else f"killed, {_which(found.answer, before)}"
            )
            before = found.answer
        if ended.well:
            taken.append(time.monotonic() - began)
    said = call(place.do, "next").given()
    where = f"{place.spectral}, after all"
    if said.code or not call(whole, place.index).given():
        tally.fail("the next build fails", f"{where}: {said.words}")
    elif more := known.more(call(names_in, place.home).given()):
        tally.fail("something is left behind", f"{where}: {more[:5]}")


def _which(found: str, before: str) -> str:
    return "the old one" if found == before else "the new one"


def _seconds(place: Place, version: str) -> float:
    began = time.monotonic()
    said: Said = call(place.do, version).given()
    said.expect_done()
    return time.monotonic() - began


def _read(path: Path, known: Known, stop: Path) -> Counter[str]:
    """Count whose answers were given, each opened index asked again and again."""
    found: Counter[str] = Counter()
    while not stop.exists():
        try:
            with closing(open_index(path)) as index:
                expected = None
                for _ in range(_HELD):
                    given = answers_of(index)
                    version = next(
                        (v for v, their in known.answers.items() if their == given), "wrong"
                    )
                    expected = expected or version
                    found[version if version == expected else "another than it was"] += 1
        except KlsaError as error:
            found[f"refused: {error.message}"] += 1
    return found
