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
from tests.support.forked import another_thread, in_child
from tests.support.waiting import PATIENCE


def printed(script):
    return subprocess.check_output(
        [sys.executable, "-c", script], text=True, timeout=PATIENCE
    ).splitlines()


def test_importing_compiles_nothing_and_does_not_load_what_would():
    script = """
import importlib, pkgutil, sys, klsa_search
for package in ("kernel", "expansion", "features", "search", "delta", "store"):
    path = [f"{klsa_search.__path__[0]}/{package}"]
    for each in pkgutil.walk_packages(path, f"klsa_search.{package}."):
        importlib.import_module(each.name)
print({"numba", "llvmlite"} & set(sys.modules))
"""
    assert printed(script) == ["set()"]


@pytest.mark.long
def test_threads_that_call_a_function_first_share_what_compiles_it():
    script = """
import threading
from klsa_search.compiled import compiled
double = compiled(eval("lambda number: 2 * number"))
barrier, found = threading.Barrier(8), []
def call():
    barrier.wait()
    found.append((double.dispatcher, double(21)))
threads = [threading.Thread(target=call) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(len(set(found)), len(found), found[0][1], len(double.dispatcher.overloads))
"""
    assert printed(script) == ["1 8 42 1"]


def test_where_no_folder_can_be_written_to_each_process_compiles_for_itself(monkeypatch):
    monkeypatch.setattr(KeptCode, "_folders", lambda self: iter(()))

    @compiled
    def double(number):
        return 2 * number

    assert double(21) == 42
    assert double.dispatcher.nopython_signatures


def test_compiling_holds_no_arrays_of_the_caller():
    class Large:
        pass

    # Made here, so that no earlier run has it compiled.
    function = compiled(eval("lambda values: np.flip(values)[0]", {"np": np}))
    held = []

    def caller():
        large = Large()
        held.append(weakref.ref(large))
        return function(np.arange(3.0))

    gc.disable()
    try:
        assert caller() == 2
    finally:
        gc.enable()
    assert held[0]() is None


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_another_thread_compiles_may_compile():
    def compile_one():
        assert compiled(eval("lambda number: number + 1"))(1) == 2

    with another_thread(compile_one):
        assert [in_child(compile_one) for _ in range(3)] == [0] * 3


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_another_thread_loads_numba_may_compile():
    script = """
import os, sys, threading
from klsa_search.compiled import compiled
double = compiled(eval("lambda number: 2 * number"))
loading = threading.Event()
class Told:
    def find_spec(self, name, path=None, target=None):
        if name == "numba":
            loading.set()
sys.meta_path.insert(0, Told())
thread = threading.Thread(target=double, args=(1,))
thread.start()
loading.wait()
child = os.fork()
if not child:
    os._exit(double(2) != 4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
"""
    assert printed(script) == ["0"]
