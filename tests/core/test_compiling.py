"""Compiling: not at import, and once for each version."""

from __future__ import annotations

import gc
import importlib
import os
import pwd
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import klsa_search
from benchmarks.faults.privileges import without_privileges
from klsa_search.core import compiling
from klsa_search.core.compiling import (
    compiled,
    missing_functions,
    not_compiled,
    wait_until_compiled,
)
from tests.support.waiting import PATIENCE, wait_until

MADE = """
import numpy as np
from typing import NamedTuple
from klsa_search.core.compiling import compiled, inlined

LEVELS = 3

class Pair(NamedTuple):
    first: int
    second: int

@inlined
def last(pair):
    return pair.second

@compiled
def levels(number):
    return number * LEVELS

@compiled
def whole(number):
    return levels(number) + last(Pair(1, number))

@compiled
def other(number):
    return number - 1

@compiled
def both(pair: Pair):
    return pair[0] + pair[1]
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Import a module of compiled functions, made here with a text of it replaced."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(old="", new=""):
        (tmp_path / "made.py").write_text(MADE.replace(old, new) if old else MADE)
        monkeypatch.delitem(sys.modules, "made", raising=False)
        importlib.invalidate_caches()
        import linecache

        linecache.clearcache()
        return importlib.import_module("made")

    yield make
    monkeypatch.delitem(sys.modules, "made", raising=False)


def printed(script, **environment):
    return subprocess.check_output(
        [sys.executable, "-c", script], text=True, timeout=PATIENCE, env=os.environ | environment
    ).splitlines()


def compilations(function, *arguments):
    """What a function gives, and whether it was compiled."""
    seen = []
    with compiling.on_compile(lambda _folder: seen.append(compiling.is_compiling())):
        answer = function(*arguments)
    assert all(seen)
    assert not compiling.is_compiling()
    return answer, len(seen)


@pytest.mark.slow
def test_importing_compiles_nothing_and_does_not_load_what_would():
    script = """
import importlib, pkgutil, sys, klsa_search
for package in ("kernels", "lowrank", "search", "delta", "storage"):
    path = [f"{klsa_search.__path__[0]}/{package}"]
    for each in pkgutil.walk_packages(path, f"klsa_search.{package}."):
        importlib.import_module(each.name)
print({"numba", "llvmlite"} & set(sys.modules))
"""
    assert printed(script) == ["set()"]


def test_only_the_public_interface_of_numba_is_used():
    found = [
        str(path)
        for path in Path(klsa_search.__file__).parent.rglob("*.py")
        for text in [path.read_text(encoding="utf-8")]
        if "numba.core" in text or "numba.extending" in text or "import llvmlite" in text
    ]
    assert found == []


CHANGES = {
    "a constant": ("LEVELS = 3", "LEVELS = 4", 4 * 7 + 7),
    "a function it calls": ("number * LEVELS", "number + LEVELS", 7 + 3 + 7),
    "an inlined function": ("pair.second", "pair.first", 3 * 7 + 1),
    "the fields of a named tuple": ("first: int\n    second", "second: int\n    first", 21 + 1),
    "the function itself": ("levels(number) +", "levels(number) -", 21 - 7),
}


def test_code_for_a_type_that_was_renamed_or_moved_is_compiled_again(made):
    """numba's cache refers to types by module and name; one that is not there cannot be read."""
    before = made()
    assert before.both(before.Pair(1, 2)) == 3
    after = made("Pair", "Couple")
    assert after.both.name != before.both.name
    assert compilations(after.both, after.Couple(1, 2)) == (3, 1)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_anything_compiled_in_is_compiled_again(change, made):
    *texts, answer = CHANGES[change]
    before = made()
    names = before.whole.name, before.other.name
    after = made(*texts)
    assert after.whole.name != names[0]
    assert after.other.name == names[1]
    assert after.whole.py_func(7) == answer or change == "a function it calls"


def test_what_is_kept_is_not_compiled_again_and_former_versions_go(made, tmp_path):
    assert compilations(made().whole, 7) == (28, 1)
    assert compilations(made().whole, 7) == (28, 0)
    assert compilations(made("LEVELS = 3", "LEVELS = 4").whole, 7) == (35, 1)
    assert len(list((tmp_path / "kept").glob("made.whole-*"))) == 1


def test_code_in_a_folder_that_cannot_be_written_to_is_used(made, monkeypatch):
    assert made().whole(7) == 28
    monkeypatch.setattr(compiling, "is_writable", lambda folder: False)
    function = made().whole
    assert compilations(function, 7) == (28, 0)
    assert sum(function.dispatcher.stats.cache_hits.values()) == 1


def test_where_nothing_can_be_kept_each_process_compiles(made, monkeypatch):
    monkeypatch.setattr(compiling, "is_writable", lambda folder: False)
    assert compilations(made().whole, 7) == (28, 1)
    assert compilations(made().whole, 7) == (28, 1)


@pytest.fixture
def without_home(monkeypatch):
    """As for a user ID without an entry in the password file."""

    def missing(_):
        raise KeyError("uid not found")

    def apply():
        for name in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(pwd, "getpwuid", missing)

    return apply


def test_a_user_without_a_home_compiles_in_each_process(made, without_home):
    without_home()
    assert compiling.code_folder() is None
    function = made().whole
    folders = []
    with compiling.on_compile(folders.append):
        assert compilations(function, 7) == (28, 1)
    assert set(folders) == {None}
    assert not function.is_cached()


def test_a_cache_folder_that_cannot_be_read_is_no_error(made, tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    (closed / "compiled").mkdir(parents=True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(closed / "compiled"))
    closed.chmod(0)
    try:
        with without_privileges():
            assert compilations(made().whole, 7) == (28, 1)
    finally:
        closed.chmod(0o700)


def test_the_folder_of_other_functions_stays_as_it_was(made):
    from numba import config

    made().whole(7)
    assert os.environ["NUMBA_CACHE_DIR"] == config.CACHE_DIR


@pytest.mark.slow
def test_threads_that_call_a_function_first_share_what_compiles_it():
    script = """
import threading
from klsa_search.core.compiling import compiled
double = compiled(eval("lambda number: 2 * number"))
barrier, found = threading.Barrier(8), []
def call():
    barrier.wait()
    found.append((double.dispatcher, double(21)))
threads = [threading.Thread(target=call) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(len(set(found)), len(found), found[0][1], len(double.dispatcher.signatures))
"""
    assert printed(script) == ["1 8 42 1"]


def test_compiling_holds_no_arrays_of_the_caller():
    class Large:
        pass

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


SLOW = """
import sys
from klsa_search.core.compiling import compiled, run_as_child

@compiled
def double(number):
    return 2 * number

if __name__ == "__main__":
    if sys.argv[1:] == ["fail"]:
        sys.exit(3)
    with run_as_child():
        import slow
        slow.double(4)
"""
SCRIPT = """
import sys, time
from klsa_search.core.compiling import compile_in_child, missing_functions
from klsa_search.core.compiling import not_compiled, wait_until_compiled
import slow
compile_in_child("slow", *sys.argv[1:])
"""
WATCHING = """
print(not_compiled(slow.double), missing_functions())
end = time.monotonic() + 300
while missing_functions()[0] and missing_functions()[1] is None and time.monotonic() < end:
    time.sleep(0.05)
print(not_compiled(slow.double), missing_functions())
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    environment = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(klsa_search.__file__).parents[1])]),
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
    }

    def run(script, *arguments):
        return printed(f"import sys; sys.argv[1:] = {list(arguments)}\n{script}", **environment)

    return run


@pytest.mark.slow
def test_what_is_missed_is_compiled_in_a_child_and_found_there(run):
    assert run(SCRIPT + WATCHING) == ["True (['double'], None)", "False ([], None)"]
    assert run(SCRIPT + WATCHING) == ["False ([], None)", "False ([], None)"]


@pytest.mark.slow
def test_where_the_child_fails_numpy_goes_on(run):
    before, after = run(SCRIPT + WATCHING, "fail")
    assert before == "True (['double'], None)"
    assert after.startswith("True (['double'], ")
    assert "status 3" in after


@pytest.mark.slow
def test_what_numpy_cannot_do_waits_until_it_is_there_or_will_not_come(run):
    script = SCRIPT + (
        "wait_until_compiled(slow.double)\nprint(not_compiled(slow.double), missing_functions()[0])"
    )
    assert run(script, "fail") == ["True ['double']"]
    assert run(script) == ["False []"]


def test_nothing_waits_or_starts_a_process_unless_a_command_says_so():
    function = compiled(lambda number: number)
    assert not not_compiled(function)
    wait_until_compiled(function)
    assert missing_functions() == ([], None)


@pytest.mark.slow
def test_the_child_ends_with_its_parent(tmp_path):
    code = """
import time
from klsa_search.core.compiling import run_as_child
with run_as_child():
    print(1, flush=True)
    time.sleep(300)
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout.readline()
        process.stdin.close()
        assert process.wait(300) == 1


@pytest.mark.slow
def test_a_parent_that_ends_early_leaves_nothing_behind(tmp_path):
    temporary, kept = tmp_path / "temporary", tmp_path / "kept"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "NUMBA_CACHE_DIR": str(kept)}
    command = [sys.executable, "-m", "klsa_search.cli.compile_child"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
        wait_until(lambda: any(temporary.iterdir()) and kept.exists())
        process.stdin.close()
        assert process.wait(300) == 1
    assert list(temporary.iterdir()) == []
