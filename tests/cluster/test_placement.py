"""Placement of partition processes by Ray."""

import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from klsa_search.cluster import ray
from klsa_search.cluster.ray import machines_of, placements
from klsa_search.errors import ClusterFailed


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


@pytest.fixture
def _ray(monkeypatch):
    """As if Ray were installed, which is not reached."""
    monkeypatch.setattr(ray, "require", lambda extra: None)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("head:6379", ("head", 6379)),
        ("ray://10.0.0.1:10001", ("10.0.0.1", 10001)),
        ("[::1]:6379", ("::1", 6379)),
        ("ray://[fe80::1]:10001", ("fe80::1", 10001)),
    ],
)
@pytest.mark.usefixtures("_ray")
def test_the_head_of_a_cluster_is_called_at_its_address(monkeypatch, address, place):
    called = []

    def refuse(place, timeout):
        called.append(place)
        raise ConnectionRefusedError("nothing listens")

    monkeypatch.setattr(ray.socket, "create_connection", refuse)
    with pytest.raises(ClusterFailed, match="nothing listens"):
        ray.connect(address)
    assert called == [place]


@pytest.mark.parametrize("address", ["head:70000", "[::1:6379"])
@pytest.mark.usefixtures("_ray")
def test_an_address_that_no_machine_has_is_refused(address):
    with pytest.raises(ClusterFailed, match="no cluster at"):
        ray.connect(address)
