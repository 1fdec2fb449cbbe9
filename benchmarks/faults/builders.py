"""Two at once on one index: while one waits just before a file event, the other runs to its end."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.faults.children import Child, Ended, Gate, call
from benchmarks.faults.events import at_event, telling
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import Known, Place, known_of, names_in, recorded, state, whole

ONE = ("new", "rollback", "delete")
OTHER = ("next", "rollback", "delete")


def run(
    folder: Path, *, spectral: str = "gvsm", one: tuple[str, ...] = ONE, every: int = 1
) -> list[Tally]:
    """Set each of `one` beside each of OTHER, at every so many-th of the events that tell most."""
    known = call(known_of, folder / "known", spectral).given()
    template = Place(folder / "before", spectral)
    for version in ("first", "old"):
        call(template.do, version).given().expect_done()
    tallies = []
    for waiting in one:
        tally = Tally(f"two at once: {_named(waiting)}", "another runs while it waits")
        trial = Place(folder / "trial", spectral)
        events, said = call(recorded, _fresh(template, trial), waiting).given()
        if said.code:
            tally.fail("cannot be done at all", said.words)
            events = []
        for number, running in itertools.product(telling(events)[::every], OTHER):
            _fresh(template, trial)
            where = f"{_named(waiting)} before {events[number]}, {_named(running)}"
            _judge(trial, waiting, running, number, known, where, tally)
        tallies.append(tally)
    return tallies


def _named(what: str) -> str:
    return what if what in ("rollback", "delete") else "build"


def _fresh(template: Place, trial: Place) -> Place:
    if trial.folder.exists():
        shutil.rmtree(trial.folder)
    shutil.copytree(template.folder, trial.folder)
    return trial


def _waiting(gate: Gate, place: Place, what: str, number: int) -> object:
    at_event(place.home, number, gate.stop)
    return place.do(what)


def _judge(
    place: Place,
    waiting: str,
    running: str,
    number: int,
    known: Known,
    where: str,
    tally: Tally,
) -> None:
    with Child(_waiting, place, waiting, number, gated=True) as one:
        if one.waits() is None:
            return  # it met fewer events than before
        between = call(state, place.index, known)
        other = call(place.do, running)
        one.go_on()
        ended = one.end()
    found = call(state, place.index, known)
    wrong = _wrong(ended, other, between, found, waiting, running)
    if wrong is None:
        wrong = call(_and_then, place, known).given()
    if wrong is not None:
        tally.fail(wrong[0], f"{where}: {wrong[1]}")
        return
    if other.answer.code:
        tally.survive("it wins, and the other says so")
    else:
        tally.survive("the other wins, and it says so" if ended.answer.code else "both, in turn")


def _wrong(
    one: Ended, other: Ended, between: Ended, found: Ended, waiting: str, running: str
) -> tuple[str, str] | None:
    for ended in (one, other, between, found):
        if not ended.well:
            return "ended badly", str(ended)
    for said in (one.answer, other.answer):
        if not said.in_a_sentence:
            return "not said in a sentence", said.words
    done = [what for what, ended in ((waiting, one), (running, other)) if not ended.answer.code]
    if not done:
        return "nobody wins", f"{one.answer.words}; {other.answer.words}"
    if between.answer not in ("first", "old", "new", "none"):
        return "unusable meanwhile", between.answer
    may = set(_outcomes(done))
    return None if found.answer in may else ("neither of both", f"{found} of {sorted(may)}")


def _outcomes(done: list[str]) -> Iterator[str]:
    """States that those who say they are done leave, one after the other in some order."""
    for order in itertools.permutations(done):
        now, former = "old", "first"
        for what in order:
            if what == "delete":
                now, former = "none", "none"
            elif what == "rollback":
                now, former = former, "none"
            else:
                now, former = what, now
        yield now


def _and_then(place: Place, known: Known) -> tuple[str, str] | None:
    """Build twice more: it works, and leaves what builds leave."""
    for version in ("new", "next"):
        said = place.do(version)
        if said.code or state(place.index, known) != version or not whole(place.index):
            return "the next build fails", said.words
    more = known.more(names_in(place.home))
    return ("something is left behind", f"{more[:5]}") if more else None
