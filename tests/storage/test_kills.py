"""A kill at any step leaves the old or the new index complete, and all other files.

Changes of the file system are counted; from a given one on, all of them raise. The disk is then as
a killed process leaves it.
"""

import os
import shutil
from contextlib import contextmanager, suppress

import pytest

from klsa_search.errors import IndexNotFound, StoreError
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import is_index
from klsa_search.storage.generations import new_generation
from klsa_search.storage.maintenance import delete_index, rollback, verify

from .worlds import content, files_below, folders, without_marks, write

CHANGES = ("fsync", "link", "mkdir", "open", "rename", "replace", "rmdir", "unlink")
MINE = {"2023/may.txt": "mine", "000077/x": "mine", "notes.txt": "mine"}


class Killed(BaseException):
    """Nothing handles it, as nothing handles SIGKILL."""


@contextmanager
def dying(monkeypatch, step, *, leaves_empty=False):
    """Let so many changes happen and no more; gives the names of those that were tried.

    leaves_empty  if the next one creates a file, it does, and nothing is written to it
    """
    tried = []

    def counted(name, own):
        def change(*arguments, **options):
            # Reading changes nothing.
            if name == "open" and not arguments[1] & os.O_CREAT:
                return own(*arguments, **options)
            tried.append(name)
            if len(tried) > step:
                if leaves_empty and name == "open" and len(tried) == step + 1:
                    os.close(own(*arguments, **options))
                raise Killed
            return own(*arguments, **options)

        return change

    with monkeypatch.context() as patch:
        for name in CHANGES:
            patch.setattr(os, name, counted(name, getattr(os, name)))
        yield tried


def add_mine(path):
    for name, text in MINE.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    return set(MINE)


def has(path, mine):
    return {name: text for name, text in files_below(path).items() if name in mine} == {
        name: MINE[name] for name in mine
    }


def held(path):
    """What the index serves; None if it serves nothing."""
    try:
        text = content(path)
    except IndexNotFound:
        return None
    verify(path)
    return text


@pytest.fixture(params=["marked", pytest.param("without marks", marks=pytest.mark.slow)])
def prepared(request, tmp_path):
    """A function that copies an index of two generations, with files of the user's in it."""
    original = tmp_path / "original"
    for text in ("one", "two"):
        write(original, text)
    if request.param == "without marks":
        without_marks(original)
    mine = add_mine(original)
    return lambda name: (shutil.copytree(original, tmp_path / name), mine)


def each_step(monkeypatch, prepare, change, allowed):
    """Kill the change at every one of its steps; after each one look, and give the index."""
    for step in range(1000):
        path, mine = prepare(str(step))
        killed = False
        with dying(monkeypatch, step) as tried:
            try:
                change(path)
            except Killed:
                killed = True
        assert has(path, mine), tried
        assert held(path) in allowed, tried
        yield path, mine, tried
        if not killed:
            assert step == len(tried) > 5
            return
    raise AssertionError("it does not end")


def test_a_build_killed_at_any_step(monkeypatch, prepared):
    seen = []
    for path, mine, tried in each_step(
        monkeypatch, prepared, lambda path: write(path, "three"), ("two", "three")
    ):
        seen.append(held(path))
        write(path, "four")
        assert held(path) == "four", tried
        assert has(path, mine)
        assert len({*folders(path)} - {"000077", "2023"}) == 2
        assert not [name for name in os.listdir(path) if name.startswith(".")]
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {"two", "three"}


def test_a_first_build_killed_at_any_step(monkeypatch, tmp_path):
    def prepare(name):
        return tmp_path / "home" / name, set()

    for path, _, tried in each_step(
        monkeypatch, prepare, lambda path: write(path, "one"), (None, "one")
    ):
        write(path, "two")
        assert held(path) == "two", tried
        assert not [name for name in os.listdir(path) if name.startswith(".")]


@pytest.mark.slow
def test_a_failing_build_killed_at_any_step_of_its_cleaning_up(monkeypatch, prepared):
    def failing(path):
        with pytest.raises(RuntimeError), new_generation(path) as generation:
            (generation / "vocabulary.txt").write_text("half")
            raise RuntimeError

    for path, mine, _ in each_step(monkeypatch, prepared, failing, ("two",)):
        write(path, "three")
        assert held(path) == "three"
        assert has(path, mine)


@pytest.mark.slow
def test_a_failing_first_build_killed_at_any_step_of_its_cleaning_up(monkeypatch, tmp_path):
    def failing(path):
        with pytest.raises(RuntimeError), new_generation(path):
            raise RuntimeError

    def prepare(name):
        return tmp_path / name / "home" / "a", set()

    for path, _, tried in each_step(monkeypatch, prepare, failing, (None,)):
        left = list(path.parent.parent.parent.glob(f"{path.parent.parent.name}/*"))
        write(path, "one")
        assert held(path) == "one", tried
    assert left == []  # by the last one, which was not killed


def test_going_back_killed_at_any_step(monkeypatch, prepared):
    for path, mine, tried in each_step(monkeypatch, prepared, rollback, ("one", "two")):
        rollback(path, "000002")
        assert held(path) == "two", tried
        write(path, "three")
        assert held(path) == "three"
        assert has(path, mine)


@pytest.mark.parametrize(
    "finish",
    [
        "delete",
        *(pytest.param(command, marks=pytest.mark.slow) for command in ("build", "rollback")),
    ],
)
def test_a_deletion_killed_at_any_step(monkeypatch, prepared, finish):
    def delete(path):
        assert delete_index(path)  # what is the user's stays, and is named

    for path, mine, tried in each_step(monkeypatch, prepared, delete, (None, "two")):
        assert has(path, mine)
        if not is_index(path):
            continue
        if finish == "delete":
            stay = {entry.name for entry in delete_index(path)}
            assert stay == {name.split("/")[0] for name in mine}, tried
            assert set(files_below(path)) == mine
        elif finish == "build":
            gone = held(path) is None
            write(path, "three")
            assert held(path) == "three", tried
            ours = [name for name in folders(path) if name not in ("000077", "2023")]
            assert len(ours) == (1 if gone else 2), tried
            assert not [name for name in os.listdir(path) if name.startswith(".")]
        elif held(path) is None and (path / "000002").is_dir():
            assert rollback(path).now == "000002"
            assert current_generation(path).name == "000002"
            assert delete_index(path)
            assert set(files_below(path)) == mine
        assert has(path, mine)


@pytest.mark.parametrize(
    "change",
    [
        "build",
        *(pytest.param(command, marks=pytest.mark.slow) for command in ("rollback", "delete")),
    ],
)
def test_a_change_that_fails_once_at_any_step(monkeypatch, prepared, change):
    """A disk that refuses one change: the error comes up, and what is there is whole."""
    work = {
        "build": lambda path: write(path, "three"),
        "rollback": rollback,
        "delete": delete_index,
    }
    for step in range(1000):
        path, mine = prepared(str(step))
        failed = []

        def refusing(name, own, step=step, failed=failed):
            def refused(*arguments, **options):
                failed.append(name)
                if len(failed) == step + 1:
                    raise OSError(5, "Input/output error", str(arguments[0]))
                return own(*arguments, **options)

            return refused

        with monkeypatch.context() as patch:
            for name in set(CHANGES) - {"open"}:
                patch.setattr(os, name, refusing(name, getattr(os, name)))
            with suppress(OSError, StoreError):
                work[change](path)
        assert has(path, mine), failed
        allowed = {"build": ("two", "three"), "rollback": ("one", "two"), "delete": ("two", None)}
        assert held(path) in allowed[change], failed
        if len(failed) <= step:
            return
    raise AssertionError("it does not end")
