"""What a command shows: tables for people, plain columns for pipes, JSON for programs.

All that a command writes for people goes through this module, which leaves no character that could
steer a terminal: documents, file names and queries may hold any.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

if TYPE_CHECKING:
    from rich.text import Text

_UNBOUNDED = 1_000_000
"""Width of a line that goes to a file or a pipe, where nothing may be wrapped."""
_STEERING: Final = (
    *range(0x20),  # C0
    *range(0x7F, 0xA0),  # DEL, C1
    0x061C, 0x200E, 0x200F,  # marks of direction
    0x2028, 0x2029,  # separators of lines and paragraphs
    *range(0x202A, 0x202F),  # embeddings and overrides of direction
    *range(0x2066, 0x206A),  # isolates of direction
)  # fmt: skip
"""Characters that move the cursor, begin a sequence of escape or change the order of others."""
_BLANKED: Final = dict.fromkeys(_STEERING, " ")
_ESCAPED: Final = {code: f"\\u{code:04x}" for code in _STEERING if code != ord("\n")}


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


def echo(text: str = "", *, err: bool = False) -> None:
    """Write a line for people, to stderr if `err`."""
    click.echo(printable(text), err=err)


def printable(text: str) -> str:
    """Return a text with blanks in the place of line ends and of all that steers a terminal."""
    return text.translate(_BLANKED)


def escaped(written: str) -> str:
    """Return the same JSON, which steers no terminal; line ends between its parts stay."""
    return written.translate(_ESCAPED)


def write_json(value: Any) -> None:
    """Write a value for programs: UTF-8, indented, names in the order they were given."""
    text = escaped(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))
    # Half a character, as in a path that is not UTF-8, can only be written as JSON's escape.
    click.echo(text.encode(errors="backslashreplace").decode())


def write_json_file(path: Path, value: Any) -> None:
    """Write a value to a file, for programs."""
    path.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")


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
            _shown(column.title, Text),  # which may be the name of a field
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
        return text(printable(cell))
    shown = text(printable(cell.text))
    for start, end in cell.marks:
        shown.stylize("bold", start, end)
    return shown


def write_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Write names and values below each other."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        echo(f"{name.ljust(width)}  {value}")


def in_bytes(size: float) -> str:
    """Say a number of bytes: 12 B, 3.4 MiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
