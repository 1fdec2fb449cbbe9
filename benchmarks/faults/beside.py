"""Damaged indexes beside a good one: who asks for the good one notices nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.children import PATIENCE, call
from benchmarks.faults.serving import Asked, DoesNotServe, Server
from benchmarks.faults.tally import Tally
from benchmarks.faults.world import Place, Said, command

_TURNS = 5
GOOD, LATER = "good", "later"


def _byte(path: Path, at: int, byte: int = 0xFF) -> None:
    content = bytearray(path.read_bytes())
    content[at] = byte
    path.write_bytes(content)


def _one(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "current": lambda index: _byte(index / "CURRENT", 2),
    "vocabulary": lambda index: _byte(_one(index, "0*/vocabulary.txt"), 3),
    "starts": lambda index: _byte(_one(index, "0*/postings_starts.npy"), -1, 0x7F),
    "manifest": lambda index: _nest(_one(index, "0*/manifest.json")),
    "documents": lambda index: _hide(_one(index, "0*/documents.db")),
    "header": lambda index: _byte(_one(index, "0*/lengths.npy"), 1),
    # One number a little larger: no answer fails, and only the sum of the file tells.
    "number": lambda index: _byte(_one(index, "0*/lengths.npy"), -4, 0x01),
}
"""What is wrong with an index, by its name."""


def _nest(path: Path) -> None:
    path.write_text("[" * 100_000 + "]" * 100_000)


def _hide(path: Path) -> None:
    path.unlink()
    path.mkdir()


def run(folder: Path) -> list[Tally]:
    """Serve a good index and one of each damage; then damage another while it is served."""
    home = folder / "home"
    for name in (GOOD, LATER, *DAMAGES):
        call(build, folder / name, home, name).given().expect_done()
    for name, damage in DAMAGES.items():
        damage(home / name)
    tally = Tally("service: damaged indexes", "a question to, or beside, a damaged index")
    try:
        with Server(home) as server:
            _serve(server, folder / LATER, home, tally)
    except DoesNotServe as reason:
        tally.fail("the service does not start", str(reason))
    listed = call(command, "list", "--home", home).given()
    if listed.code == 0 and all(name in listed.out for name in (GOOD, *DAMAGES)):
        tally.survive("klsa-index list shows all")
    else:
        tally.fail("klsa-index list fails", listed.words)
    return [tally]


def _serve(server: Server, source: Path, home: Path, tally: Tally) -> None:
    _ask(server, tally, "from the beginning")
    call(build, source, home, LATER).given().expect_done()
    DAMAGES["starts"](home / LATER)
    _ask(server, tally, "damaged while it is served")
    _told(server, home, tally)
    if "Traceback" in server.errors():
        tally.fail("a traceback on stderr", server.errors()[-500:])


def build(folder: Path, home: Path, name: str) -> Said:
    """Build an index of that name from a source of its own."""
    place = Place(folder, "gvsm")
    source = place.write("old")
    return command("build", source, "--name", name, "--home", home)


def _ask(server: Server, tally: Tally, when: str) -> None:
    paths = [
        f"/search?index={GOOD}&q=boat1",
        f"/documents/old1?index={GOOD}",
        "/indexes",
        "/health",
    ]
    for path in paths * _TURNS:
        asked = server.get(path)
        named = GOOD in str(asked.json)
        _count(tally, asked, asked.outcome == 200 and named, f"{when}: {path}", "beside it: 200")
    for name in (*DAMAGES, LATER):
        asked = server.get(f"/search?index={name}&q=boat1")
        # Refused in the shape of every failure; what is not refused was damaged without effect.
        said = asked.json is not None and (asked.outcome == 200 or "error" in asked.json)
        _count(tally, asked, said, f"{when}: {name}", "asked itself: an answer or a sentence")


def _told(server: Server, home: Path, tally: Tally) -> None:
    """Wait until /health tells of each damaged index, of a number a little larger too."""
    end = time.monotonic() + PATIENCE
    while True:
        asked = server.get("/health")
        statuses = {each["name"]: each["ok"] for each in (asked.json or {}).get("indexes", [])}
        untold = [name for name in (*DAMAGES, LATER) if statuses.get(name, True)]
        if not untold or time.monotonic() > end:
            break
        time.sleep(0.2)
    compared = (asked.json or {}).get("sums", {})
    for name in (*DAMAGES, LATER):
        if name == LATER in untold and compared.get(name) == "whole":
            # It was compared before it was damaged: that is for the next comparison to find.
            verified = command("verify", name, "--home", home)
            if verified.code and "postings_starts.npy" in verified.err:
                tally.survive("klsa-index verify tells")
            else:
                tally.fail("klsa-index verify does not tell", verified.words)
        elif name in untold:
            tally.fail("/health never tells", f"{name}: {asked.outcome} {asked.body[:300]!r}")
        else:
            tally.survive("/health tells")


def _count(tally: Tally, asked: Asked, good: bool, where: str, how: str) -> None:
    if good:
        tally.survive(how)
    else:
        tally.fail(str(asked.outcome), f"{where}: {asked.body[:300]!r}")
