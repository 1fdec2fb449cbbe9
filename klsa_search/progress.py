"""Progress of long work, and the names of the phases of a build."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

Progress = Callable[[str, int, int | None], None]
"""Called with phase, amount done, and amount in all where it is known."""


def silent(phase: str, done: int, total: int | None) -> None:
    """Report nothing."""


def steps(progress: Progress | None, phase: str, total: int | None = None) -> Callable[[], None]:
    """Return a function to call after each step of a phase, which reports the steps done."""
    done = count(1)

    def step() -> None:
        number = next(done)
        if progress is not None:
            progress(phase, number, total)

    return step


# Phases of a build, in their order; each is a noun that can be counted.
DOCUMENTS: Final = "documents"
COUNTS: Final = "counts"
POSTINGS: Final = "postings"
EIGENVECTORS: Final = "eigenvectors"
NEIGHBOURS: Final = "neighbours"
EXPANSION: Final = "expansion"
FILES: Final = "files"

PHASES: Final = (DOCUMENTS, COUNTS, POSTINGS, EIGENVECTORS, NEIGHBOURS, EXPANSION, FILES)
