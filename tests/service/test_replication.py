"""Backups by a service, and services that follow them."""

import os
import shutil
import signal
import sys

import pytest

from klsa_search import open_index
from klsa_search.core.child_processes import command_of
from klsa_search.errors import SettingsError, StoreError
from klsa_search.service.application import CHILD
from klsa_search.service.background import Replication
from klsa_search.service.jobs import Jobs
from klsa_search.service.settings import read_settings
from klsa_search.storage.backup import back_up
from klsa_search.storage.repository import Repository, read_state
from klsa_search.storage.restore import follow
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import wait_until

WRITES_ITS_ID = """
import os, pathlib, sys
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
print(flush=True)
sys.stdin.read()
"""


@pytest.fixture
def replication_of(tmp_path):
    opened = []

    def replication(work, *command, home=tmp_path):
        opened.append(Replication(work, home, command))
        return opened[-1]

    yield replication
    for each in opened:
        each.close()


def test_each_attempt_is_reported_and_the_child_is_started_again(replication_of):
    program = "print(); print('the disk is full', flush=True)"
    backups = replication_of("backup", sys.executable, "-c", program)
    for _ in range(2):
        backups.wait_for_attempt()
        with pytest.raises(StoreError, match="the disk is full"):
            backups.wait_for_attempt()
        with pytest.raises(StoreError, match="ended with status"):
            backups.wait_for_attempt()


def test_one_process_of_a_service_does_it(replication_of, tmp_path):
    first, second = (
        replication_of("backup", sys.executable, "-c", WRITES_ITS_ID, str(tmp_path / name))
        for name in ("first", "second")
    )
    first.wait_for_attempt()
    second.wait_for_attempt()
    assert not (tmp_path / "second").exists()
    first.close()
    first.wait_for_attempt()  # it is closed
    _, status = os.waitpid(int((tmp_path / "first").read_text()), 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_a_follower_serves_what_was_backed_up(tiny_home, tmp_path, replication_of, indexes_of):
    home, kept, own = (tmp_path / name for name in ("leader", "kept", "own"))
    shutil.copytree(tiny_home, home)
    own.mkdir()
    repository = Repository(str(kept))
    back_up(repository, home)
    follow = command_of(
        CHILD, "replicate", "follow", str(kept), "--home", str(own), "--every", "0.1"
    )
    following = replication_of("follow", *follow, home=own)
    open_indexes = indexes_of(own)
    with AppClient(app_of_indexes(open_indexes, replications=[following])) as client:
        assert client.get("/indexes").json()["follow"]["number"] is None

        def number():
            following.wait_for_attempt()
            return client.get("/indexes").json()["follow"]["number"]

        wait_until(lambda: number() == 1)
        assert [each["name"] for each in client.get("/indexes").json()["indexes"]] == ["tiny"]
        with open_index(home / "tiny") as index:
            index.add([{"id": "new", "text": "A zeppelin"}])
        back_up(repository, home)
        wait_until(lambda: number() == 2)
        hits = client.get("/search?q=zeppelin").json()["hits"]
        assert [hit["id"] for hit in hits] == ["new"]
        health = client.get("/health").json()
        assert health["follow"]["newest"] == 2
        assert health["follow"]["seconds"] >= 0
        assert health["follow"]["directory"] == read_state(home, "backup").directory
        assert health["follow"]["ignored"] is None
        assert health["backup"] is None
        metrics = client.get("/metrics").text
        assert "klsa_follower_number 2.0" in metrics
        assert "klsa_follower_lag_seconds " in metrics
        refused = client.post("/indexes/tiny/documents", json=[{"id": "x"}])
        assert refused.json()["error"]["code"] == "writing_refused"
        shutil.move(kept, tmp_path / "away")
        with pytest.raises(StoreError, match="no backup at"):
            wait_until(lambda: number() == 3)
        assert client.get("/search?q=zeppelin").json()["hits"]


def test_a_service_backs_up_at_intervals(tiny_home, tmp_path, replication_of, indexes_of):
    home, kept = tmp_path / "home", tmp_path / "kept"
    shutil.copytree(tiny_home, home)
    options = ("--home", str(home), "--every", "0.1", "--keep", "2")
    backups = replication_of(
        "backup", *command_of(CHILD, "replicate", "backup", str(kept), *options), home=home
    )
    for _ in range(2):
        backups.wait_for_attempt()
    with AppClient(app_of_indexes(indexes_of(home), replications=[backups])) as client:
        assert client.get("/health").json()["backup"]["number"] >= 2
        assert "klsa_backup_number " in client.get("/metrics").text


def test_metrics_report_that_there_is_no_backup_yet(tiny_home, tmp_path, indexes_of):
    backups = Replication("backup", tmp_path, [])
    with AppClient(app_of_indexes(indexes_of(tiny_home), replications=[backups])) as client:
        assert "klsa_backup_timestamp_seconds 0.0" in client.get("/metrics").text


def test_a_follower_that_takes_over_follows_no_more(tiny_home, tmp_path):
    home = shutil.copytree(tiny_home, tmp_path / "home")
    repository, own = Repository(str(tmp_path / "kept")), tmp_path / "follower"
    back_up(repository, home)
    follow(repository, own)
    back_up(repository, own, take_over=True)
    assert read_state(own, "follow") is None
    with pytest.raises(StoreError, match="empty index directory"):
        follow(repository, own)


def test_a_catalogue_that_cannot_be_read_is_named(tiny_home, tmp_path, indexes_of):
    home = shutil.copytree(tiny_home, tmp_path / "home")
    open_indexes = indexes_of(home)
    (home / "catalog.db").write_text("[")
    jobs = Jobs(open_indexes, [], share=None)
    app = app_of_indexes(open_indexes, jobs=jobs, replications=[Replication("backup", home, [])])
    with AppClient(app) as client:
        health = client.get("/health")
        assert (health.status_code, health.json()["refits"]) == (200, {})
        assert all("catalog.db" in fault for fault in health.json()["faults"])
        assert "klsa_backup_number 0.0" in client.get("/metrics").text
        assert client.get("/indexes").status_code == 200


def test_a_follower_is_read_only():
    assert read_settings({"follow": "kept"}).writable is False
    with pytest.raises(SettingsError, match="read-only"):
        read_settings({"follow": "kept", "writable": True})
