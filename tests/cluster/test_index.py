"""An index searched by shards: filters, writes and rebuilds as on one machine."""

import pickle

import pytest

from klsa_search.cluster.calls import count_shards
from klsa_search.cluster.index import ShardedIndex
from klsa_search.errors import ShardMissing, WritingRefused
from klsa_search.indexing.build import build
from klsa_search.lowrank import sparse_expansion
from klsa_search.search.opening import open_index
from klsa_search.storage.current import current_generation
from klsa_search.storage.log import WriteLog
from tests.support.forked import another_thread
from tests.support.worlds import random_documents

from .local_workers import Fleet

LONG = 60


def documents(count, seed=3, first=0):
    for at, text in enumerate(random_documents(count, 60, seed=seed)):
        yield {
            "id": f"d{first + at}",
            "title": "",
            "text": text,
            "metadata": {"part": "abc"[at % 3]},
        }


@pytest.fixture
def home(tmp_path):
    build(documents(400), name="notes", home=tmp_path).close()
    return tmp_path


def queries():
    return [" ".join(text.split()[:4]) for text in random_documents(12, 60, seed=9)]


def assert_alike(index, spread):
    for query in queries():
        for options in (
            {},
            {"ranker": "bm25"},
            {"exact": True},
            {"k": 100},
            {"filter": "part = a"},
            {"filter": "part = b", "ranker": "bm25", "k": 3},
            {"facets": ["part"], "sort": ["part"]},
        ):
            one, many = index.search(query, **options), spread.search(query, **options)
            assert one.hits
            assert many.hits == one.hits
            assert (many.total, many.facets) == (one.total, one.facets)


def test_it_answers_as_the_index_does(home):
    index = open_index(home / "notes")
    with ShardedIndex(index.path, Fleet(3)) as spread:
        assert_alike(index, spread)
        assert [r.hits for r in spread.search_many(queries())] == [
            r.hits for r in index.search_many(queries())
        ]


def test_passages_count_as_on_one_machine(tmp_path):
    build(documents(100), name="notes", home=tmp_path, passages=10).close()
    index = open_index(tmp_path / "notes")
    with ShardedIndex(index.path, Fleet(3)) as spread:
        assert index.search(queries()[0])[0].span
        assert_alike(index, spread)
        for query in queries():
            for options in ({"passage_weight": 0}, {"group": "passage"}):
                assert spread.search(query, **options) == index.search(query, **options)


@pytest.mark.parametrize("count", [0, 1, 70])
def test_there_may_be_fewer_documents_than_shards(tmp_path, count):
    build(documents(count), name="notes", home=tmp_path).close()
    index = open_index(tmp_path / "notes")
    with ShardedIndex(index.path, Fleet(4)) as spread:
        for replica in spread.replicas._hosts:
            replica.ready()
        assert [spread.search(query).hits for query in queries()] == [
            index.search(query).hits for query in queries()
        ]
        assert spread.search("").total == 0


def test_it_takes_up_what_is_written(home):
    index, fleet = open_index(home / "notes"), Fleet(3)
    with ShardedIndex(index.path, fleet) as spread:
        before = spread.snapshot()
        known = [before.search(query).hits for query in queries()]
        spread.add(documents(60, seed=4, first=1000))
        spread.delete(["d3", "d200", "d1010"])
        index.refresh()
        assert_alike(index, spread)
        # Who began before still gets what was there.
        assert [before.search(query).hits for query in queries()] == known
        spread.add(documents(300, seed=5, first=2000))  # which moves the mean length
        index.refresh()
        assert_alike(index, spread)
        assert len(fleet.started) == 1


def test_it_takes_up_what_is_built(home):
    index, fleet = open_index(home / "notes"), Fleet(2)
    with ShardedIndex(index.path, fleet) as spread:

        def ask():
            assert spread.snapshot().search("t00 t01").hits

        with another_thread(ask):
            build(documents(300, seed=8), name="notes", home=home, replace=True).close()
            assert spread.refresh()
        index.refresh()
        assert_alike(index, spread)
        assert fleet.started == ["000001", "000002"]


def test_a_shard_that_fails_is_told(home):
    gone = set()
    fleet = Fleet(
        3, trouble=lambda shard, replica, method: 1 / 0 if (shard, method) in gone else None
    )
    with ShardedIndex(current_generation(home / "notes"), fleet) as spread:
        (query, *_) = queries()
        whole = spread.search(query, k=400)
        for method in ("best", "scores"):
            gone.clear()
            gone.add((1, method))
            with pytest.raises(ShardMissing, match=r"1 of 3 shards .*shard 1: ZeroDivisionError"):
                spread.search(query)
            with count_shards(partial=True) as tally:
                found = spread.search(query, k=400)
            assert (tally.total, list(tally.failed)) == (3, [1])
            assert 0 < len(found.hits) < len(whole.hits)
        gone |= {(shard, "best") for shard in range(3)}
        with pytest.raises(ShardMissing, match="3 of 3"), count_shards(partial=True):
            spread.search(query)


def test_rubbish_is_no_answer(home):
    rubbish = []
    fleet = Fleet(2, trouble=lambda shard, *_: rubbish[0] if shard == 1 and rubbish else None)
    with ShardedIndex(current_generation(home / "notes"), fleet) as spread:
        other = spread.arrays.bm25_engine  # anything that is no answer
        for answer in ("no", [], [None], {"a": 1}, other):
            rubbish[:] = [answer]
            with pytest.raises(ShardMissing, match="its answer is none"):
                spread.search("t00 t01")


def test_pickled_it_needs_no_shards(home):
    with ShardedIndex(current_generation(home / "notes"), Fleet(2)) as spread:
        index = pickle.loads(pickle.dumps(spread))
        assert type(index).__name__ == "Index"
        hits = spread.search("t00 t01").hits
        assert hits
        assert index.search("t00 t01").hits == hits


def test_a_full_index_refuses_documents_at_the_front_too(home, monkeypatch):
    monkeypatch.setattr(sparse_expansion, "MAX_DOCUMENTS", 400)
    with ShardedIndex(current_generation(home / "notes"), Fleet(2)) as spread:
        with pytest.raises(WritingRefused, match="is full"):
            spread.add(documents(1, first=400))
        assert WriteLog(spread.path).last().seq == 0


def test_shards_behind_a_network_file_system_take_no_writes(home, monkeypatch):
    monkeypatch.setattr("klsa_search.cluster.host.network_file_system", lambda path: "nfs4")
    with ShardedIndex(current_generation(home / "notes"), Fleet(2)) as spread:
        with pytest.raises(WritingRefused, match=r"network file system \(nfs4\)"):
            spread.add(documents(1, first=400))
        assert spread.search("t00").total
