"""Logs on network file systems: no writes, and reads only without other writers."""

import sqlite3
from contextlib import closing

import pytest

from klsa_search.collection import Document
from klsa_search.errors import StoreError, WritingRefused
from klsa_search.storage import database
from klsa_search.storage.database import kind_of_file_system, network_file_system
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter

MOUNTS = r"""
22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw
60 22 0:52 / /data rw,relatime - nfs4 server:/export rw,vers=4.2
61 60 259:2 / /data/local\040disk rw,relatime shared:7 master:2 - xfs /dev/sdb1 rw
62 22 0:53 / /home rw - autofs systemd-1 rw
63 62 0:54 / /home rw - fuse.sshfs me@host: rw
a line of something else
""".strip()


@pytest.fixture(autouse=True)
def _no_kind_is_remembered():
    kind_of_file_system.cache_clear()
    yield
    kind_of_file_system.cache_clear()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/database/x", "ext4"),
        ("/data", "nfs4"),
        ("/data/index/cars", "nfs4"),
        ("/data/local disk/cars", "xfs"),
        ("/home/me", "fuse.sshfs"),
    ],
)
def test_the_deepest_and_last_mount_counts(path, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(database, "MOUNTS", tmp_path / "mountinfo")
    database.MOUNTS.write_text(MOUNTS)
    assert kind_of_file_system(path, 1) == kind


def test_without_a_list_of_mounts_nothing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "MOUNTS", tmp_path / "none")
    assert network_file_system(tmp_path) is None


def test_a_log_on_a_network_file_system(tmp_path, monkeypatch):
    (tmp_path / "000001").mkdir()
    log = WriteLog(tmp_path / "000001")
    with LogWriter(log.path.parent) as writer:
        last = writer.append([Document(id="a", text="one")])
    monkeypatch.setattr(database, "network_file_system", lambda path: "nfs4")
    with LogWriter(log.path.parent) as writer:
        for write in (lambda: writer.append(deletes=["a"]), writer.undo):
            with pytest.raises(WritingRefused, match=r"network file system \(nfs4\)"):
                write()
    assert log.last() == last
    assert [row.id for row in log.rows()] == ["a"]
    assert not list(log.path.parent.glob("WRITES-shm"))
    monkeypatch.undo()
    with closing(sqlite3.connect(log.path)), LogWriter(log.path.parent) as writer:
        writer.append(deletes=["a"])
        monkeypatch.setattr(database, "network_file_system", lambda path: "nfs4")
        with pytest.raises(StoreError, match="another machine is writing"):
            log.last()
