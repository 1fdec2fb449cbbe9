import json
import sys

import click
import pytest

from klsa_search.cli.output import Column, write_json, write_table
from klsa_search.core.wording import in_bytes

from .conftest import Terminal

COLUMNS = [Column("id"), Column("text", wraps=True)]
ROWS = [("an-id-of-some-length", "words " * 40)]


def test_a_pipe_is_never_wrapped(capsys):
    write_table(COLUMNS, ROWS)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_document_cannot_steer_the_terminal(capsys):
    write_table(COLUMNS, [("1", "two\nlines\x1b[2J [bold]")])
    assert capsys.readouterr().out.splitlines()[1] == "1   two lines [2J [bold]"


def test_json_of_half_a_character_is_still_json(capsys):
    write_json({"reason": "caf\udce9:1: é"})
    out = capsys.readouterr().out
    assert "é" in out
    assert json.loads(out) == {"reason": "caf\udce9:1: é"}


def test_a_terminal_is_filled_and_ids_stay_whole(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    write_table(COLUMNS, ROWS)
    lines = click.unstyle(terminal.getvalue()).splitlines()
    assert len(lines) > 4
    assert all(len(line) <= 60 for line in lines)
    assert "an-id-of-some-length" in lines[1]


def test_figures_are_whole_on_a_narrow_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    write_table([Column(f"p{n}", right=True) for n in range(9)], [["0.0004"] * 9])
    lines = click.unstyle(terminal.getvalue()).splitlines()
    assert lines[1].split() == ["0.0004"] * 9


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 * 2**20, "3.0 MiB"), (2**41, "2.0 TiB")],
)
def test_bytes_in_words(size, said):
    assert in_bytes(size) == said
