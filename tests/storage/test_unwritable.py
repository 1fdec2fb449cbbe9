"""Full and read-only disks: every write raises the same kind of error."""

import errno
import os
import shutil
from functools import partial

import pytest

from klsa_search import build, open_index
from klsa_search.errors import StoreError
from klsa_search.storage.aliases import set_alias
from klsa_search.storage.files import writable
from klsa_search.storage.maintenance import copy_index, delete_index, rollback
from klsa_search.storage.repair import export

RECORDS = [{"id": "a", "text": "wing"}, {"id": "b", "text": "tail"}]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("unwritable")
    for _ in range(2):
        build(RECORDS, name="one", home=home, replace=True).close()
    set_alias(home, "live", "one")
    return home


@pytest.fixture
def home(built, tmp_path):
    return shutil.copytree(built, tmp_path / "home")


WRITES = {
    "rollback": lambda home: rollback(home / "one"),
    "deletion": lambda home: delete_index(home / "one"),
    "backup": lambda home: copy_index(home / "one", home / "two"),
    "export": lambda home: export([home / "one" / "000002"], home / "out.jsonl"),
    "build": lambda home: build(RECORDS, name="two", home=home),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_the_system_refuses_is_an_error_of_ours(home, monkeypatch, write):
    def refused(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("open", "fsync", "unlink", "rename", "replace", "mkdir"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, partial(_refused_in, home, real, refused))
    with pytest.raises(StoreError, match="Read-only file system"):
        WRITES[write](home)
    monkeypatch.undo()
    with open_index(home / "one") as index:
        assert index.ids() == ["a", "b"]


def _refused_in(home, real, refused, first, *given, **named):
    """Refuse what changes a file of the home, except for locks."""
    reads = real.__name__ == "open" and not given[0] & (os.O_WRONLY | os.O_RDWR)
    path = os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else os.fspath(first)
    if reads or "LOCK" in path or "WRITING" in path or ".lock" in path:
        return real(first, *given, **named)
    return refused() if path.startswith(str(home)) else real(first, *given, **named)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_errors_that_forbid_to_write_are_ours(tmp_path, number):
    with pytest.raises(StoreError, match="cannot use `f`: no; "), writable(tmp_path):
        raise OSError(number, "no", "f")


def test_other_errors_of_the_system_stay_what_they_are(tmp_path):
    with pytest.raises(OSError, match="too many"), writable(tmp_path):
        raise OSError(errno.EMFILE, "too many files")
