"""Failures of the index directory: a full disk lasts until there is room, others until a write."""

import errno
import os
import sqlite3
from types import SimpleNamespace

import pytest

from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.service.admission import Writes
from klsa_search.service.metrics import Metrics
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.write_failures import WriteFailures
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.processes import run_python

METRIC = 'klsa_index_writes_failing{{index=""}} {}.0'


@pytest.fixture
def metrics():
    return Metrics(
        SimpleNamespace(jobs=None, replications=(), pools={}, rates=None, recorder=None, watches=())
    )


@pytest.fixture
def failures(metrics, tmp_path):
    return WriteFailures(metrics, tmp_path)


def raised(error, cause):
    """An error with a cause, as `raise error from cause` makes it."""
    error.__cause__ = cause
    return error


def full_catalog():
    """The error of SQLite for a database that cannot grow."""
    with sqlite3.connect(":memory:") as connection:
        connection.execute("pragma max_page_count = 1")
        try:
            connection.execute("create table one (value)")
        except sqlite3.OperationalError as error:
            return error


FULL = (
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    raised(StoreError("cannot use it; free space"), OSError(errno.ENOSPC, "No space left")),
    raised(StoreError("cannot use it; free space"), full_catalog()),
)
OTHER = (
    IndexDamaged("catalog.db is damaged"),
    OSError(errno.EIO, "Input/output error"),
    PermissionError(errno.EACCES, "Permission denied"),
    raised(StoreError("cannot use it"), sqlite3.OperationalError("disk I/O error")),
)


@pytest.mark.parametrize("failure", FULL, ids=repr)
def test_a_full_disk_lasts_until_there_is_room(failures, metrics, failure, tmp_path, caplog):
    failures.failed("", failure)
    assert METRIC.format(1) in metrics.exposition([], "")[0].decode()
    assert failures.failing() == set()
    assert METRIC.format(0) in metrics.exposition([], "")[0].decode()
    assert caplog.messages[-1] == "writes to the index directory work again"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", OTHER, ids=repr)
def test_other_failures_last_until_a_write_succeeds(failures, metrics, failure, caplog):
    failures.failed("", failure)
    assert failures.failing() == {""}
    assert METRIC.format(1) in metrics.exposition([], "")[0].decode()
    assert len(caplog.messages) == 1
    failures.succeeded("")
    assert failures.failing() == set()


def test_the_last_failure_counts(failures):
    failures.failed("", FULL[0])
    failures.failed("", OTHER[0])
    assert failures.failing() == {""}


def test_an_index_on_a_full_disk_lasts_until_a_write_succeeds(failures):
    failures.failed("first", FULL[0])
    assert failures.failing() == {"first"}


def test_room_that_a_sync_denies_is_none(failures, monkeypatch, tmp_path):
    def fsync(_):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    failures.failed("", FULL[0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        assert failures.failing() == {""}
    assert list(tmp_path.iterdir()) == []
    assert failures.failing() == set()


def test_a_creation_counts_as_failing_until_there_is_room(home, monkeypatch):
    def no_room(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with OpenIndexes(home, interval=0) as open_indexes:
        client = AppClient(
            app_of_indexes(open_indexes, writes=Writes()), raise_server_exceptions=False
        )
        monkeypatch.setattr("klsa_search.service.routes.indexes.build", no_room)
        monkeypatch.setattr("klsa_search.service.write_failures.write_fresh", no_room)
        assert client.post("/indexes", json={"name": "third"}).status_code == 503
        assert METRIC.format(1) in client.get("/metrics").text
        assert client.get("/health").json()["degraded"]
        monkeypatch.undo()
        assert not client.get("/health").json()["degraded"]
        assert METRIC.format(0) in client.get("/metrics").text


PROCESSES = """
import os, sys
from pathlib import Path
from klsa_search.service.metrics import Metrics
from klsa_search.service.write_failures import WriteFailures

failures = WriteFailures(Metrics(None), Path(sys.argv[1]))
for code in map(int, sys.argv[2:]):
    if not os.fork():
        failures.failed("", OSError(code, "of another process"))
        os._exit(0)
    os.wait()
    print(failures.failing())
"""


@pytest.mark.slow
def test_another_process_tells_a_full_disk_from_other_failures(tmp_path):
    folder = tmp_path / "metrics"
    folder.mkdir()
    codes = map(str, (errno.ENOSPC, errno.EIO))
    done = run_python(
        PROCESSES,
        str(tmp_path),
        *codes,
        env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder)},
        check=True,
    )
    assert done.stdout == f"{set()}\n{{''}}\n"
