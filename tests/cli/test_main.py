import errno
import re
import sys

import click
import pytest

from klsa_search.cli.main import Command, run
from klsa_search.errors import IndexNotFound
from tests.support.processes import run_python

PROGRAM = """
import click
from klsa_search.cli.main import Command
from klsa_search.cli.main import run

@click.command(cls=Command)
def slip():
    {}["nobody foresaw this"]

run(slip)
"""


@pytest.fixture(autouse=True)
def _keep_excepthook(monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


def command(body):
    @click.command(cls=Command)
    @click.option("--count", type=click.IntRange(min=1))
    def program(count):
        body()

    return program


def leave(body, *arguments):
    with pytest.raises(SystemExit) as left:
        run(command(body), arguments)
    return left.value.code


def fail(error):
    def body():
        raise error

    return body


def test_a_command_that_ends_well_leaves_with_0(capsys):
    assert leave(lambda: None) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            IndexNotFound("index/x is not there: build it"),
            "error: index/x is not there: build it\n",
        ),
        (OSError(errno.ENOSPC, "No space left on device", "/d/f"), "free some disk space"),
        (PermissionError(errno.EACCES, "Permission denied", "/d/f"), "/d/f: Permission denied"),
        (OSError("odd"), "the system: odd"),
        (MemoryError(), "out of memory"),
    ],
)
def test_a_failure_is_one_sentence_on_stderr_and_1(error, sentence, capsys):
    assert leave(fail(error)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1


def test_debug_lets_the_traceback_through():
    with pytest.raises(IndexNotFound):
        run(command(fail(IndexNotFound("gone"))), ["--debug"])


def test_every_error_begins_alike(capsys):
    usages = [["--count", "0"], ["--nothing"], ["--count"], ["more"]]
    for usage in usages:
        leave(lambda: None, *usage)
        *_, last = capsys.readouterr().err.splitlines()
        assert re.match("error: [a-z]", last)
        assert "-- before" not in last
    leave(lambda: None, "--k1", "2")
    assert "change it with `klsa-index refit NAME --k1 VALUE`" in capsys.readouterr().err


def test_wrong_usage_is_2(capsys):
    assert leave(lambda: None, "--count", "0") == 2
    assert leave(lambda: None, "--nothing") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_help_is_0(capsys):
    assert leave(lambda: None, "--help") == 0
    long = capsys.readouterr().out
    assert "--debug" in long
    assert leave(lambda: None, "-h") == 0
    assert capsys.readouterr().out == long


def test_h_is_help_in_every_command_of_a_group(capsys):
    group = click.Group(commands={"program": command(lambda: None)})
    with pytest.raises(SystemExit) as left:
        run(group, ["program", "-h"])
    assert left.value.code == 0
    assert "-h, --help" in capsys.readouterr().out


def test_ctrl_c_is_130_and_a_no_is_1(capsys):
    assert leave(fail(KeyboardInterrupt())) == 130
    assert leave(fail(click.Abort())) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "traced"), [([], False), (["--debug"], True)])
def test_a_slip_of_our_own_is_one_line_too(arguments, traced):
    done = run_python(PROGRAM, *arguments)
    assert done.returncode == 1
    assert ("Traceback" in done.stderr) is traced
    assert "nobody foresaw this" in done.stderr
