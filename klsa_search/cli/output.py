"""What a command shows: tables for people, plain columns for pipes, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from rich.text import Text

_UNBOUNDED = 1_000_000
"""Width of a line that goes to a file or a pipe, where nothing may be wrapped."""
_NO_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], " ")
"""Line ends, and what a document could steer the reader's terminal with."""


@dataclass(frozen=True)
class Column:
    """One column of a table; `wraps` where text may break into lines, on a terminal."""

    title: str
    right: bool = False
    wraps: bool = False


class Marked(NamedTuple):
    """A text with marks, from one character to another, which a terminal shows in bold."""

    text: str
    marks: Sequence[tuple[int, int]]


Cell = str | Marked


def write_json(value: Any) -> None:
    """Write a value for programs: UTF-8, indented, names in the order they were given."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # Half a character, as in a path that is not UTF-8, can only be written as JSON's escape.
    click.echo(text.encode(errors="backslashreplace").decode())


def write_json_file(path: Path, value: Any) -> None:
    """Write a value to a file, for programs."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def make_folders(*files: Path | None) -> None:
    """Make the folders of the files to come, before the work and not after it."""
    for file in files:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)


def write_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    """Write rows as wide as the terminal is; to a pipe one line each, never cut or wrapped.

    Without a column that wraps, they are as wide as they must be: a figure cut short would lie.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=not (terminal and column.wraps),
            overflow="fold",
        )
    for row in rows:
        # Text, so that brackets in a document are not read as markup.
        table.add_row(*(_shown(cell, Text) for cell in row))
    fits = terminal and any(column.wraps for column in columns)
    console = Console(file=sys.stdout, width=None if fits else _UNBOUNDED, highlight=False)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _shown(cell: Cell, text: type[Text]) -> Text:
    if isinstance(cell, str):
        return text(cell.translate(_NO_CONTROLS))
    shown = text(cell.text.translate(_NO_CONTROLS))
    for start, end in cell.marks:
        shown.stylize("bold", start, end)
    return shown


def write_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Write names and values below each other."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        click.echo(f"{name.ljust(width)}  {value.translate(_NO_CONTROLS)}")


def in_bytes(size: float) -> str:
    """Say a number of bytes: 12 B, 3.4 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
