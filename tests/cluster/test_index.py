"""An index whose partitions are in other hosts: the same results, and honest ones if some fail."""

import pickle
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from klsa_search import build, open_index
from klsa_search.cluster.calls import PartitionTally
from klsa_search.cluster.remote import open_cluster_index
from klsa_search.errors import (
    DocumentNotFound,
    PartitionMissing,
    QueryError,
    StoreError,
)
from klsa_search.indexing import refit
from klsa_search.mining import document_map, related, similar
from klsa_search.search.facet_search import facet_search
from klsa_search.search.models import Models
from klsa_search.search.parts.generation import OpenGeneration
from klsa_search.storage.partitions import partition_of
from klsa_search.storage.write_log import LogPosition, WriteLog
from tests.cluster.local_workers import LocalCluster
from tests.support.waiting import PATIENCE
from tests.support.worlds import TOPIC_QUERIES, topic_records

QUERIES = [*TOPIC_QUERIES, "d7"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    build(topic_records(), name="notes", home=folder, partitions=3, workers=1).close()
    return folder


@pytest.fixture(scope="module")
def here(home):
    with open_index(home / "notes") as index:
        yield index


class World:
    """An index in three hosts, of which some fail in some steps."""

    def __init__(self, path, replicas=1):
        self.failing = set()
        self.cluster = LocalCluster(replicas, self.trouble)
        self.index = open_cluster_index(path, self.cluster)

    @property
    def calls(self):
        return self.cluster.started[-1].calls

    def trouble(self, partition, replica, step):
        for each in self.failing:
            if each in ((partition,), (partition, replica), (partition, step)):
                raise ConnectionError("gone")


@pytest.fixture(scope="module")
def world(home):
    return World(home / "notes")


@pytest.fixture(autouse=True)
def well(world, monkeypatch):
    world.failing.clear()
    monkeypatch.setattr("klsa_search.cluster.calls.TIMEOUT", PATIENCE)


def same(one, other, query, k=20, **options):
    ours, theirs = one.search(query, k, **options), other.search(query, k, **options)
    return (ours.hits, ours.total, ours.facets) == (theirs.hits, theirs.total, theirs.facets)


def test_words_of_other_partitions_weigh_the_same_after_writes(tmp_path, monkeypatch):
    """Hosts exchange what writes change; the counts of the build are in files."""
    monkeypatch.setattr("klsa_search.indexing.partitions.MOST", 10)
    made = [{**each, "text": f"{each['text']} only{n}"} for n, each in enumerate(topic_records(60))]
    build(made, name="notes", home=tmp_path, partitions=3, workers=1).close()
    with open_index(tmp_path / "notes") as here:
        remote = open_cluster_index(tmp_path / "notes", LocalCluster())
        for step in range(3):
            new = topic_records(9, step, 70 + 5 * step)
            remote.add([{**each, "text": f"{each['text']} only{step} later{step}"} for each in new])
            remote.delete([f"d{step}", f"d{step + 71}"])
            here.refresh()
            for query in (*QUERIES, "only1 only7", "only2 later1", "later0 later2 word01"):
                assert same(here, remote, query)
                assert same(here, remote, query, ranker="bm25")


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {}, {"ranker": "bm25"}, {"filter": "year >= 2010", "facets": ["year"]},
    {"sort": ["year:desc"], "offset": 5}, {"highlight": True, "quality": True},
])  # fmt: skip
def test_results_are_those_of_one_process(here, world, options):
    assert all(same(world.index, here, query, k, **options) for query in QUERIES for k in (5, 40))


def test_documents_are_read_where_they_are(here, world):
    assert world.index.document("d7") == here.document("d7")
    assert len(world.index) == len(here)
    assert world.index.ids() == here.ids()
    assert list(world.index.live_documents()) == list(here.live_documents())
    with pytest.raises(DocumentNotFound):
        world.index.document("none")
    with pytest.raises(QueryError, match="nothing"):
        world.index.search("word01", filter="nothing = 1")


@pytest.mark.parametrize("view", [None, "year >= 2010"])
def test_all_documents_can_be_read_by_the_calling_process(home, tmp_path, view):
    """What explores, exports or compares all documents needs them where it is called."""
    path = shutil.copytree(home / "notes", tmp_path / "notes")
    with open_index(path) as here:
        there = open_cluster_index(path, LocalCluster())
        here.add([{"id": "later", "text": "word01 zebra", "year": 2021}])
        here.delete(["d3"])
        assert there.refresh()
        indexes = (
            [here, there] if view is None else [each.restricted(view) for each in (here, there)]
        )
        first, *_ = indexes[0].ids()
        for ours, theirs in [
            [[hit.id for hit in similar(index, first, 5)] for index in indexes],
            [related(index, "word01", 5) for index in indexes],
            [document_map(index).doc_ids.tolist() for index in indexes],
            [b"".join(index.export("word01", limit=9)) for index in indexes],
            [facet_search(index, "year", "20") for index in indexes],
            [(sorted(index.fields), dict(index.fields.unfilterable)) for index in indexes],
        ]:
            assert ours == theirs
        if view is None:
            result = there.sync(topic_records()[2:], max_delete="50%")
            assert (result.added, result.changed) == (("d3",), ())
            assert here.refresh()
            assert here.ids() == there.ids()


def test_files_without_the_writes_of_the_hosts_are_not_read(home, tmp_path, monkeypatch):
    """A machine that follows a repository may have them later than the hosts."""
    path = shutil.copytree(home / "notes", tmp_path / "notes")
    index = open_cluster_index(path, LocalCluster())
    index.add([{"id": "later", "text": "word01 zebra"}])
    monkeypatch.setattr(WriteLog, "last", lambda log: LogPosition())
    with pytest.raises(StoreError, match="lacks writes that the cluster has already read"):
        similar(index, "d7")


def test_few_hits_are_returned_with_the_documents(world):
    del world.calls[:]
    world.index.search("d7", 1)
    assert not [call for call in world.calls if call[2] == "fetch"]


def test_a_partition_without_hits_is_not_called_to_fetch(world):
    del world.calls[:]
    found = world.index.search("word01 word05", 2, offset=30)
    called = {call[0] for call in world.calls if call[2] == "fetch"}
    assert called == {partition_of(hit.id, 3) for hit in found}


@pytest.mark.parametrize("step", ["begin", "collect", "fetch"])
def test_a_missing_partition_is_an_error_or_a_partial_result(here, world, step):
    world.failing.add((1, step))
    with pytest.raises(PartitionMissing, match=r"1 of 3 partitions .* \(partition 1: .*gone"):
        world.index.search("word01 word05", 30)
    with PartitionTally(partial=True) as tally:
        found = world.index.search("word01 word05", 30)
    assert (tally.total, list(tally.failed)) == (3, [1])
    kept = {id_ for number in (0, 2) for id_ in here.partitions[number].ids()}
    assert found.hits
    assert {hit.id for hit in found.hits} <= kept
    world.failing.update({(0, step), (2, step)})
    with PartitionTally(partial=True), pytest.raises(PartitionMissing, match="3 of 3"):
        world.index.search("word01 word05", 30)


@pytest.mark.parametrize("step", ["begin", "collect", "fetch"])
def test_a_host_that_restarts_between_rounds_is_prepared_again(here, world, step, monkeypatch):
    restarted = []

    def restart(partition, replica, now):
        if (partition, now) == (1, step) and not restarted:
            restarted.append(True)
            world.cluster.restart(1)

    monkeypatch.setattr(world.cluster.started[-1], "trouble", restart)
    assert same(world.index, here, "word01 word05", 30)
    assert restarted


def test_another_replica_goes_on_with_the_next_round(home, here):
    world = World(home / "notes", replicas=2)
    for step in ("begin", "collect", "fetch"):
        for query in QUERIES[:2]:
            world.failing = {(1, 0)} if step == "begin" else {(0, 1), (2, 1)}
            assert all(same(world.index, here, query, k) for k in (10, 30))


def test_writes_reach_their_partitions_and_weigh_everywhere(home):
    build(topic_records(90), name="written", home=home, partitions=3, workers=1).close()
    world, path = World(home / "written", replicas=2), home / "written"
    before = world.index.snapshot()
    world.index.add([{"id": "new", "title": "", "text": "zebra word01"}, *topic_records(9, 2, 500)])
    assert not before.search("zebra", spelling="off").hits
    assert world.index.search("zebra").hits[0].id == "new"
    world.index.delete(["d3", "d4"])
    world.index.patch("d7", {"text": "word01 quagga"})
    with open_index(path) as here:
        for query in (*QUERIES, "zebra", "quagga word01"):
            assert same(world.index, here, query)
            assert same(world.index, here, query, ranker="bm25")
        here.add([{"id": "other", "title": "", "text": "okapi word02"}])
        assert world.index.refresh()
        assert not world.index.refresh()
        assert same(world.index, here, "okapi")


def test_a_write_to_a_missing_partition_is_an_error(home):
    build(topic_records(60), name="refused", home=home, partitions=3, workers=1).close()
    world = World(home / "refused")
    world.failing.add((1,))
    with pytest.raises(PartitionMissing):
        world.index.add(topic_records(30, 2, 500))
    world.failing.clear()
    world.index.add(topic_records(30, 2, 500))
    assert len(world.index) == 90


def test_others_are_weighed_while_one_is_missing(home):
    build(topic_records(60), name="weighed", home=home, partitions=3, workers=1).close()
    world = World(home / "weighed")
    with open_index(home / "weighed") as other:
        number = next(n for n in (0, 1, 2) if "d7" not in other.partitions[n].ids())
        world.failing.add((number, "publish"))
        world.index.delete(["d7"])
        other.refresh()
        assert same(world.index, other, "word01 word05")


def test_a_replica_without_the_last_write_does_not_answer(home):
    """If the first replica dies between its write and the version that makes it visible."""
    build(topic_records(60), name="dying", home=home, partitions=3, workers=1).close()
    world = World(home / "dying", replicas=2)
    with open_index(home / "dying") as here:
        number = next(n for n in (0, 1, 2) if "d7" in here.partitions[n].ids())
        world.failing.add((number, "publish"))
        with pytest.raises(PartitionMissing):
            world.index.delete(["d7"])
        for _ in range(2):  # of each replica first
            with PartitionTally(partial=True) as tally:
                found = world.index.search("word01 word05", 60)
            assert (list(tally.failed), bool(found.hits)) == ([number], True)
        world.failing.clear()
        world.cluster.restart(number)
        here.refresh()
        assert world.index.refresh()
        assert all(same(world.index, here, query) for query in QUERIES)


def scores_of(index, query):
    return [(hit.id, hit.score) for hit in index.search(query, 60, ranker="bm25").hits]


def test_a_new_build_starts_new_hosts(home):
    build(topic_records(60), name="built", home=home, partitions=3, workers=1).close()
    world = World(home / "built")
    build(topic_records(80), name="built", home=home, partitions=2, workers=1).close()
    assert world.index.refresh()
    assert (len(world.index), len(world.cluster.started)) == (80, 2)


def test_searches_go_on_during_a_new_build(home):
    build(topic_records(60), name="rolled", home=home, partitions=3, workers=1).close()
    world = World(home / "rolled")
    query, answers, generations = "word01 word05", [], set()
    expected, before = scores_of(world.index, query), world.index.generation
    is_over = threading.Event()

    def search():
        while not is_over.wait(0.005) or not answers:
            generations.add(world.index.generation)
            answers.append(scores_of(world.index, query) == expected)

    with ThreadPoolExecutor(2) as searching:
        done = [searching.submit(search) for _ in range(2)]
        try:
            refit(home / "rolled").close()
            assert world.index.refresh()
        finally:
            is_over.set()
        for each in done:
            each.result(PATIENCE)
    assert all(answers)
    assert generations <= {before, world.index.generation}
    assert scores_of(world.index, query) == expected


def test_a_cluster_index_is_pickled_as_one_of_one_process(world, here):
    with pickle.loads(pickle.dumps(world.index)) as copy:
        assert same(copy, here, "word01 word05")


@pytest.mark.parametrize("query", QUERIES)
def test_rankings_are_those_of_one_process(here, world, query):
    for options in ({}, {"ranker": "bm25"}, {"ranker": "bm25", "boosts": "title^3"}):
        ours, theirs = here.rank(query, 20, **options), world.index.rank(query, 20, **options)
        assert [each.tolist() for each in ours] == [each.tolist() for each in theirs]


def test_many_queries_are_ranked_as_in_one_process(here, world):
    for threads in (1, 2):
        found = world.index.rank_many(QUERIES, 20, threads=threads)
        assert str(found) == str(here.rank_many(QUERIES, 20))


def test_many_queries_are_ranked_without_a_partition_that_fails(world):
    world.failing = {(1,)}
    with PartitionTally(partial=True) as tally:
        found = world.index.rank_many(QUERIES[:3], 20)
        assert str(found) == str([world.index.rank(query, 20) for query in QUERIES[:3]])
    world.failing = set()
    assert set(tally.failed) == {1}


@pytest.mark.parametrize("id_", ["d3", "d50"])
def test_explanations_are_those_of_one_process(here, world, id_):
    for query in QUERIES:
        assert world.index.explain(query, id_) == here.explain(query, id_)
    with pytest.raises(DocumentNotFound):
        world.index.explain("word01", "none")


@pytest.mark.parametrize("typed", ["wor", "word0", "topic", "word01 wor", "wrd", " "])
def test_suggestions_are_those_of_one_process(here, world, typed):
    assert world.index.suggest(typed) == here.suggest(typed)


def test_rules_apply_in_all_hosts(home):
    build(topic_records(60), name="ruled", home=home, partitions=3, workers=1).close()
    pins = [{"id": f"d{number}", "position": number} for number in (1, 2, 4)]
    rule = {"id": "r", "when": {"query_contains": "word01"}, "then": {"pin": pins, "hide": ["d5"]}}
    with open_index(home / "ruled") as index:
        world = World(home / "ruled")
        before = index.search("word01 word05", 20)
        world.index.put_rule(rule)
        index.refresh()
        results = world.index.search("word01 word05", 20)
        assert results.rules == ("r",)
        assert [results.hits[position - 1].id for position in (1, 2, 4)] == ["d1", "d2", "d4"]
        assert "d5" not in [hit.id for hit in results.hits]
        assert same(world.index, index, "word01 word05")
        world.index.set_rules([])
        assert world.index.search("word01 word05", 20).hits == before.hits


def test_a_reranker_orders_the_hits_of_all_hosts(home):
    def by_length(query, texts):
        return [-len(text) for text in texts]

    def ids(results):
        return [hit.id for hit in results.hits]

    models = Models.opened({}, by_length)
    index = open_cluster_index(home / "notes", LocalCluster(), models)
    with open_index(home / "notes", reranker=by_length) as here:
        ours, theirs = (each.search("word01 word05", 9, rerank=6) for each in (here, index))
        assert ours.hits == theirs.hits
        lengths = [len(f"{each.title}\n{each.text}") for each in map(here.document, ids(ours)[:6])]
        assert lengths == sorted(lengths)


def test_coordinators_with_other_paths_name_versions_alike(home, tmp_path, monkeypatch):
    shutil.copytree(home, tmp_path / "copy")
    cluster = LocalCluster()
    first = open_cluster_index(home / "notes", cluster)
    (hosts,) = cluster.started
    monkeypatch.setattr(cluster, "replicas", lambda generations, tokenizer: hosts)
    monkeypatch.setattr(OpenGeneration, "configure", None)  # hosts make no other version
    second = open_cluster_index(tmp_path / "copy" / "notes", cluster)
    assert same(first, second, QUERIES[0])
