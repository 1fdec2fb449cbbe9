"""Kills at every file event: what an index is after each, and after the next build."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.children import call, die
from benchmarks.faults.events import at_event, telling
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import (
    SPECTRAL,
    Known,
    Place,
    known_of,
    names_in,
    plant,
    recorded,
    state,
    untouched,
    whole,
)


@dataclass(frozen=True)
class Operation:
    """What is killed.

    before   what has been done to the index
    what     is killed
    may      states that the index may be in afterwards, killed or not
    planted  whether files of the user lie in the index's folder
    """

    name: str
    before: tuple[str, ...]
    what: str
    may: tuple[str, ...]
    planted: bool = False

    @property
    def sure(self) -> bool:
        """Whether it is done where nothing disturbs it, and not refused."""
        return self.what != "broken" and (bool(self.before) or not self.planted)


OPERATIONS = (
    Operation("first build", (), "new", ("none", "new")),
    Operation("build again", ("old",), "new", ("old", "new")),
    Operation("rebuild", ("old",), "rebuild", ("old",)),
    Operation("failing build", ("old",), "broken", ("old",)),
    Operation("rollback", ("old", "new"), "rollback", ("old", "new")),
    Operation("delete", ("old",), "delete", ("old", "none")),
    Operation("build again beside the user's files", ("old",), "new", ("old", "new"), planted=True),
    Operation("delete beside the user's files", ("old",), "delete", ("old", "none"), planted=True),
    Operation("build into the user's folder", (), "new", ("none", "new"), planted=True),
)


def run(
    folder: Path,
    *,
    operations: tuple[Operation, ...] = OPERATIONS,
    functions: tuple[str, ...] = SPECTRAL,
    every: int | None = None,
) -> list[Tally]:
    """Kill each operation just before each of its file events.

    every  so many-th of those that tell most, instead of all
    """
    return [_tally(operation, folder, functions, every) for operation in operations]


def _tally(
    operation: Operation, folder: Path, functions: tuple[str, ...], every: int | None
) -> Tally:
    tally = Tally(f"kills: {operation.name}", "SIGKILL just before a file event")
    for spectral in functions:
        known = call(known_of, folder / "known" / spectral, spectral).given()
        template = Place(folder / "before", spectral)
        call(_prepare, template, operation).given()
        trial = Place(folder / "trial", spectral)
        events, said = call(recorded, _fresh(template, trial), operation.what).given()
        if said.code and operation.sure:
            tally.fail("cannot be done at all", said.words)
        planted = [trial.home, trial.index] if operation.planted else [trial.home]
        usual = call(_after, trial, known, planted).given()
        for number in range(len(events)) if every is None else telling(events)[::every]:
            killed = call(_until, _fresh(template, trial), operation.what, number)
            if killed.signal is None:
                continue  # it met fewer events than before
            ended = call(_after, trial, known, planted)
            where = f"{spectral}, event {number}: {events[number]}"
            wrong: tuple[str, str] | None = ("not to be used afterwards", str(ended))
            if ended.well:
                wrong = _wrong(operation, ended.answer, usual, known)
            if wrong:
                tally.fail(wrong[0], f"{where}: {wrong[1]}")
            else:
                tally.survive("old or new, and the next build works")
        shutil.rmtree(folder / "before")
    return tally


def _prepare(place: Place, operation: Operation) -> None:
    place.home.mkdir(parents=True)
    for step in operation.before:
        place.do(step).expect_done()
    plant(place.home)
    if operation.planted:
        plant(place.index)


def _fresh(template: Place, trial: Place) -> Place:
    if trial.folder.exists():
        shutil.rmtree(trial.folder)
    shutil.copytree(template.folder, trial.folder)
    return trial


def _until(place: Place, what: str, number: int) -> None:
    at_event(place.home, number, lambda _: die())
    place.do(what)


@dataclass(frozen=True)
class After:
    """What comes of an index that an operation was killed on.

    state    of the index before anything else is done
    code     of the next build, what it said, whether in a sentence, and the state it left
    sums     whether every file then has its sum
    left     names of what then lies in the home, and what does after the index is deleted
    """

    state: str
    code: int
    said: str
    in_a_sentence: bool
    next: str
    sums: bool
    left: Counter[str]
    left_at_last: Counter[str]
    untouched: bool


def _after(place: Place, known: Known, planted: list[Path]) -> After:
    found = state(place.index, known)
    kept = all(map(untouched, planted))
    built = place.do("next")
    following = state(place.index, known)
    sums, left = whole(place.index), names_in(place.home)
    place.do("delete")
    return After(
        state=found,
        code=built.code,
        said=built.words,
        in_a_sentence=built.in_a_sentence,
        next=following,
        sums=sums,
        left=left,
        left_at_last=names_in(place.home),
        untouched=kept and all(map(untouched, planted)),
    )


def _wrong(
    operation: Operation, after: After, usual: After, known: Known
) -> tuple[str, str] | None:
    """Tell what is wrong and how, the worst first; `usual` comes of it without a kill."""
    if not after.untouched:
        return "files of the user are gone", after.said
    if after.state not in operation.may:
        return "neither old nor new", after.state
    # Where nothing but the user's files is left, no index may be built any more.
    bare = not operation.before or after.state == "none"
    refused = operation.planted and bare and after.code and after.in_a_sentence
    if not refused and (after.code, after.next, after.sums) != (0, "next", True):
        return "the next build fails", f"{after.next}: {after.said}"
    more = known.more(after.left) + sorted(after.left_at_last - usual.left_at_last)
    if refused and more:  # the last steps of a deletion were to remove its locks, empty files
        more = [name for name in more if not name.endswith(("/LOCK", "/WRITING"))]
    return ("something is left behind", f"{more[:5]}") if more else None
