"""A lock excludes others, and its error names the holder."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys

import pytest
from filelock import FileLock

from klsa_search.errors import StoreError
from klsa_search.store.generations import new_generation
from klsa_search.store.holding import held
from klsa_search.store.upkeep import delete_index, rollback

from .worlds import write

HOLD = """
import sys, time
from pathlib import Path
from klsa_search.store.holding import held
with held(Path(sys.argv[1]), "adding documents"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path):
    return tmp_path / "LOCK"


def holding(lock):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "held\n"
    return child


def refused(lock):
    with pytest.raises(StoreError) as told, held(lock, "building"):
        pass
    return told.value.message


def test_the_second_is_told_who_is_first(lock):
    with holding(lock) as child:
        told = refused(lock)
        child.stdin.close()
    wanted = (
        rf".*{re.escape(str(lock.parent))}.* process {child.pid} on "
        rf"{re.escape(socket.gethostname())} \(adding documents, since 20[-\dT:]+\+00:00\); .*"
    )
    assert re.fullmatch(wanted, told)
    with held(lock, "building"):
        assert f"process {os.getpid()} " in refused(lock)
    assert os.listdir(lock.parent) == ["LOCK"]


def test_every_change_of_an_index_tells_what_it_is(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    with new_generation(path):
        for change in (rollback, delete_index):
            with pytest.raises(StoreError, match=rf"process {os.getpid()} on .* \(building, since"):
                change(path)


def test_a_killed_holder_holds_nothing(lock):
    with holding(lock) as child:
        child.kill()
    with held(lock, "building"):
        assert f"process {os.getpid()} " in refused(lock)


@pytest.mark.parametrize("facts", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1}', "\ud800"])
def test_facts_that_are_none_name_nobody(lock, facts):
    with held(lock, "building"):
        (lock.parent / "LOCK-holder").write_text(facts, errors="surrogatepass")
        assert "by another process" in refused(lock)


def test_what_a_killed_first_build_leaves_is_no_users(tmp_path):
    path = tmp_path / "a"
    path.mkdir()
    with holding(path / "LOCK") as child:
        child.kill()
    write(path, "one")
    assert not (path / "LOCK-holder").exists()


def test_a_full_disk_is_no_reason_not_to_hold_it(lock, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("klsa_search.store.holding.os.write", full)
    with held(lock, "deleting"):
        assert "by another process" in refused(lock)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_lock_that_cannot_be_opened_is_told(lock, monkeypatch, number):
    """As where the folder is mounted read-only."""

    def acquire(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(FileLock, "acquire", acquire)
    assert refused(lock).startswith(
        f"{lock} cannot be opened to change the index ({os.strerror(number)}): check "
    )
