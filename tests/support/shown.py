"""Run what pages show: commands with their output, and Python examples.

A block fenced as ```console contains commands: a line with `$ ` begins one, lines with `> `
continue it, and all others are its output and errors. `...` stands for any text and one space for
any number of spaces, as in doctests. The sign of zero is ignored: -0.0000 is 0.0000.
"""

import contextlib
import doctest
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MARK = "----- a command has ended -----"
COMMAND = re.compile(r"^\$ (.*\n(?:> ?.*\n)*)((?:(?!\$ ).*\n)*)", re.MULTILINE)


def commands(page):
    """The commands that a page shows, in their order: (command, what it says)."""
    blocks = re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [
        (re.sub("^> ?", "", command, flags=re.MULTILINE), said)
        for block in blocks
        for command, said in COMMAND.findall(block)
    ]


def wrong_commands(page, folder):
    """Run the commands of a page in one shell, and tell what is not as it says."""
    shown = commands(page)
    assert shown, "no commands are shown"
    script = "".join(f"{command}printf '\\n%s\\n' '{MARK}'\n" for command, _ in shown)
    beside = str(Path(sys.executable).parent)
    with subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=os.environ | {"PATH": beside + os.pathsep + os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            said = shell.communicate(timeout=1200)[0].split(f"\n{MARK}\n")
        finally:
            end(shell.pid)
    checker = doctest.OutputChecker()
    return "".join(
        f"$ {command}should say:\n{wanted}says:\n{got}\n"
        for (command, wanted), got in zip(shown, [*said, *[""] * len(shown)], strict=False)
        if not checker.check_output(wanted.strip(), unsigned(got.strip()), FLAGS)
    )


def unsigned(said):
    return re.sub(r"-(0\.0+)\b", r"\1", said)


def end(group):
    """End what a shell has left running in its own group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def wrong_examples(page, title):
    """Run the doctests of a page in one namespace, and tell what is not as it says."""
    examples = doctest.DocTestParser().get_doctest(page, {}, title, None, 0)
    assert examples.examples, f"{title} has no examples"
    told = []
    doctest.DocTestRunner().run(examples, out=told.append)
    return "".join(told)
