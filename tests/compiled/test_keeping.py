"""Compiled code is used again as long as nothing that went into it has changed, and no longer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import config

import klsa_search
from tests.compiled.made import ANSWER, imported, write
from tests.support.waiting import PATIENCE

STATE = np.array([0, 7, 8], np.int64)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of compiled code."""
    folder = tmp_path / "kept"
    monkeypatch.setattr(config, "CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """The package and its code, compiled once."""
    home = tmp_path_factory.mktemp("warm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "CACHE_DIR", str(home / "kept"))
        write(home)
        assert called(home, patch)[0] == ANSWER
    return home


def called(folder, monkeypatch):
    """What the function gives, and how often it was found and not found among what is kept."""
    whole, pair = imported(folder, monkeypatch)
    answer = whole(STATE, pair(3, 4))
    hits, misses = whole.dispatcher.stats.cache_hits, whole.dispatcher.stats.cache_misses
    return answer, sum(hits.values()), sum(misses.values())


def again(warm, monkeypatch, *changes):
    """Call the function of the warm package with some changes, and undo them on the disk."""
    monkeypatch.setattr(config, "CACHE_DIR", str(warm / "kept"))
    aside = warm.with_name(warm.name + "-kept")
    shutil.copytree(warm / "kept", aside)
    try:
        write(warm, changes)
        return called(warm, monkeypatch)
    finally:
        write(warm)
        shutil.rmtree(warm / "kept")
        aside.rename(warm / "kept")


CHANGES = {
    "a constant of another module": ("constants", "LEVELS = 3", "LEVELS = 5", ANSWER + 14),
    "a slot before another": ("constants", "(A, B)", "(N, A, B)", ANSWER + 3),
    "an inlined function": ("parts", "pair.second", "pair.first", ANSWER - 1_010_000),
    "what an intrinsic's helper reads": ("parts", "ADDED = 100", "ADDED = 200", ANSWER + 100),
    "what an intrinsic writes": ("parts", "builder.add", "builder.sub", ANSWER - 200),
    "a default": ("parts", "times=1", "times=2", ANSWER + 21),
    "the order of fields": (
        "parts", "first: int\n    second: int", "second: int\n    first: int", ANSWER - 1_010_000,
    ),
    "a number of NumPy's": ("parts", "np.float32(0.5)", "np.float64(0.7)", ANSWER + 2),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_anything_compiled_in_is_compiled_anew(change, warm, monkeypatch):
    module, old, new, answer = CHANGES[change]
    changes = [(module, old, new)]
    if "slot" in change:
        changes.append((module, "range(2)", "range(3)"))
    assert again(warm, monkeypatch, *changes) == (answer, 0, 1)


def test_without_a_change_nothing_is_compiled(warm, monkeypatch):
    assert again(warm, monkeypatch) == (ANSWER, 1, 0)


def test_comments_docstrings_and_lines_are_no_part_of_code(warm, monkeypatch):
    changes = [
        ("whole", "# Each part", "# Every part"),
        ("whole", "Ten thousand", "Ten\n\n    thousand"),
        ("parts", "\n@inlined", "\n\n# Of two.\n@inlined"),
    ]
    assert again(warm, monkeypatch, *changes) == (ANSWER, 1, 0)


def test_code_of_a_former_version_is_removed(tmp_path, kept, monkeypatch):
    def files():
        return sorted(path.name for path in kept.rglob("*whole*"))

    write(tmp_path)
    called(tmp_path, monkeypatch)
    first = files()
    write(tmp_path, [("constants", "LEVELS = 3", "LEVELS = 4")])
    assert called(tmp_path, monkeypatch)[0] == ANSWER + 7
    assert len(first) == len(files()) == 1
    assert first != files()


def test_damaged_code_is_compiled_anew(tmp_path, kept, monkeypatch):
    write(tmp_path)
    called(tmp_path, monkeypatch)
    (whole,) = kept.rglob("*whole*")
    raw = bytearray(whole.read_bytes())
    raw[len(raw) // 2] ^= 1
    for damaged in (raw, raw[:-1], b""):
        whole.write_bytes(damaged)
        assert called(tmp_path, monkeypatch) == (ANSWER, 0, 1)
        assert called(tmp_path, monkeypatch) == (ANSWER, 1, 0)


def test_a_folder_that_cannot_be_written_to_is_read(warm, monkeypatch):
    def refused(path, content):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "write_bytes", refused)
    assert again(warm, monkeypatch) == (ANSWER, 1, 0)
    changed = again(warm, monkeypatch, ("constants", "LEVELS = 3", "LEVELS = 5"))
    assert changed == (ANSWER + 14, 0, 1)  # compiled, and not kept


def test_the_folder_that_is_told_of_is_one_that_keeps(tmp_path, kept, monkeypatch):
    """Not one that is only read, as that of another user's installation."""
    write(tmp_path)
    whole, _ = imported(tmp_path, monkeypatch)
    cache = whole.dispatcher._cache
    assert Path(cache.cache_path).parent == kept
    monkeypatch.setattr(os, "access", lambda folder, _: not kept.is_relative_to(folder))
    assert cache.cache_path == str(tmp_path / "made" / "__pycache__")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cache.cache_path is None


@pytest.mark.long
def test_processes_that_compile_at_once_agree(tmp_path, kept, monkeypatch):
    write(tmp_path)
    script = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import numpy as np; from made.whole import whole; from made.parts import Pair
print(whole(np.array([0, 7, 8]), Pair(3, 4)))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kept), "PYTHONDONTWRITEBYTECODE": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            env={**environment, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in "012"
    ]
    assert [process.communicate(timeout=PATIENCE)[0] for process in processes] == [
        f"{ANSWER}\n"
    ] * 3
    assert len(list(kept.rglob("*whole*"))) == 1  # one name for the same, in all of them
    assert called(tmp_path, monkeypatch) == (ANSWER, 1, 0)


@pytest.mark.long
def test_a_field_inserted_into_the_record_of_queries_leaves_no_stale_code(tmp_path):
    package = tmp_path / "klsa_search"
    shutil.copytree(
        Path(klsa_search.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    script = """
import numpy as np
from klsa_search.search.engine import record, terms
from klsa_search.compiled import compiled
@compiled
def asked(records, query, ends):
    return terms.ask(records[0], query, ends)
queries, numbers = np.zeros(1, record.RECORD), np.array([5, 6, 7])
queries["queried"] = numbers.ctypes.data
assert asked(queries, 1, np.array([1, 3]))
assert (queries[0]["count"], *queries[0]["asked"][:3]) == (2, 6, 7, 0)
print(sum(terms.ask.dispatcher.stats.cache_hits.values()), terms.ask.dispatcher.stats.cache_path)
"""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
    }

    def run():
        command = [sys.executable, "-c", script]
        printed = subprocess.check_output(command, env=environment, cwd=tmp_path, timeout=PATIENCE)
        hits, folder = printed.decode().split()
        assert Path(folder).is_relative_to(tmp_path)
        return int(hits)

    assert run() == 0
    record = package / "search" / "engine" / "record.py"
    record.write_text(
        record.read_text().replace('    "terms",  # V', '    "new",\n    "terms",  # V')
    )
    assert run() == 0
