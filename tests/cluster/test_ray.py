"""A cluster of local Ray processes."""

import os
import shutil
import signal
from functools import partial
from pathlib import Path

import pytest

from klsa_search import build
from klsa_search.cluster.calls import PartitionTally
from klsa_search.cluster.remote import open_cluster_index
from klsa_search.errors import ClusterFailed, SettingsError
from klsa_search.storage.backup import back_up
from klsa_search.storage.repository import Repository
from klsa_search.storage.restore import follow
from tests.support.waiting import wait_until
from tests.support.worlds import TOPIC_QUERIES, topic_records

pytest.importorskip("ray", reason="ray is not installed: pip install 'klsa-search[cluster]'")
pytestmark = [pytest.mark.external, pytest.mark.xdist_group("ray")]

PROCESSES = 2


@pytest.fixture(scope="module")
def cluster():
    from klsa_search.cluster import ray

    ray.connect("local", PROCESSES)
    yield ray
    ray.leave()


@pytest.fixture
def processes(cluster, monkeypatch):
    """Return a function that returns the process IDs of the replicas that started last."""
    started, start = [], cluster.RayCluster.replicas
    monkeypatch.setattr(
        cluster.RayCluster, "replicas", lambda *given: started.append(start(*given)) or started[-1]
    )
    return lambda: started[-1].processes()


def die_once(mark):
    """Die the first time."""
    if not os.path.exists(mark):
        open(mark, "x").close()
        os.kill(os.getpid(), signal.SIGKILL)


def refuse(_):
    raise SettingsError("no: 1", field="first")


def test_tasks_outlive_their_processes(cluster, tmp_path):
    marks = [str(tmp_path / name) for name in "ab"]
    assert sorted(cluster.run_tasks("local", die_once, marks)) == [0, 1]
    with pytest.raises(SettingsError, match="no: 1") as raised:
        list(cluster.run_tasks("local", refuse, [1]))
    assert raised.value.field == "first"


def test_partitions_answer_and_come_back(cluster, processes, tmp_path):
    tasks = partial(cluster.run_tasks, "local")
    here = build(topic_records(90), name="here", home=tmp_path, partitions=2, workers=1)
    build(topic_records(90), name="there", home=tmp_path, partitions=2, workers=tasks).close()
    with open_cluster_index(tmp_path / "there", cluster.RayCluster("local")) as there:
        for index in (here, there):
            index.add(topic_records(9, 2, 500))
        for query in TOPIC_QUERIES:
            for options in ({}, {"ranker": "bm25"}, {"filter": "year > 2010", "facets": ["year"]}):
                one, many = here.search(query, **options), there.search(query, **options)
                assert (many.hits, many.total, many.facets) == (one.hits, one.total, one.facets)
        (_, (process,)) = processes()
        os.kill(process, signal.SIGKILL)

        def is_whole():
            with PartitionTally(partial=True) as tally:
                there.search(TOPIC_QUERIES[0])
            return not tally.failed

        wait_until(is_whole)
        assert there.search(TOPIC_QUERIES[0]).hits == here.search(TOPIC_QUERIES[0]).hits
        there.add(topic_records(1, 3, 900))
        assert there.document("d900")
    here.close()


def test_a_lost_partition_comes_back_from_its_backup(cluster, processes, tmp_path):
    kept, home = str(tmp_path / "kept"), tmp_path / "follower"
    here = build(topic_records(90), name="notes", home=tmp_path / "own", partitions=2, workers=1)
    here.add(topic_records(9, 2, 500))
    back_up(Repository(kept), tmp_path / "own")
    follow(Repository(kept), home)
    with open_cluster_index(home / "notes", cluster.RayCluster("local", follow=kept)) as there:
        (_, (process,)) = processes()
        shutil.rmtree(home / "notes" / "000001-1")
        os.kill(process, signal.SIGKILL)

        def is_whole():
            with PartitionTally(partial=True) as tally:
                there.search(TOPIC_QUERIES[0])
            return not tally.failed

        wait_until(is_whole)
        for query in TOPIC_QUERIES:
            assert there.search(query).hits == here.search(query).hits
    here.close()


def test_partitions_that_do_not_open_are_an_error(cluster, tmp_path):
    build(topic_records(20), name="notes", home=tmp_path, partitions=2, workers=1).close()
    (next((tmp_path / "notes").glob("*-1/*/expansion_rows.npy"))).write_bytes(b"")
    with pytest.raises(ClusterFailed, match=r"do not start .*expansion_rows"):
        open_cluster_index(tmp_path / "notes", cluster.RayCluster("local"))


def test_a_local_cluster_leaves_nothing_behind(cluster):
    import ray

    folder = Path(ray.get_runtime_context().get_temp_dir())
    assert list(folder.glob("session_*"))
    cluster.leave()
    assert not folder.exists()
    cluster.connect("local", PROCESSES)


def test_signal_while_partitions_start_reaches_the_earlier_handler(cluster):
    cluster.leave()
    heard = []
    former = signal.signal(signal.SIGTERM, lambda *_: heard.append(True))
    try:
        cluster.connect("local", PROCESSES)
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: heard)
    finally:
        signal.signal(signal.SIGTERM, former)


@pytest.mark.parametrize("address", ["{}", "ray://{}"])
def test_an_unreachable_cluster_is_reported(cluster, refusing_port, address):
    cluster.leave()
    address = address.format(f"127.0.0.1:{refusing_port}")
    with pytest.raises(ClusterFailed, match=f"no cluster at `{address}`"):
        cluster.connect(address)
    cluster.connect("local", PROCESSES)
