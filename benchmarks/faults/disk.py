"""A full disk, and folders that let nothing in: every change of an index, with ever more room."""

from __future__ import annotations

import os
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks.faults.children import Ended, call, own_disk, resize, without_privileges
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import Known, Place, Said, known_of, names_in, state, whole

_PAGE = 4096
_AMPLE = 2**26
_MANY = 10_000
_ENOUGH = 300
"""Pages or files that any change does with."""


@dataclass(frozen=True)
class Change:
    """What is done without room: after what, and the state before it and after it."""

    name: str
    before: tuple[str, ...]
    what: str
    old: str
    new: str


CHANGES = (
    Change("first build", (), "new", "none", "new"),
    Change("build again", ("first", "old"), "new", "old", "new"),
    Change("rollback", ("first", "old"), "rollback", "old", "first"),
    Change("delete", ("first", "old"), "delete", "old", "none"),
)
_ROOM = ("No space left", "File too large", "make room")
_RIGHTS = ("Permission denied", "mode")


@dataclass(frozen=True)
class Met:
    """What a change met: its words, the state it left, and what a build in ample room then did."""

    said: Said
    state: str
    after: Said
    next: str
    sums: bool
    more: list[str]


def run(
    folder: Path,
    *,
    changes: tuple[Change, ...] = CHANGES,
    spectral: str = "gvsm",
    step: int = 1,
) -> list[Tally]:
    """Allow 0, `step`, 2 · `step`, ... pages more than are taken, then so many files more.

    Where no disk of one's own can be mounted, files may be so many pages long instead.
    """
    known = call(known_of, folder / "known", spectral).given()
    disk = folder / "disk"
    disk.mkdir()
    mountable = call(own_disk, disk, _AMPLE, _MANY).well
    tallies = []
    for change in changes:
        template = Place(folder / change.name, spectral)
        call(_prepare, template, change).given()
        full = Tally(f"full disk: {change.name}", "so many pages or files left on a disk of memory")
        if _refused(template, change, folder, full):
            tallies.append(full)
            continue
        for kind in ("pages", "inodes") if mountable else ("length",):
            for more in range(0, _ENOUGH, step):
                met = call(_full, template, disk, change, kind, more, known)
                _count(full, change, met, f"{more} {kind}", _ROOM)
                if met.well and not met.answer.said.code:
                    break
        closed = Tally(f"no permission: {change.name}", "a file or folder that may not be used")
        for name in ("", *_names(template)):
            trial = Place(folder / "trial", spectral)
            shutil.copytree(template.folder, trial.folder)
            met = call(_closed, trial, change, name, known)
            _count(closed, change, met, name or "the home", _RIGHTS)
            shutil.rmtree(trial.folder)
        tallies += [full, closed]
    return tallies


def _prepare(place: Place, change: Change) -> None:
    for step in change.before:
        place.do(step).expect_done()
    place.write("new")


def _refused(template: Place, change: Change, folder: Path, tally: Tally) -> bool:
    """Whether it cannot be done with ample room either."""
    trial = Place(folder / "trial", template.spectral)
    shutil.copytree(template.folder, trial.folder)
    said = call(trial.do, change.what).given()
    shutil.rmtree(trial.folder)
    if said.code:
        tally.fail("cannot be done at all", said.words)
    return bool(said.code)


def _names(place: Place) -> list[str]:
    """What lies in the home and is of interest: one array stands for all."""
    names = sorted(path.relative_to(place.home).as_posix() for path in place.home.rglob("*"))
    return [name for name in names if not name.endswith(".npy") or name.endswith("lengths.npy")]


def _full(template: Place, disk: Path, change: Change, kind: str, more: int, known: Known) -> Met:
    place = Place(disk / "trial", template.spectral)
    if kind != "length":
        own_disk(disk, _AMPLE, _MANY)
    shutil.copytree(template.folder, place.folder)
    if kind == "length":
        _limit(more * _PAGE)
        said = place.do(change.what)
        _limit(resource.RLIM_INFINITY)
        met = _met(place, said, known)
        shutil.rmtree(place.folder)
        return met
    taken = os.statvfs(disk)
    pages, inodes = taken.f_blocks - taken.f_bfree, taken.f_files - taken.f_ffree
    resize(
        disk,
        (pages + more) * _PAGE if kind == "pages" else _AMPLE,
        inodes + more if kind == "inodes" else _MANY,
    )
    said = place.do(change.what)
    resize(disk, _AMPLE, _MANY)
    return _met(place, said, known)


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _closed(place: Place, change: Change, name: str, known: Known) -> Met:
    path = place.home / name
    mode = path.stat().st_mode
    path.chmod(0o555 if path.is_dir() else 0)
    with without_privileges():
        said = place.do(change.what)
    if path.exists():
        path.chmod(mode)
    return _met(place, said, known)


def _met(place: Place, said: Said, known: Known) -> Met:
    found = state(place.index, known)
    after = place.do("next")
    return Met(
        said=said,
        state=found,
        after=after,
        next=state(place.index, known),
        sums=whole(place.index),
        more=known.more(names_in(place.home)),
    )


def _count(tally: Tally, change: Change, ended: Ended, where: str, words: tuple[str, ...]) -> None:
    if not ended.well:
        tally.fail("ended badly", f"{where}: {ended}")
        return
    met: Met = ended.answer
    done = not met.said.code
    if not met.said.in_a_sentence:
        tally.fail("not said in a sentence", f"{where}: {met.said.words}")
    elif met.state not in _may(change, done, where):
        tally.fail("neither old nor new", f"{where}: {met.state}: {met.said.words}")
    elif not done and not any(word in met.said.words for word in words):
        tally.fail("the reason is not said", f"{where}: {met.said.words}")
    elif (met.after.code, met.next, met.sums) != (0, "next", True):
        tally.fail("the next build fails", f"{where}: {met.next}: {met.after.words}")
    elif met.more:
        tally.fail("something is left behind", f"{where}: {met.more[:5]}")
    else:
        tally.survive("done anyway" if done else f"refused with a message, {_kept(met, change)}")


def _may(change: Change, done: bool, where: str) -> tuple[str, ...]:
    """States that may be found. Whoever cannot read CURRENT goes back to the newest there is."""
    unknown = change.what == "rollback" and where.endswith("CURRENT")
    return (change.new,) if done and not unknown else (change.old, change.new)


def _kept(met: Met, change: Change) -> str:
    return f"{'old' if met.state == change.old else 'new'} index complete"
