"""How the engine is compiled: never at import, and also where nothing can be kept."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

from klsa_search.compiled import compiled
from klsa_search.compiled.keeping import KeptCode
from tests.forked import another_thread, in_child


def test_importing_compiles_nothing():
    script = """
import klsa_search.search, klsa_search.search.engine.topk as topk
print([len(f.overloads) for f in vars(topk).values() if hasattr(f, "overloads")])
"""
    printed = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert set(printed.strip("[]\n").split(", ")) == {"0"}


def test_where_no_folder_can_be_written_to_each_process_compiles_for_itself(monkeypatch):
    monkeypatch.setattr(KeptCode, "_folders", lambda self: iter(()))

    @compiled
    def double(number):
        return 2 * number

    assert double(21) == 42
    assert double.nopython_signatures


def test_compiling_holds_no_arrays_of_the_caller():
    class Large:
        pass

    # Made here, so that no earlier run has it compiled.
    function = compiled(eval("lambda values: np.partition(values, 1)[0]", {"np": np}))
    held = []

    def caller():
        large = Large()
        held.append(weakref.ref(large))
        return function(np.arange(3.0))

    gc.disable()
    try:
        assert caller() == 0
    finally:
        gc.enable()
    assert held[0]() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_forked_while_another_thread_compiles_may_compile():
    def compile_one():
        assert compiled(eval("lambda number: number + 1"))(1) == 2

    with another_thread(compile_one):
        assert [in_child(compile_one) for _ in range(3)] == [0] * 3
