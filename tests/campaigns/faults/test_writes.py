"""Acknowledged writes survive any fault of a writer, and no others appear."""

import pytest

from benchmarks.faults import (
    disk,
    failing_calls,
    followers,
    partition_kills,
    write_damage,
    write_kills,
    write_readers,
)
from benchmarks.faults.written import Model, Seen, fresh, wrong

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("killed", [{"writers": 9}, {"refitters": 8}, {"builders": 8}], ids=str)
def test_killed_at_random(folder, survived, killed):
    survived(write_kills.run(folder, **{"writers": 0, "refitters": 0, "builders": 0, **killed}))


def test_a_leader_and_a_follower_killed_at_random(folder, survived):
    survived(followers.run(folder, leaders=1, followers=1))


def test_readers_meanwhile(folder, survived):
    survived(write_readers.run(folder, seconds=8))


def test_a_damaged_file(folder, survived):
    survived(write_damage.run(folder, times=1, every=30))


@pytest.mark.skipif(not failing_calls.can_fail(), reason="needs a C compiler and Linux")
def test_a_system_call_that_fails(folder, survived):
    survived(failing_calls.run(folder, every=20, changes=("add", "refit")))


def test_lost_restored_and_wrong_documents_are_noticed():
    held = {"a": "w0 w5", "b": "w0 late"}
    model = Model(dict(held))
    model.do("add", {"a": "w1"})
    assert list(model.documents) == ["b", "a"]
    model.do("undo", None)
    assert list(model.documents) == ["a", "b"]
    right = Seen("000001", 0, held, fresh(held), {"a"})
    assert wrong(right, model.documents) is None
    assert "risen ['b']" in wrong(right, {"a": "w0 w5"})
    assert "lost ['c']" in wrong(right, {**held, "c": ""})
    assert "changed ['a']" in wrong(right, {"a": "w0", "b": "w0 late"})
    another = Seen("000001", 0, held, fresh({"a": "w0 w5", "b": "late"}), {"a"})
    assert wrong(another, held) == "BM25 is not that of a fresh build"
    assert "'c'" in wrong(Seen("000001", 0, held, fresh(held), {"c"}), held)


@pytest.mark.parametrize("change", disk.CHANGES, ids=lambda change: change.name)
def test_a_disk_that_is_full_and_what_is_not_allowed(folder, survived, change):
    survived(disk.run(folder, changes=(change,), step=10))


@pytest.mark.parametrize("killed", ["builds", "writes", "refits", "splits", "settings"])
def test_an_index_in_partitions_killed_at_random(folder, survived, killed):
    none = dict.fromkeys(["builds", "writes", "refits", "splits", "settings"], 0)
    survived(partition_kills.run(folder, **{**none, killed: 3}))
