"""A leader killed while it writes, refits and backs up, and a follower killed while it follows.

Each batch of the leader gives all documents the same new text. So a follower that ever shows two
texts, or not all documents, shows a state that the leader never had.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.faults.children import Child, call
from benchmarks.faults.tally import Tally
from klsa_search import build, open_index
from klsa_search.errors import IndexNotFound, StoreError
from klsa_search.indexing import refit
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.storage.backup import back_up
from klsa_search.storage.repository import Repository
from klsa_search.storage.restore import follow

_NAME = "followed"
_IDS = [str(number) for number in range(12)]
_REFIT_EVERY = 6
_SECONDS = 1.5
"""Maximum seconds before a kill."""

_PATIENCE = 60.0
"""Seconds within which a follower shows what a new leader writes."""


def run(folder: Path, *, leaders: int = 20, followers: int = 20) -> list[Tally]:
    """Kill the leader and the follower so many times, at random moments."""
    parts = (("leader", leaders), ("follower", followers))
    return [_kill(folder / who, who, times) for who, times in parts if times]


def _kill(folder: Path, who: str, times: int) -> Tally:
    chance = random.Random(who)
    tally = Tally(f"followers: {who} killed", "SIGKILL at a random moment")
    home, kept, own = (folder / name for name in ("home", "kept", "own"))
    journal = folder / "journal"
    home.mkdir(parents=True)
    own.mkdir()
    journal.touch()
    call(_build, home).given()
    programs: dict[str, Callable[[], Child]] = {
        "leader": lambda: Child(_lead, home, str(kept), journal),
        "follower": lambda: Child(_follow, str(kept), own),
    }
    running = {name: start() for name, start in programs.items()}
    lags: list[float] = []
    recoveries: list[float] = []
    with OpenIndexes(own, interval=0) as open_indexes:
        observer = _Observer(open_indexes, journal, tally, lags)
        try:
            observer.wait_for(1)
            for number in range(times):
                end = time.monotonic() + _SECONDS * chance.random()
                while time.monotonic() < end:
                    observer.look()
                with running[who] as child:
                    child.kill()
                    ended = child.end()
                if ended.signal is None:
                    tally.fail("it ended before it was killed", f"{number}: {ended}")
                    break
                observer.look()  # what is served while it is away
                target = observer.acknowledged() + 1
                begun = time.monotonic()
                running[who] = programs[who]()
                if not observer.wait_for(target):
                    tally.fail("the follower did not recover", str(number))
                    break
                recoveries.append(time.monotonic() - begun)
                tally.survive("whole states, then newer ones")
        finally:
            for child in running.values():
                child.__exit__()
    if lags and recoveries:
        tally.notes |= {
            "states seen": float(observer.looks),
            "median lag in s": statistics.median(lags),
            "largest lag in s": max(lags),
            "median recovery in s": statistics.median(recoveries),
            "largest recovery in s": max(recoveries),
        }
    return tally


class _Observer:
    """Looks at what a follower serves, and compares it with what the leader wrote."""

    def __init__(
        self, open_indexes: OpenIndexes, journal: Path, tally: Tally, lags: list[float]
    ) -> None:
        self._open_indexes, self._journal, self._tally, self._lags = (
            open_indexes,
            journal,
            tally,
            lags,
        )
        self.state = 0
        self.looks = 0

    def acknowledged(self) -> int:
        """Return the last state that the leader acknowledged."""
        return max(_times(self._journal), default=0)

    def wait_for(self, state: int) -> bool:
        """Look until the follower shows this state or a later one; return whether it did."""
        end = time.monotonic() + _PATIENCE
        while self.state < state and time.monotonic() < end:
            self.look()
        return self.state >= state

    def look(self) -> None:
        """Look once."""
        time.sleep(0.01)
        try:
            with self._open_indexes.use(_NAME) as index:
                texts = {each.id: each.text for each in index.live_documents()}
                found = index.search("state", k=len(_IDS)).total
        except IndexNotFound:  # before the first backup
            return
        except StoreError as failure:
            self._tally.fail("not served", failure.message)
            return
        self.looks += 1
        numbers = {int(text.split()[1]) for text in texts.values()}
        if sorted(texts) != sorted(_IDS) or len(numbers) != 1 or found != len(_IDS):
            self._tally.fail("not a state of the leader", f"{found} found, {texts}")
            return
        (state,) = numbers
        if state < self.state:
            self._tally.fail("went back", f"from {self.state} to {state}")
        if state > self.state:
            acknowledged = _times(self._journal)
            if state in acknowledged:
                self._lags.append(time.monotonic() - acknowledged[state])
            self.state = state


def _times(journal: Path) -> dict[int, float]:
    """Return when each state was acknowledged, by the clock of `time.monotonic`."""
    lines = journal.read_text().split("\n")[:-1]
    return {int(state): float(when) for state, when in map(str.split, lines)}


def _documents(state: int) -> list[dict[str, Any]]:
    return [{"id": id_, "text": f"state {state} of document {id_}"} for id_ in _IDS]


def _build(home: Path) -> None:
    build(_documents(0), name=_NAME, home=home).close()


def _lead(home: Path, kept: str, journal: Path) -> None:
    """Write, refit now and then, and back up, until killed."""
    repository = Repository(kept)
    state = max(_times(journal), default=0)
    while True:
        state += 1
        with open_index(home / _NAME) as index:
            index.add(_documents(state))
        with journal.open("a") as stream:
            stream.write(f"{state} {time.monotonic()}\n")
        if state % _REFIT_EVERY == 0:
            refit(home / _NAME).close()
        back_up(repository, home, keep=3)


def _follow(kept: str, own: Path) -> None:
    """Follow until killed."""
    repository = Repository(kept)
    while True:
        with suppress(StoreError):  # no backup yet, or removed meanwhile
            follow(repository, own)
        time.sleep(0.02)
