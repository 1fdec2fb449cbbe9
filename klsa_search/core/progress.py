"""Progress of long work: phases, callbacks and progress bars."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from types import NoneType
from typing import TYPE_CHECKING, Final, TextIO

from klsa_search.core.arguments import checked_argument

if TYPE_CHECKING:
    from rich.progress import Progress as Lines
    from rich.progress import Task, TaskID


Progress = Callable[[str, int, int | None], None]
"""Called with the phase, the amount done, and the total amount or None."""


def silent(phase: str, done: int, total: int | None) -> None:
    """Report nothing."""


def steps(progress: Progress | None, phase: str, total: int | None = None) -> Callable[[], None]:
    """Return a function that reports one more step of a phase at each call."""
    done = count(1)

    def step() -> None:
        number = next(done)
        if progress is not None:
            progress(phase, number, total)

    return step


# Phases of a build, in order; each is a plural noun.
DOCUMENTS: Final = "documents"
COUNTS: Final = "counts"
POSTINGS: Final = "postings"
EIGENVECTORS: Final = "eigenvectors"
NEIGHBOURS: Final = "neighbours"
EXPANSION: Final = "expansion"
FILES: Final = "files"

VECTORS: Final = "vectors"  # phase before a build that computes vectors
_PASSAGES: Final = "passages"

WRITES: Final = "writes"  # phase of a sync, after `DOCUMENTS`
PHASES: Final = (DOCUMENTS, COUNTS, POSTINGS, EIGENVECTORS, NEIGHBOURS, EXPANSION, FILES)


_REDRAWN: Final = 0.2  # seconds between two updates of a bar in a notebook
_WIDTH: Final = 100  # characters per line in a notebook


def of_passages(report: Progress) -> Progress:
    """Return a callback for the second pass of a build, over passages, which names its phases."""
    return lambda phase, done, total: report(passage_phase(phase), done, total)


def passage_phase(phase: str) -> str:
    """Return the name of a phase in the pass over passages.

    >>> passage_phase("documents"), passage_phase("counts")
    ('passages', 'counts of passages')
    """
    return _PASSAGES if phase == DOCUMENTS else f"{phase} of {_PASSAGES}"


@contextmanager
def open_progress(progress: Progress | bool | None) -> Iterator[Progress]:
    """Yield the progress callback: the one given, or for True a bar in a notebook or terminal."""
    if callable(progress):
        yield progress
    elif checked_argument("progress", progress, bool, NoneType) and _in_notebook():
        with _Cell() as cell:
            yield cell
    elif progress:
        with progress_bar() as bar:
            yield bar or silent
    else:
        yield silent


class Bar:
    """A progress bar, updated by calls `bar(phase, done, total)`."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        """Show the progress of a phase; earlier phases have ended."""
        if phase not in self._tasks:
            for task in self._tasks.values():
                self._lines.stop_task(task)
            self._tasks[phase] = self._lines.add_task(phase, total=total)
        self._lines.update(self._tasks[phase], completed=done, total=total)


@contextmanager
def progress_bar(stream: TextIO | None = None) -> Iterator[Bar | None]:
    """Yield a `Bar` if the stream, stderr by default, is a terminal, otherwise None."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield None
        return
    with _lines(stream) as lines:
        yield Bar(lines)


class _Cell(AbstractContextManager["_Cell"]):
    """A bar in the output of a notebook cell; needs no widgets."""

    def __init__(self) -> None:
        from IPython.display import display

        self._lines = _lines(io.StringIO())
        self._bar = Bar(self._lines)
        self._drawn = time.monotonic()
        self._display = display(self._rendered(), raw=True, display_id=True)

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        self._bar(phase, done, total)
        if time.monotonic() - self._drawn >= _REDRAWN:
            self._draw()

    def __exit__(self, *_: object) -> None:
        self._draw()

    def _draw(self) -> None:
        self._display.update(self._rendered(), raw=True)
        self._drawn = time.monotonic()

    def _rendered(self) -> dict[str, str]:
        from rich.console import Console

        page = io.StringIO()
        console = Console(file=page, width=_WIDTH, color_system=None, force_jupyter=False)
        console.print(self._lines.get_renderable())
        return {"text/plain": page.getvalue()}


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter


def _lines(stream: TextIO) -> Lines:
    """Return the layout of a bar, one line per phase."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Amount(ProgressColumn):
        """The amount done, the total and the rate."""

        def render(self, task: Task) -> Text:
            done = f"{task.completed:,.0f}" if task.completed else ""
            of = f" of {task.total:,.0f}" if task.total else ""
            speed = task.finished_speed or task.speed
            noun = task.description.rpartition(" ")[2]
            rate = f"  {speed:,.0f} {noun}/s" if speed and speed >= 10 else ""
            return Text(done + of + rate)

    times = TimeElapsedColumn(), TimeRemainingColumn()
    columns = TextColumn("{task.description}"), BarColumn(), Amount(), *times
    return Progress(*columns, console=Console(file=stream, force_jupyter=False), transient=True)


def format_duration(seconds: float) -> str:
    """Return a duration as text: 4 s, 2 min 5 s, 3 h 20 min."""
    whole_seconds = round(seconds)
    if whole_seconds < 60:
        return f"{whole_seconds} s" if whole_seconds else "0 s" if not seconds else "< 1 s"
    if whole_seconds < 3600:
        return f"{whole_seconds // 60} min {whole_seconds % 60} s"
    return f"{whole_seconds // 3600} h {whole_seconds % 3600 // 60} min"
