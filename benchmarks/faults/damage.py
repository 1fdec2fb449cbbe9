"""Damage of every file of an index, by class: what whoever opens and searches it then meets."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.faults.children import Ended, call, without_privileges
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import NAME, SPECTRAL, Answers, Place, answers
from klsa_search import open_index
from klsa_search.errors import KlsaError
from klsa_search.storage.names import LOCKS, WRITE_LOG

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
        names = (WRITE_LOG,) if file.name.startswith(WRITE_LOG) else names
        if how == "refused" and not any(name in said for name in names):
            tally.fail("refused, the file not named", f"{where}: {said}")
        else:
            tally.survive("refused, the file named" if how == "refused" else how)


PAGE = 4096
_DATA = 128
"""Where the numbers of an array begin, in a file of NumPy's."""

Damage = Callable[[bytes, random.Random], bytes | None]


def _put(content: bytes, at: int, piece: bytes) -> bytes:
    return content[:at] + piece + content[at + len(piece) :]


def _flip(content: bytes, end: int, chance: random.Random) -> bytes | None:
    """Turn over one bit of the first bytes."""
    if not content:
        return None
    at = chance.randrange(min(len(content), end))
    return _put(content, at, bytes([content[at] ^ 1 << chance.randrange(8)]))


def _page(content: bytes, filling: bytes, chance: random.Random) -> bytes:
    """Lose a page, as a disk does."""
    at = chance.randrange(len(content) // PAGE + 1) * PAGE
    return _put(content, at, filling * len(content[at : at + PAGE]))


def _filled(content: bytes, filling: bytes) -> bytes:
    """Leave the length, and of an array the header."""
    head = _DATA if content.startswith(b"\x93NUMPY") else 0
    return content[:head] + filling * (len(content) - head)


def _number(content: bytes, chance: random.Random, *, is_large: bool) -> bytes | None:
    """Make one number of an array far too large, or a little larger."""
    if not content.startswith(b"\x93NUMPY") or len(content) < _DATA + 8:
        return None
    at = _DATA + 4 * chance.randrange((len(content) - _DATA) // 4)
    return _put(content, at, b"\xff\xff\xff\x7e" if is_large else bytes([(content[at] + 1) % 256]))


def _other_header(content: bytes, chance: random.Random) -> bytes | None:
    """Give an array another shape or type of the same length."""
    swaps = [(b"<i4", b"<f4"), (b"<f4", b"<i4"), (b"<i8", b"<f8"), (b"<f8", b"<i8"),
             (b"<u4", b"<i4"), (b"|i1", b"|u1"), (b"'shape': (1", b"'shape': (9")]  # fmt: skip
    swaps = [(old, new) for old, new in swaps if old in content[:_DATA]]
    return content.replace(*chance.choice(swaps), 1) if swaps else None


CLASSES: dict[str, Damage] = {
    "bit flip": lambda content, chance: _flip(content, len(content), chance),
    "bit flip at the head": lambda content, chance: _flip(content, _DATA, chance),
    "zeroed page": lambda content, chance: _page(content, b"\0", chance),
    "0xFF page": lambda content, chance: _page(content, b"\xff", chance),
    "all zeros": lambda content, _: _filled(content, b"\0"),
    "all 0xFF": lambda content, _: _filled(content, b"\xff"),
    "a number too large": lambda content, chance: _number(content, chance, is_large=True),
    "a number one more": lambda content, chance: _number(content, chance, is_large=False),
    "cut short": lambda content, chance: content[: chance.randrange(1, max(len(content), 2))],
    "a byte less": lambda content, _: content[:-1],
    "prolonged": lambda content, chance: content + bytes(chance.choice((1, 8, PAGE))),
    "empty": lambda content, _: b"",
    "another header": _other_header,
}
CHANCE = ("bit flip", "bit flip at the head", "zeroed page", "0xFF page", "a number too large",
          "a number one more", "cut short", "another header")  # fmt: skip
"""Those that differ from time to time."""
