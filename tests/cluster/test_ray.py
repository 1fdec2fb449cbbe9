"""A cluster of local Ray processes that are killed during the tests."""

import json
import os
import signal
import threading
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from klsa_search.cluster.build import build as cluster_build
from klsa_search.cluster.calls import count_shards
from klsa_search.cluster.index import ShardedIndex
from klsa_search.cluster.work import Work
from klsa_search.errors import ClusterFailed, SettingsError, ShardMissing
from klsa_search.indexing.build import build
from klsa_search.search.opening import open_index
from klsa_search.storage.current import current_generation
from tests.support.waiting import PATIENCE, wait_until

from .test_index import documents, queries

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


def workers_of_this_machine():
    """Process numbers of Ray's workers that do a step."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_text().startswith("ray::run_step"):
                yield int(folder.name)
        except OSError:  # it ended
            continue


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_build_outlives_its_workers(cluster, tmp_path):
    source = tmp_path / "documents.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in documents(600)))
    plain = build(source, name="plain", home=tmp_path)
    ended, killed = threading.Event(), []

    def kill():
        while not ended.wait(0.5) and len(killed) < cluster.MAX_RETRIES:
            for process in islice(workers_of_this_machine(), 1):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        workers = cluster.RayWorkers("local")
        spread = cluster_build(source, name="spread", home=tmp_path, workers=workers, shards=2)
    finally:
        ended.set()
        killer.join(PATIENCE)
    assert killed
    assert spread.manifest.files == plain.manifest.files
    assert spread.manifest.fingerprint == plain.manifest.fingerprint


def test_shards_answer_and_come_back(cluster, tmp_path):
    build(documents(400), name="notes", home=tmp_path).close()
    index = open_index(tmp_path / "notes")
    fleet = cluster.RayShardCluster("local", shards=2)
    with ShardedIndex(index.path, fleet) as spread:
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
            with count_shards(partial=True) as tally:
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
    fleet = cluster.RayShardCluster("local", shards=1)
    (generation / "cut_rows.npy").write_bytes(b"")
    with pytest.raises(ClusterFailed, match=r"do not start .*cut_rows"):
        fleet.replicas(generation, None)


def test_a_local_cluster_leaves_nothing_behind(cluster):
    import ray

    folder = Path(ray.get_runtime_context().get_temp_dir())
    assert list(folder.glob("session_*"))
    cluster.leave()
    assert not folder.exists()
    cluster.connect("local", PROCESSES)


def test_a_signal_while_shards_start_is_heard(cluster):
    """By who was told to hear it before the cluster was joined."""
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
def test_nobody_there_is_told(cluster, refusing_port, address):
    cluster.leave()
    address = address.format(f"127.0.0.1:{refusing_port}")
    with pytest.raises(ClusterFailed, match=f"no cluster at `{address}`"):
        cluster.connect(address)
    cluster.connect("local", PROCESSES)
