"""Damage of every file of an index that was written to, its log above all."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.faults import written
from benchmarks.faults.children import Child, call, die, without_privileges
from benchmarks.faults.damage import count, damages, do_damage, files_of
from benchmarks.faults.tally import Tally
from benchmarks.faults.written import Documents, Model
from klsa_search import open_index
from klsa_search.errors import KlsaError
from klsa_search.storage.maintenance import verify
from klsa_search.storage.names import LOG_FILES, WRITE_LOG

_WRITES = 8
_EARLIER = "as before the last writes, which were in it alone"


def run(folder: Path, *, times: int = 3, seed: int = 0, every: int = 1) -> list[Tally]:
    """Do each damage to each file, those of chance so many times; ask the index, and verify it.

    every  takes every so many-th of all these only, but all of the log's
    """
    return [_tally(folder / how, how, times, seed, every) for how in ("closed", "killed")]


def _tally(folder: Path, how: str, times: int, seed: int, every: int) -> Tally:
    tally = Tally(f"writes: damage, writer {how}", "an index opened, asked and verified")
    models = _written(folder / "this", "this", how == "killed")
    _written(folder / "other", "other", how == "killed")
    template, other = (folder / which / written.NAME for which in ("this", "other"))
    all_ = (
        (file, *each)
        for file in files_of(template)
        for each in _all(template, other, file, times, seed)
    )
    ours: list[tuple[Path, str, bytes | None]] = []
    rest: list[tuple[Path, str, bytes | None]] = []
    for each in all_:
        (ours if LOG_FILES.fullmatch(each[0].name) else rest).append(each)
    for file, what, content in itertools.chain(ours, rest[::every]):
        trial = folder / "trial" / written.NAME
        shutil.copytree(template, trial)
        may = (
            models
            if file.name.startswith(f"{WRITE_LOG}-") and "begun" not in file.name
            else models[-1:]
        )
        count(tally, call(_asked, trial, file, what, content, may), file, what)
        shutil.rmtree(trial.parent)
    return tally


def _all(
    template: Path, other: Path, file: Path, times: int, seed: int
) -> Iterator[tuple[str, bytes | None]]:
    yield from damages(template, file, times, seed)
    if (other / file).exists() and (other / file).read_bytes() != (template / file).read_bytes():
        yield "swapped with another index's", (other / file).read_bytes()


def _written(home: Path, version: str, killed: bool) -> list[Documents]:
    """Build an index and write to it; what it holds after each write."""
    generation = call(written.build_version, home, version).given()
    chance, model = random.Random(version), Model(written.source(version))
    ops = [written.chosen(chance, undoing=number > 3) for number in range(_WRITES)]
    found = [dict(model.documents)]
    for kind, what in ops:
        model.do(kind, what)
        found.append(dict(model.documents))
    with Child(_write, home / written.NAME, ops, killed) as writer:
        ended = writer.end()
    assert ended.signal == 9 if killed else ended.well, str(ended)
    assert (home / written.NAME / generation / f"{WRITE_LOG}-wal").exists() == killed
    return found


def _write(path: Path, ops: list[tuple[str, object]], killed: bool) -> None:
    with closing(open_index(path)) as index, written.alone_writing(index) as writer:
        for kind, what in ops:
            if kind == "undo":
                writer.undo()
            else:
                written.append(writer, kind, what)
        if killed:
            die()


def _asked(
    index: Path, file: Path, what: str, content: bytes | None, may: list[Documents]
) -> tuple[str, str]:
    """Open the index, damage the file, ask again, verify: how that ended, and what was said."""
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with closing(open_index(index)):
        pass
    do_damage(index / file, what, content)
    try:
        with without_privileges():
            with closing(open_index(index)) as opened:
                given = written.seen(opened)
            fault = written.wrong(given, may[-1])
            earlier = fault and any(written.wrong(given, each) is None for each in may)
            verify(index)
    except KlsaError as error:
        return "refused", error.message
    if earlier:
        return _EARLIER, ""
    return ("wrong in silence", fault) if fault else ("as undamaged", "")
