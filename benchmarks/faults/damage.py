"""Damage of every file of an index, by class: what whoever opens and searches it then meets."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.faults.children import Ended, call
from benchmarks.faults.damaging import CHANCE, CLASSES
from benchmarks.faults.privileges import without_privileges
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import NAME, SPECTRAL, Answers, Place, answers
from klsa_search import open_index
from klsa_search.errors import KlsaError
from klsa_search.storage.names import LOCKS, WRITES

_COUNT = 400
"""Documents: enough for files of several pages, and for lists that the engine skips in."""

_FOLDER, _GONE, _FORBIDDEN = "a folder in its place", "not there", "no permission"


def run(
    folder: Path,
    *,
    times: int = 3,
    seed: int = 0,
    functions: tuple[str, ...] = SPECTRAL,
    every: int = 1,
) -> list[Tally]:
    """Do each damage to each file, those of chance so many times, and ask the index everything.

    every  takes every so many-th of all these only
    """
    return [_tally(folder, spectral, times, seed, every) for spectral in functions]


def _tally(folder: Path, spectral: str, times: int, seed: int, every: int) -> Tally:
    tally = Tally(f"damage: D {spectral}", "an index opened and asked, one file damaged since")
    template = Place(folder / spectral, spectral, _COUNT).index
    call(Place(folder / spectral, spectral, _COUNT).do, "old").given().expect_done()
    expected = call(_all, template).given()
    done = (
        (file, *each)
        for file in files_of(template)
        for each in damages(template, file, times, seed)
    )
    for file, what, content in itertools.islice(done, 0, None, every):
        trial = folder / "trial" / NAME
        shutil.copytree(template, trial, copy_function=os.link)
        (trial / file).unlink()  # the file of the template is the same one
        shutil.copy2(template / file, trial / file)
        count(tally, call(_asked, trial, file, what, content, expected), file, what)
        shutil.rmtree(trial.parent)
    return tally


def _all(path: Path) -> Answers:
    return answers(path, thoroughly=True)


def files_of(index: Path) -> list[Path]:
    """Files of an index, but for its locks."""
    found = [path.relative_to(index) for path in sorted(index.rglob("*")) if path.is_file()]
    return [path for path in found if path.name not in LOCKS]


def damages(index: Path, file: Path, times: int, seed: int) -> Iterator[tuple[str, bytes | None]]:
    """Name each damage, with the content that it leaves."""
    content = (index / file).read_bytes()
    for name, damage in CLASSES.items():
        for turn in range(times if name in CHANCE else 1):
            damaged = damage(content, random.Random(f"{seed} {file.name} {name} {turn}"))
            if damaged is not None and damaged != content:
                yield name, damaged
    for other in files_of(index):
        there = (index / other).read_bytes()
        if len(there) == len(content) and there != content:
            yield f"swapped with {other.name}", there
    yield from ((what, None) for what in (_FOLDER, _GONE, _FORBIDDEN))


def _asked(
    index: Path, file: Path, what: str, content: bytes | None, expected: Answers
) -> tuple[str, str]:
    """Open the index, damage the file, open it again and ask: how that ended, and what was said."""
    warnings.simplefilter("ignore")  # NumPy's, of numbers that are none
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # and what the system says of a crash
    with closing(open_index(index)):
        pass
    do_damage(index / file, what, content)
    try:
        with without_privileges():
            given = _all(index)
    except KlsaError as error:
        return "refused", error.message
    differing = [asked for asked in expected if given[asked] != expected[asked]]
    return ("wrong in silence", ", ".join(differing)) if differing else ("as undamaged", "")


def do_damage(path: Path, what: str, content: bytes | None) -> None:
    """Leave that content in a file, or what else is said of it."""
    if content is not None:
        times = path.stat()
        path.write_bytes(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # nobody meant to change it
    elif what == _FORBIDDEN:
        path.chmod(0)
    else:
        path.unlink()
        if what == _FOLDER:
            path.mkdir()


def count(tally: Tally, ended: Ended, file: Path, what: str) -> None:
    """Count how that ended: with an answer, and what was said."""
    where = f"{file.name}, {what}"
    if ended.hung:
        tally.fail("hung", where)
    elif ended.signal is not None:
        tally.fail("crashed", f"{where}: signal {ended.signal}")
    elif ended.failure is not None:
        tally.fail("another exception", f"{where}: {ended}")
    else:
        how, said = ended.answer
        if how == "wrong in silence":
            tally.fail(how, f"{where}: {said[:200]}")
            return
        # CURRENT holds the sum of the manifest: either can be the wrong one.
        names = ("CURRENT", "manifest.json") if file.name == "CURRENT" else (file.name,)
        # A log of writes is told from another's by the file beside it: either can be the wrong one.
        names = (WRITES,) if file.name.startswith(WRITES) else names
        if how == "refused" and not any(name in said for name in names):
            tally.fail("refused, the file not named", f"{where}: {said}")
        else:
            tally.survive("refused, the file named" if how == "refused" else how)
