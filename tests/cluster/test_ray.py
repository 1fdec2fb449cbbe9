"""The same on a cluster of processes of this machine, which are killed."""

import os
import signal
from functools import partial

import numpy as np
import pytest

from klsa_search.cluster.index import SpreadIndex
from klsa_search.cluster.tally import tallied
from klsa_search.cluster.work import Work
from klsa_search.errors import ClusterFailed, KlsaError, SettingsError, ShardMissing
from klsa_search.indexing import build
from klsa_search.search import open_index
from klsa_search.store import current_generation
from tests.waiting import wait_until

from .test_spread_index import documents, queries

pytest.importorskip("ray", reason="ray is not installed: pip install 'klsa-search[cluster]'")
pytestmark = pytest.mark.xdist_group("ray")

PROCESSES = 2


@pytest.fixture(scope="module")
def cluster():
    from klsa_search.cluster import ray

    ray.connect("local", PROCESSES)
    yield ray
    ray.leave()


def squares(out, first, die=None):
    """Die once, where told to, before the work is done."""
    if die is not None and not os.path.exists(die):
        open(die, "x").close()
        os.kill(os.getpid(), signal.SIGKILL)
    np.save(out / "squares.npy", np.arange(first, first + 3) ** 2)


def refuse(out, first):
    raise SettingsError(f"no: {first}", field="first")


def test_steps_outlive_their_workers(cluster, tmp_path):
    work = Work(tmp_path / "work", cluster.RayWorkers("local"))
    calls = [{"first": 3 * each} for each in range(9)]
    calls[4]["die"] = str(tmp_path / "died")
    made = work.make(squares, *calls)
    assert (tmp_path / "died").exists()
    values = np.concatenate([np.load(each.path / "squares.npy") for each in made])
    assert values.tolist() == [each**2 for each in range(27)]


def test_what_a_step_raises_is_raised(cluster, tmp_path):
    work = Work(tmp_path / "work", cluster.RayWorkers("local"))
    with pytest.raises(SettingsError, match="no: 1") as raised:
        work.one(refuse, first=1)
    assert raised.value.field == "first"


def test_shards_answer_and_come_back(cluster, tmp_path):
    build(documents(400), name="notes", home=tmp_path).close()
    index = open_index(tmp_path / "notes")
    fleet = cluster.RayFleet("local", shards=2)
    with SpreadIndex(index.path, fleet) as spread:
        spread.add(documents(20, seed=4, first=1000))
        index.refresh()
        for query in queries():
            for options in ({}, {"ranker": "bm25"}, {"filter": "part = a"}):
                one, many = index.search(query, **options), spread.search(query, **options)
                assert (many.hits, many.total) == (one.hits, one.total)
        (query, *_) = queries()
        ((_,), (process,)) = spread.replicas.processes()
        os.kill(process, signal.SIGKILL)

        def answers(*, whole):
            with tallied(partial=True) as tally:
                try:
                    spread.search(query)
                except ShardMissing:
                    return False
            return bool(tally.failed) is not whole

        wait_until(partial(answers, whole=True))
        assert spread.search(query).hits == index.search(query).hits


def test_what_cannot_be_opened_there_is_told(cluster, tmp_path):
    build(documents(40), name="notes", home=tmp_path).close()
    generation = current_generation(tmp_path / "notes")
    fleet = cluster.RayFleet("local", shards=1)
    (generation / "cut_rows.npy").write_bytes(b"")
    with pytest.raises(ClusterFailed, match=r"do not start .*cut_rows"):
        fleet.replicas(generation, None)


def test_nobody_there_is_told(cluster):
    cluster.leave()
    with pytest.raises(KlsaError, match=r"no cluster answers at 127\.0\.0\.1:1"):
        cluster.connect("127.0.0.1:1")
    cluster.connect("local", PROCESSES)
