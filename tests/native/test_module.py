"""The module as a whole: its stub and the choice of the instruction set."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from klsa_search import _native


def test_stub_names_what_the_module_has():
    path = Path(_native.__file__).with_name("_native.pyi")
    tree = ast.parse(path.read_text())

    def names(body):
        defined = {
            node.target.id if isinstance(node, ast.AnnAssign) else node.name
            for node in body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AnnAssign))
        }
        return {name for name in defined if not name.startswith("_")}

    assert names(tree.body) == {name for name in dir(_native) if not name.startswith("_")}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            members = dir(getattr(_native, node.name))
            assert names(node.body) == {name for name in members if not name.startswith("_")}


def test_unsupported_instruction_set_is_refused():
    with pytest.raises(ValueError, match="`sse9` is not an instruction set of this processor"):
        _native.select_instruction_set("sse9")


def test_largest_instruction_set_is_active():
    largest = _native.instruction_sets()[-1]
    assert _native.select_instruction_set(largest) == largest


SUMS_UNTIL_THE_END = """
import threading, time
import numpy as np
from klsa_search import _native

columns, data, sums = np.zeros(2**20, np.int32), np.ones(2**20), np.zeros(1)
running = threading.Event()

def add():
    while True:
        _native.add_to_columns(columns, data, sums)
        running.set()

threading.Thread(target=add, daemon=True).start()
running.wait()
"""


def test_the_interpreter_ends_while_a_daemon_thread_is_in_the_module():
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", SUMS_UNTIL_THE_END], capture_output=True, timeout=600
        )
        assert (done.returncode, done.stderr) == (0, b"")
