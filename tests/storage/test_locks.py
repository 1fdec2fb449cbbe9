"""Locks exclude other threads and processes."""

import errno
import os
import subprocess
import sys

import pytest
from filelock import FileLock

from klsa_search.errors import IndexBusy, StoreError
from klsa_search.storage.files import exclusive_lock
from klsa_search.storage.generations import new_generation
from klsa_search.storage.maintenance import delete_index, rollback

from .worlds import write

HOLD = """
import sys, time
from pathlib import Path
from klsa_search.storage.files import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
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
    with pytest.raises(StoreError) as told, exclusive_lock(lock):
        pass
    return told.value.message


def test_the_second_is_refused(lock):
    with holding(lock) as child:
        message = refused(lock)
        child.stdin.close()
    assert message == (
        f"index `{lock.parent}` is being changed by another process or thread; wait for it to "
        "finish, then try again"
    )
    with exclusive_lock(lock):
        assert "by another process or thread" in refused(lock)
    assert os.listdir(lock.parent) == ["LOCK"]


def test_no_two_change_an_index(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    with new_generation(path):
        for change in (rollback, delete_index):
            with pytest.raises(IndexBusy):
                change(path)


def test_a_killed_holder_holds_nothing(lock):
    with holding(lock) as child:
        child.kill()
    with exclusive_lock(lock):
        assert "by another process or thread" in refused(lock)


def test_remains_of_a_killed_first_build_are_not_in_use(tmp_path):
    path = tmp_path / "a"
    path.mkdir()
    with holding(path / "LOCK") as child:
        child.kill()
    write(path, "one")
    delete_index(path)
    assert not path.exists()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_lock_that_cannot_be_opened_is_an_error(lock, monkeypatch, number):
    """As where the folder is mounted read-only."""

    def acquire(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(FileLock, "acquire", acquire)
    assert refused(lock).startswith(
        f"{lock} cannot be opened to change the index ({os.strerror(number)}); check "
    )
