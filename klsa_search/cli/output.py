"""Output of commands: tables on a terminal, plain columns in a pipe, JSON.

All text output passes through this module, which removes terminal control characters: documents,
file names and queries may contain any.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

if TYPE_CHECKING:
    from rich.text import Text

_UNBOUNDED = 1_000_000  # width of a line in a file or a pipe, where lines are not wrapped
_CONTROLS: Final = (
    *range(0x20),  # C0
    *range(0x7F, 0xA0),  # DEL, C1
    0x061C, 0x200E, 0x200F,  # marks of direction
    0x2028, 0x2029,  # separators of lines and paragraphs
    *range(0x202A, 0x202F),  # embeddings and overrides of direction
    *range(0x2066, 0x206A),  # isolates of direction
)  # fmt: skip
"""Characters that move the cursor, start an escape sequence or change the text direction."""
_BLANKED: Final = dict.fromkeys(_CONTROLS, " ")
_ESCAPED: Final = {code: f"\\u{code:04x}" for code in _CONTROLS if code != ord("\n")}


@dataclass(frozen=True)
class Column:
    """One column of a table; `wraps` if its text may be wrapped on a terminal."""

    title: str
    right: bool = False
    wraps: bool = False


Columns = Iterable[Column | str]
"""Columns of a table; a `str` is one that is neither right nor wraps."""


def numbers(*titles: str) -> list[Column]:
    """Return columns of numbers."""
    return [Column(title, right=True) for title in titles]


def wrapped(*titles: str) -> list[Column]:
    """Return columns whose texts may be wrapped on a terminal."""
    return [Column(title, wraps=True) for title in titles]


class Marked(NamedTuple):
    """Text with marked ranges of characters, shown in bold on a terminal."""

    text: str
    marks: Sequence[tuple[int, int]]


Cell = str | Marked


def echo(text: str = "", *, err: bool = False) -> None:
    """Write a line of text, to stderr if `err`."""
    click.echo(printable(text), err=err)


def echo_notes(notes: Iterable[str]) -> None:
    """Write notes to the standard error."""
    for note in notes:
        echo(f"note: {note}", err=True)


def printable(text: str) -> str:
    """Return text with line ends and control characters replaced by blanks."""
    return text.translate(_BLANKED)


def escaped(json_text: str) -> str:
    """Return JSON with control characters escaped, except line ends between its parts."""
    return json_text.translate(_ESCAPED)


def write_json(value: Any) -> None:
    """Write a value as JSON: UTF-8, indented."""
    text = escaped(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))
    # Unpaired surrogates, as in a path that is not UTF-8, are written as escapes.
    click.echo(text.encode(errors="backslashreplace").decode())


def write_json_file(path: Path, value: Any) -> None:
    """Write a value to a file as JSON."""
    path.write_text(json.dumps(value, indent=2, allow_nan=False) + "\n", encoding="utf-8")


def make_folders(*files: Path | None) -> None:
    """Create the folders of output files, so that errors show before the work."""
    for file in files:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)


def write_table(columns: Columns, rows: Iterable[Sequence[Cell]]) -> None:
    """Write a table as wide as the terminal; in a pipe, each row is one line.

    Only columns with `wraps` are wrapped, so that no number is cut.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    titled = [Column(column) if isinstance(column, str) else column for column in columns]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in titled:
        table.add_column(
            _shown(column.title, Text),  # which may be the name of a field
            justify="right" if column.right else "left",
            no_wrap=not (terminal and column.wraps),
            overflow="fold",
        )
    for row in rows:
        # Text, so that brackets in a document are not read as markup.
        table.add_row(*(_shown(cell, Text) for cell in row))
    fits = terminal and any(column.wraps for column in titled)
    console = Console(file=sys.stdout, width=None if fits else _UNBOUNDED, highlight=False)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def write_list(
    as_json: bool, value: Any, columns: Columns, rows: Sequence[Sequence[Cell]], nothing: str
) -> None:
    """Write a value as JSON, or rows as a table, or a sentence if there are none."""
    if as_json:
        write_json(value)
    elif rows:
        write_table(columns, rows)
    else:
        echo(nothing)


def _shown(cell: Cell, text: type[Text]) -> Text:
    if isinstance(cell, str):
        return text(printable(cell))
    shown = text(printable(cell.text))
    for start, end in cell.marks:
        shown.stylize("bold", start, end)
    return shown


def write_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Write lines of name and value."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        echo(f"{name.ljust(width)}  {value}")
