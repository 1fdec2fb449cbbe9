"""Kills of processes that build, write, refit, split and roll back an index in partitions.

After each kill the index opens as it was or as it becomes, every acknowledged write is there, files
are intact, and BM25 scores are those of one partition with the same documents. All documents have
the same length, so that the mean length does not depend on the history of an index.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.faults.children import Child, Ended, call
from benchmarks.faults.tally import Tally
from klsa_search import Index, build, open_index
from klsa_search.collection.model import Document
from klsa_search.errors import IndexBusy, IndexNotFound, PartitionsUnsupported
from klsa_search.indexing import refit
from klsa_search.storage.maintenance import rollback, verify

NAME = "index"
COUNT = 40
PARTITIONS = 2
_QUERIES = ("w0 w1", "v3 w4", "shared v1", "w6")
_FRESH = 12
"""Trials on one index before another is taken."""
_WRITING = 0.8
"""Seconds that a writer works at most before it is killed."""
_KNOWN = {"KLSA-INDEX", "LOCK", "WRITING", "CURRENT", "CATALOG-ID"}


def text(number: int, version: int) -> str:
    """Return a text of four words."""
    return f"w{number % 5} w{number % 7} v{version % 9} shared"


def build_index(home: Path, partitions: int = PARTITIONS) -> None:
    """Build the index of a trial."""
    documents = [{"id": f"d{number}", "text": text(number, 0)} for number in range(COUNT)]
    options: dict[str, Any] = {"partitions": partitions, "workers": 1, "replace": True}
    with closing(build(documents, name=NAME, home=home, **options)):
        pass


def refit_index(path: Path, _: int) -> None:
    """Build the index again from its documents, in this process."""
    with open_index(path) as index:
        refit(index, workers=1).close()


def split_index(path: Path, partitions: int) -> None:
    """Divide the index into another number of partitions."""
    with open_index(path) as index:
        now = len(index.partitions)
    other = partitions if partitions != now else now % 3 + 1
    refit(path, partitions=other, workers=1).close()


def change_index(path: Path, seed: int) -> None:
    """Change query settings again and again."""
    with open_index(path) as index:
        for number in range(400):
            index.update_settings(alpha=(number + seed) % 100 / 100)


def write(path: Path, journal: Path, seed: str) -> None:
    """Write until killed, and note each batch before it begins and when it is acknowledged."""
    chance = random.Random(seed)
    index = open_index(path)
    with journal.open("a", encoding="utf-8") as notes:
        for number in range(100_000):
            ids = chance.sample(range(COUNT + 20), chance.randint(1, 8))
            puts = {f"d{each}": text(each, number) for each in ids[1:]}
            notes.write(json.dumps([puts, f"d{ids[0]}"]) + "\n")
            notes.flush()
            index = _written(index, path, puts, f"d{ids[0]}")
            notes.write("done\n")
            notes.flush()


def _written(index: Index, path: Path, puts: dict[str, str], deleted: str) -> Index:
    """Write one batch; open the index again if it was divided meanwhile."""
    documents = [Document(id=id_, text=text_) for id_, text_ in puts.items()]
    while True:
        try:
            index.write(documents, [deleted])
        except (IndexNotFound, PartitionsUnsupported):
            index.close()
            index = open_index(path)
        except IndexBusy:
            continue
        else:
            return index


class Seen(NamedTuple):
    """What an index has after a kill.

    partitions  their number
    seconds     that opening it and the first search take
    fault       difference to one partition with the same documents, if any
    """

    partitions: int
    generation: str
    documents: dict[str, str]
    seconds: float
    fault: str | None


def look(path: Path) -> Seen:
    """Open and verify an index, and compare its scores."""
    began = time.monotonic()
    with open_index(path) as index:
        index.search("shared")
        seconds = time.monotonic() - began
        documents = {each.id: each.text for each in index.live_documents()}
        verify(path)
        fault = None
        with tempfile.TemporaryDirectory(prefix="klsa-one-") as home:
            made = [{"id": id_, "text": each} for id_, each in documents.items()]
            with closing(build(made, name="one", home=home)) as one:
                for query in _QUERIES:
                    if _scores(index, query) != _scores(one, query):
                        fault = f"other scores of {query!r}"
        count = len(index.partitions)
        return Seen(count, index.generation, documents, seconds, fault)


def _scores(index: Index, query: str) -> list[tuple[float, str]]:
    hits = index.search(query, 200, ranker="bm25", spelling="off").hits
    return sorted((-hit.score, hit.id) for hit in hits)


def left(path: Path) -> list[str]:
    """Return what is in the folder of an index and belongs to no build in use or kept for one."""
    names = {entry.name for entry in path.iterdir()} - _KNOWN
    builds = {name.split("-")[0] for name in names if name[0].isdigit()}
    others = sorted(name for name in names if not name[0].isdigit())
    return others + (sorted(builds) if len(builds) > 2 else [])


@dataclass
class _World:
    """An index, and the documents that it must have, or may have."""

    home: Path
    documents: dict[str, set[str | None]] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.home / NAME

    @property
    def journal(self) -> Path:
        return self.home / "journal"

    def note(self) -> int:
        """Read the journal: texts of each ID after acknowledged writes, and the last one."""
        writes = 0
        for puts, deleted, is_done in _journal(self.journal):
            changes: dict[str, str | None] = {deleted: None, **puts}
            for id_, new in changes.items():
                before = self.documents.get(id_, {None})
                self.documents[id_] = {new} if is_done else before | {new}
            writes += is_done
        self.journal.unlink(missing_ok=True)
        return writes

    def fault(self, seen: Seen) -> str | None:
        """Return how an index differs, and remember which of the possible texts it has."""
        for id_ in {*self.documents, *seen.documents}:
            now, allowed = seen.documents.get(id_), self.documents.get(id_, {None})
            if now not in allowed:
                return f"document {id_} is {now!r}, not one of {allowed!r}"
            self.documents[id_] = {now}
        return seen.fault


def _journal(path: Path) -> Iterator[tuple[dict[str, str], str, bool]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for number, line in enumerate(lines):
        if line.startswith("["):
            try:
                puts, deleted = json.loads(line)
            except ValueError:  # killed while it was written, so nothing had begun
                continue
            yield puts, deleted, lines[number + 1 : number + 2] == ["done"]


_WORK: dict[str, Callable[[Path, int], None]] = {
    "refit": refit_index,
    "split": split_index,
    "settings": change_index,
}


def run(
    folder: Path, *, builds: int = 50, writes: int = 60, refits: int = 50, splits: int = 60,
    settings: int = 20,
) -> list[Tally]:  # fmt: skip
    """Kill each so many times, at random moments; a writer is killed in each trial."""
    times = {"write": writes, "refit": refits, "split": splits, "settings": settings}
    tallies = [_builds(folder / "builds", builds)] if builds else []
    template = folder / "template"
    call(build_index, template).given()
    for name, count in times.items():
        if count:
            tallies.append(_trials(folder / name, template, name, count))
    return tallies


def _builds(folder: Path, times: int) -> Tally:
    """Kill first builds, then complete them."""
    tally = Tally("partitions: build killed", "SIGKILL at a random moment of a build")
    chance, opened = random.Random("build"), []
    taken = [_seconds(build_index, folder / "first")]
    for number in range(times):
        home = folder / f"{number}"
        with Child(build_index, home) as builder:
            began = time.monotonic()
            time.sleep(1.1 * chance.random() * statistics.median(taken[-9:]))
            builder.kill()
            ended = builder.end()
        if ended.well:
            taken.append(time.monotonic() - began)
        expected = {f"d{each}": text(each, 0) for each in range(COUNT)}
        found = call(look, home / NAME)
        if found.well:
            seen: Seen = found.answer
            opened.append(seen.seconds)
            if seen.documents != expected or seen.fault:
                tally.fail("wrong after the kill", f"build {number}: {seen.fault}")
                continue
        elif found.failure is None or found.failure[0] != "IndexNotFound":
            tally.fail("cannot be opened", f"build {number}: {found}")
            continue
        again = call(build_index, home)
        if not again.well or (more := left(home / NAME)):
            what = again if not again.well else more
            tally.fail("the next build", f"build {number}: {what}")
            continue
        tally.survive("complete" if found.well else "none, and built again")
        shutil.rmtree(home)
    _note(tally, opened)
    return tally


def _trials(folder: Path, template: Path, name: str, times: int) -> Tally:
    """Kill a writer, and every time one that works on the same index."""
    tally = Tally(f"partitions: {name} killed", "SIGKILL at a random moment, with a writer")
    chance, opened = random.Random(name), []
    taken = [0.0]
    if name in _WORK:
        shutil.copytree(template, folder / "first")
        taken = [_seconds(_WORK[name], folder / "first" / NAME, 1)]
    world: _World | None = None
    for number in range(times):
        if world is None or number % _FRESH == 0:
            _end(world, tally, f"{name} {number}")
            home = folder / f"{number}"
            shutil.copytree(template, home)
            world = _World(home, {f"d{each}": {text(each, 0)} for each in range(COUNT)})
        where = f"{name} {number}"
        with Child(write, world.path, world.journal, where) as writer:
            ended = _work(world, name, number, chance, taken)
            if ended is None:
                time.sleep(_WRITING * chance.random())
            writer.kill()
            writing = writer.end()
        failure = writing.failure or (ended.failure if ended else None)
        if failure is not None and not failure[0].startswith("IndexBusy"):
            tally.fail("a process failed", f"{where}: {failure}")
            continue
        writes = world.note()
        found = call(look, world.path)
        if not found.well:
            tally.fail("cannot be opened or verified", f"{where}: {found}")
            world = None
            continue
        seen: Seen = found.answer
        opened.append(seen.seconds)
        fault = world.fault(seen)
        if fault:
            tally.fail(fault.split(" is ")[0][:20], f"{where}: {fault}")
            world = None
            continue
        tally.notes["writes"] = tally.notes.get("writes", 0) + writes
        done = "done" if ended is not None and ended.well else "killed"
        tally.survive(f"{done}: {seen.partitions} partitions")
        if name == "split" and chance.random() < 0.3:
            _roll_back(world, seen, tally, where)
    _end(world, tally, name)
    _note(tally, opened)
    return tally


def _seconds(function: Callable[..., None], *arguments: object) -> float:
    began = time.monotonic()
    call(function, *arguments).given()
    return time.monotonic() - began


def _work(
    world: _World, name: str, number: int, chance: random.Random, taken: list[float]
) -> Ended | None:
    """Kill a process that changes the index, once the writer writes; None for the writer alone."""
    end = time.monotonic() + 60
    while not world.journal.exists() and time.monotonic() < end:
        time.sleep(0.002)
    if name not in _WORK:
        return None
    with Child(_WORK[name], world.path, 1 + number % 3) as worker:
        began = time.monotonic()
        time.sleep(1.2 * chance.random() * statistics.median(taken[-9:]))
        worker.kill()
        ended = worker.end()
    if ended.well:
        taken.append(time.monotonic() - began)
    return ended


def _roll_back(world: _World, seen: Seen, tally: Tally, where: str) -> None:
    """Return to the build before and back, of which the second is killed, then repeated."""
    if not call(rollback, world.path).well:
        return  # there is none
    with Child(rollback, world.path, seen.generation) as child:
        time.sleep(0.004)
        child.kill()
        child.end()
    call(rollback, world.path, seen.generation)
    found = call(look, world.path)
    if not found.well or found.answer.documents != seen.documents:
        tally.fail("a rollback", f"{where}: {found}")


def _end(world: _World | None, tally: Tally, where: str) -> None:
    """Build an index again, which removes all that interrupted processes left."""
    if world is None:
        return
    for _ in range(2):  # the first keeps the build before
        call(refit_index, world.path, 0).given()
    found = call(look, world.path)
    if not found.well or (fault := world.fault(found.answer)):
        tally.fail("wrong after a refit", f"{where}: {found if not found.well else fault}")
    elif more := left(world.path):
        tally.fail("something is left behind", f"{where}: {more}")
    shutil.rmtree(world.home)


def _note(tally: Tally, opened: list[float]) -> None:
    if opened:
        tally.notes["median ms to open"] = round(1000 * statistics.median(opened), 1)
        tally.notes["longest ms to open"] = round(1000 * max(opened), 1)
