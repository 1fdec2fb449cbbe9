"""The module as a whole: its stub and the choice of the instruction set."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from klsa_search import _native


def test_stub_names_what_the_module_has():
    path = Path(_native.__file__).with_name("_native.pyi")
    tree = ast.parse(path.read_text())

    def names(body):
        return {
            node.name
            for node in body
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")
        }

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
