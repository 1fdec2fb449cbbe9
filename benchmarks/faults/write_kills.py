"""Kills at random moments: of a writer, and of a builder and a refitter beside one."""

from __future__ import annotations

import random
import shutil
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults import written
from benchmarks.faults.children import Child, call
from benchmarks.faults.tally import Tally
from benchmarks.faults.written import Model, Seen
from klsa_search.indexing import refit

_ANEW = 15
"""Trials on one index, whose log grows, before another is taken."""
_WRITING = 0.4
"""Seconds that a writer is given at most."""


@dataclass
class _World:
    home: Path
    journal: Path
    model: Model
    generation: str
    taken: list[float] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.home / written.NAME


def run(
    folder: Path, *, writers: int = 200, refitters: int = 150, builders: int = 150
) -> list[Tally]:
    """Kill each so many times, at moments of chance."""
    trials = (
        ("writer", writers, _writer),
        ("refitter", refitters, _refitter),
        ("builder", builders, _builder),
    )
    template = folder / "template"
    generation = call(written.build_version, template, "old").given()
    tallies = []
    for name, times, trial in (each for each in trials if each[1]):
        chance = random.Random(name)
        tally = Tally(f"writes: {name} killed", "SIGKILL at a random moment")
        taken = [0.5]
        for number in range(times):
            if number % _ANEW == 0:
                home = folder / name
                shutil.rmtree(home, ignore_errors=True)
                shutil.copytree(template, home)
                journal = home / "journal"
                world = _World(home, journal, Model(written.source("old")), generation, taken)
            failed = tally.failed.total()
            trial(world, chance, f"{name} {number}", tally)
            if tally.failed.total() > failed:
                break
        tallies.append(tally)
    return tallies


def _writer(world: _World, chance: random.Random, where: str, tally: Tally) -> None:
    world.journal.unlink(missing_ok=True)
    stop = world.home / "never"
    with Child(written.write, world.path, world.journal, where, stop, True) as writer:
        _until(lambda: world.journal.exists())
        time.sleep(_WRITING * chance.random())
        writer.kill()
        ended = writer.end()
    if ended.signal is None:
        tally.fail("a writer failed", f"{where}: {ended}")
        return
    _judge(world, where, tally)


def _refit(path: Path) -> None:
    with closing(refit(path)):
        pass


def _refitter(world: _World, chance: random.Random, where: str, tally: Tally) -> None:
    _beside(world, chance, where, tally, _refit, world.path)


def _builder(world: _World, chance: random.Random, where: str, tally: Tally) -> None:
    _beside(world, chance, where, tally, written.build_version, world.home, where)


def _beside(
    world: _World,
    chance: random.Random,
    where: str,
    tally: Tally,
    work: Callable[..., object],
    *arguments: object,
) -> None:
    """Kill who works beside a writer, and every other time the writer too."""
    world.journal.unlink(missing_ok=True)
    stop = world.home / "stop"
    stop.unlink(missing_ok=True)
    both = chance.random() < 0.5
    with Child(written.write, world.path, world.journal, where, stop, False) as writer:
        _until(lambda: world.journal.exists())
        with Child(work, *arguments) as worker:
            began = time.monotonic()
            time.sleep(1.2 * chance.random() * statistics.median(world.taken[-9:]))
            worker.kill()
            if both:
                writer.kill()
            done = worker.end()
            if done.well:
                world.taken.append(time.monotonic() - began)
        stop.touch()
        ended = writer.end()
    if done.failure is not None:
        tally.fail("who is beside failed", f"{where}: {done}")
    elif not (ended.well or (both and ended.signal is not None)):
        tally.fail("a writer failed", f"{where}: {ended}")
    else:
        _judge(world, where, tally, version=where)


def _judge(world: _World, where: str, tally: Tally, version: str | None = None) -> None:
    """Compare an index with what the journal says; `version` is what may have been built."""
    found = call(written.look, world.path)
    if not found.well:
        tally.fail("cannot be opened or verified", f"{where}: {found}")
        return
    given: Seen = found.answer
    built = given.generation != world.generation and version and not version.startswith("refitter")
    sure = Model(written.source(version or "")) if built else world.model.copy()
    also = None
    for kind, what, generation in written.told(world.journal):
        if generation == "":
            also = sure.copy()
            if kind != "undo" or also.before:
                also.do(kind, what)
        elif not built or generation == given.generation:
            sure.do(kind, what)
    risen = also is not None and (
        given.batches == len(also.before) if version is None else _same(also, given)
    )
    world.model = also if also is not None and risen else sure
    fault = written.wrong(given, world.model.documents)
    if fault:
        tally.fail(fault.split("[")[0].strip(), f"{where}: {fault}")
    elif version is None:
        in_hand = "nothing in hand" if also is None else "the one in hand" if risen else "no more"
        tally.survive(f"all that was acknowledged, {in_hand}")
    else:
        which = "old index" if given.generation == world.generation else "new index"
        tally.survive(f"{which}, all that was acknowledged")
    world.generation = given.generation
    writes = sum(1 for _ in written.told(world.journal))
    tally.notes["writes"] = tally.notes.get("writes", 0) + writes


def _same(model: Model, given: Seen) -> bool:
    return list(model.documents.items()) == list(given.documents.items())


def _until(so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not so() and time.monotonic() < end:
        time.sleep(0.002)
