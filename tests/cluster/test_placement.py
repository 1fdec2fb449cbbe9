"""Placement of partition processes by Ray."""

from collections import Counter

import pytest

from klsa_search.cluster.ray import machines_of, placements


def node(name, alive=True, **resources):
    return {"NodeID": name, "Alive": alive, "Resources": resources}


def test_partitions_are_where_processors_are():
    nodes = [node("head"), node("b", CPU=4.0), node("a", CPU=1.0), node("gone", False, CPU=8.0)]
    assert machines_of(nodes) == ["a", "b"]
    assert machines_of([node("head"), node("front", CPU=0.0)]) == ["front", "head"]


@pytest.mark.parametrize("machines", [1, 2, 3, 5])
@pytest.mark.parametrize(("partitions", "replicas"), [(1, 1), (4, 2), (7, 3)])
def test_a_partition_outlives_a_machine(partitions, replicas, machines):
    names = [f"m{each}" for each in range(machines)]
    rows = placements(partitions, replicas, names)
    assert [len(row) for row in rows] == [replicas] * partitions
    assert all(len(set(row)) == min(replicas, machines) for row in rows)
    counts = Counter(each for row in rows for each in row)
    assert max(counts.values()) - min(counts.get(each, 0) for each in names) <= replicas
