"""After a kill at any file event or moment, the index is the old or the new one, complete."""

from __future__ import annotations

import pytest

from benchmarks.faults import builders, kills, partition_kills, random_kills

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("operation", kills.OPERATIONS, ids=lambda operation: operation.name)
def test_killed_before_a_file_event(folder, survived, operation):
    survived(kills.run(folder, operations=(operation,), functions=("gvsm",), every=3))


def test_killed_at_random_under_a_reader(folder, survived):
    survived(random_kills.run(folder, builds=12, functions=("gvsm",)))


@pytest.mark.parametrize("one", builders.ONE)
def test_two_at_once(folder, survived, one):
    survived(builders.run(folder, one=(one,), every=12))


@pytest.mark.parametrize("killed", ["builds", "writes", "refits", "splits", "settings"])
def test_an_index_in_partitions_killed_at_random(folder, survived, killed):
    none = dict.fromkeys(["builds", "writes", "refits", "splits", "settings"], 0)
    survived(partition_kills.run(folder, **{**none, killed: 3}))
