"""System calls that fail while an index is written to: each write and each sync there is, in turn.

A library that is loaded before the system's has them fail, so the trials are made in a process that
is started with it, and in its children.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.faults import written
from benchmarks.faults.children import Ended, call
from benchmarks.faults.tally import Tally
from benchmarks.faults.written import Documents, Model, Seen
from klsa_search import Index, open_index
from klsa_search.errors import KlsaError
from klsa_search.indexing import refit

_SOURCE = Path(__file__).with_name("failing.c")
_LIBRARY = "KLSA_FAULTS_FAILING"
_KINDS = {"no space": 1, "a failing write": 2, "a short write": 3, "a failing sync": 4}
_LASTING = ("no space",)
_KEPT = "is kept, and not searched yet"
CHANGES = ("first add", "add", "delete", "undo", "refit")


def can_fail() -> bool:
    """Whether calls can be made to fail here: it takes a C compiler, and Linux."""
    return shutil.which("cc") is not None and sys.platform.startswith("linux")


def run(folder: Path, *, every: int = 1, changes: tuple[str, ...] = CHANGES) -> list[Tally]:
    """Let every so many-th call of each kind fail, in each change of an index."""
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "failing.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", library, _SOURCE], check=True, timeout=86_400
    )
    environment = {**os.environ, "LD_PRELOAD": str(library), _LIBRARY: str(library)}
    command = [sys.executable, "-m", __name__, str(folder), str(every), *changes]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, check=True, timeout=86_400
    )
    tallies = []
    for one in json.loads(done.stdout):
        tally = Tally(one["part"], one["trial"], Counter(one["survived"]), Counter(one["failed"]))
        tally.examples = one["examples"]
        tallies.append(tally)
    return tallies


def _main(folder: Path, every: int, changes: list[str]) -> None:
    tallies = []
    for change in changes:
        tally = Tally(f"writes: failing calls, {change}", "a call that fails, and then no more")
        home = folder / "template"
        before, after = _prepared(home, change)
        for kind in _KINDS:
            number = 0
            while _tried(home, folder / "trial", change, kind, number, (before, after), tally):
                number += every
        shutil.rmtree(home)
        tallies.append(tally)
    print(json.dumps([tally.as_json() for tally in tallies]))


def _prepared(home: Path, change: str) -> tuple[Documents, Documents]:
    """Build an index, and write to it; what it holds before the change and behind it."""
    call(written.build_version, home, "old").given()
    chance, model = random.Random(change), Model(written.source("old"))
    ops = [] if change == "first add" else [written.chosen(chance, undoing=False) for _ in range(3)]
    for op in ops:
        model.do(*op)
    call(_write, home / written.NAME, ops).given()
    before = dict(model.documents)
    if change != "refit":
        model.do(*_op(change))
    return before, model.documents


def _op(change: str) -> tuple[str, Any]:
    kind = change.rpartition(" ")[2]
    what = {"add": {"5": "w1 late", "77": "w2 w3 " * 2000}, "delete": ["4", "6"], "undo": None}
    return kind, what[kind]


def _write(path: Path, ops: list[tuple[str, Any]]) -> None:
    with closing(open_index(path)) as index:
        for op in ops:
            written.do(index, *op)


def _tried(
    template: Path,
    trial: Path,
    change: str,
    kind: str,
    number: int,
    states: tuple[Documents, Documents],
    tally: Tally,
) -> bool:
    """Try one; False where there are not so many calls."""
    shutil.copytree(template, trial)
    path, where = trial / written.NAME, f"{kind} {number}"
    ended = call(_changed, path, change, kind, number)
    fault = _fault(ended, states)
    if fault is None and ended.answer[0]:
        said = ended.answer[1]
        done = said is None or _KEPT in said
        found = call(written.look, path)
        fault = _wrong(found, states[done])
        if fault is None:
            call(_write, path, [("add", {"last": "w4 late"})])
            found = call(written.look, path)
            fault = _wrong(found, {**states[done], "last": "w4 late"})
        if fault is None:
            how = "done all the same" if done else "refused, and nothing of it is there"
            tally.survive("refused to search it, and kept" if done and said else how)
    shutil.rmtree(trial)
    if fault is not None:
        tally.fail(fault.split("[")[0].strip()[:60], f"{where}: {fault}")
    return not ended.well or bool(ended.answer[0])


def _fault(ended: Ended, states: tuple[Documents, Documents]) -> str | None:
    if not ended.well:
        return f"ended badly: [{ended}]"
    _, said, seen = ended.answer
    return _wrong(Ended(answer=seen), states[said is None])


def _wrong(found: Ended, documents: Documents) -> str | None:
    if not found.well:
        return f"cannot be opened or verified: [{found}]"
    seen: Seen = found.answer
    return written.wrong(seen, documents)


def _changed(path: Path, change: str, kind: str, number: int) -> tuple[int, str | None, Seen]:
    """Change an index while calls fail: how many failed, what was said, what it then answers."""
    library = ctypes.CDLL(os.environ[_LIBRARY])
    numbers = {
        name: ctypes.c_int.in_dll(library, f"fail_{name}")
        for name in ("kind", "at", "lasting", "met")
    }
    said = None
    with closing(open_index(path)) as index:
        (ctypes.c_char * 512).in_dll(library, "fail_below").value = os.fsencode(path.parent)
        numbers["at"].value, numbers["lasting"].value = number, kind in _LASTING
        numbers["kind"].value = _KINDS[kind]
        try:
            _do(index, change)
        except (KlsaError, OSError) as error:
            said = str(error)
        seen = written.seen(index)
        numbers["kind"].value = 0
    return numbers["met"].value, said, seen


def _do(index: Index, change: str) -> None:
    if change == "refit":
        refit(index.path.parent).close()
        index.refresh()
    else:
        written.do(index, *_op(change))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What is run while calls fail: see the module.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("every", type=int)
    parser.add_argument("changes", nargs="*")
    given = parser.parse_args()
    _main(given.folder, given.every, given.changes)
