"""Progress of long work: phases, callbacks and progress bars."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Lines
    from rich.progress import Task, TaskID
    from rich.text import Text


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


_REDRAWN: Final = 0.2
"""Seconds between two pictures of a bar in a notebook."""
_WIDTH: Final = 100
"""Characters of a line there."""


@contextmanager
def open_progress(progress: Progress | bool | None) -> Iterator[Progress]:
    """Give what is called as work goes on: what was given; for True a bar, where somebody looks.

    A notebook and a terminal have one, and anything else has none.
    """
    if callable(progress):
        yield progress
    elif progress and _in_notebook():
        with _Cell() as cell:
            yield cell
    elif progress:
        with progress_bar() as bar:
            yield bar or silent
    else:
        yield silent


class Bar:
    """A progress bar, fed by calls `bar(phase, done, total)`; a phase is a noun."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """Show how far a phase has come; the phases before it have ended."""
        if phase not in self._tasks:
            for task in self._tasks.values():
                self._lines.stop_task(task)
            self._tasks[phase] = self._lines.add_task(phase, total=total)
        self._lines.update(self._tasks[phase], completed=done, total=total)


@contextmanager
def progress_bar(stream: TextIO | None = None) -> Iterator[Bar | None]:
    """Give a `Bar` while stderr is a terminal, and None, so that nothing moves, where it is not."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield None
        return
    with _lines(stream) as lines:
        yield Bar(lines)


class _Cell:
    """A bar in the output of a notebook's cell, where it stays; needs no widgets."""

    def __init__(self) -> None:
        from IPython.display import display

        self._lines = _lines(io.StringIO())
        self._bar = Bar(self._lines)
        self._drawn = time.monotonic()
        self._shown = display(self._picture(), raw=True, display_id=True)

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        self._bar(phase, done, total)
        if time.monotonic() - self._drawn >= _REDRAWN:
            self._draw()

    def __enter__(self) -> _Cell:
        return self

    def __exit__(self, *_: object) -> None:
        self._draw()

    def _draw(self) -> None:
        self._shown.update(self._picture(), raw=True)
        self._drawn = time.monotonic()

    def _picture(self) -> dict[str, str]:
        from rich.console import Console

        page = io.StringIO()
        console = Console(file=page, width=_WIDTH, color_system=None, force_jupyter=False)
        console.print(self._lines.get_renderable())
        return {"text/plain": page.getvalue()}


def _in_notebook() -> bool:
    from rich.console import Console

    return Console().is_jupyter


def _lines(stream: TextIO) -> Lines:
    """Lay out the lines of a bar, one a phase."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    class Amount(ProgressColumn):
        def render(self, task: Task) -> Text:
            return _amount(task)

    class Left(ProgressColumn):
        max_refresh = 1.0

        def render(self, task: Task) -> Text:
            return _left(task)

    columns = (
        TextColumn("{task.description}"), BarColumn(), Amount(), TimeElapsedColumn(), Left()
    )  # fmt: skip
    return Progress(*columns, console=Console(file=stream, force_jupyter=False), transient=True)


def _amount(task: Task) -> Text:
    """Say how many are done, of how many, and how fast."""
    from rich.text import Text

    done = f"{task.completed:,.0f}" if task.completed else ""
    of = f" of {task.total:,.0f}" if task.total else ""
    speed = task.finished_speed or task.speed
    noun = task.description.rpartition(" ")[2]
    rate = f"  {speed:,.0f} {noun}/s" if speed and speed >= 10 else ""
    return Text(done + of + rate)


def _left(task: Task) -> Text:
    """Say how long it will go on at the present speed, where its end is known."""
    from rich.text import Text

    left = task.time_remaining
    return Text("" if not left or task.finished else f"{format_duration(left)} left")


def format_duration(seconds: float) -> str:
    """Say a span of time: 4 s, 2 min 5 s, 3 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if whole else "0 s" if not seconds else "< 1 s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
