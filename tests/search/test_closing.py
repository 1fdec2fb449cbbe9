"""A closed index frees its resources and raises an error on use."""

import gc
import sys
import threading
import weakref
from pathlib import Path

import pytest

from klsa_search import build, open_index
from klsa_search.errors import StoreError
from tests.search.conftest import DOCUMENTS
from tests.support.waiting import PATIENCE, wait_until

RANKERS = ("klsa", "bm25", "rm3")


@pytest.fixture
def path(tmp_path):
    build(DOCUMENTS, name="t", home=tmp_path, dimensions=2, z=2).close()
    return tmp_path / "t"


@pytest.fixture
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def held(folder):
    """Files of a folder that this process has mapped or open."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    mapped = {line.split(None, 5)[5] for line in maps if str(folder) in line}
    links = list(Path("/proc/self/fd").iterdir())
    opened = {str(link.readlink()) for link in links if link.is_symlink()}
    return mapped | {name for name in opened if name.startswith(str(folder))}


def use(index):
    for ranker in RANKERS:
        index.search("wing dough", ranker=ranker)
        index.rank_many(["wing dough"] * 20, ranker=ranker, threads=2)
    index.scores("wing", spectral="squashing")


@pytest.mark.parametrize(
    "options", [{"passages": 10}, {"partitions": 2, "workers": 1}], ids=["passages", "partitions"]
)
def test_a_closed_index_is_freed_without_the_garbage_collector(
    options, tmp_path, without_collector
):
    """A service freezes the collector when it starts, and would keep the index of then for ever."""
    index = build(DOCUMENTS, name="t", home=tmp_path, z=2, fields=("year",), **options)
    index.add([{"id": "new", "text": "data base of cold wing-flow e-mail", "year": 3}])
    parts = list(index.partitions)
    views = [index.snapshot(), index.restricted("year > 2")]
    for each in (index, *views):
        for query in ("wingflow database", '"cold dough"~2 +wing', "wi*", "title:bread email"):
            each.search(query, explain=True, quality=True, highlight=True)
            each.search(query, filter="year = 3", spelling="off")
        each.suggest("wi")
    kept = [weakref.ref(part.state().snapshot) for part in parts]
    index.close()
    del index, parts, views, each
    assert [reference() for reference in kept] == [None] * len(kept)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
@pytest.mark.parametrize("dropped", [False, True], ids=["closed", "closed and dropped"])
def test_a_closed_index_has_no_file_mapped_or_open(path, dropped, without_collector, monkeypatch):
    monkeypatch.setattr("klsa_search.storage.arrays._SMALL", 0)  # small files are mapped, too
    index = open_index(path)
    searched, ended = threading.Event(), threading.Event()

    def search():
        use(index)
        searched.set()
        ended.wait(PATIENCE)  # the memory of this thread outlives its queries

    thread = threading.Thread(target=search)
    thread.start()
    try:
        assert searched.wait(PATIENCE)
        use(index)
        assert held(path)
        index.close()
        if dropped:
            del index
        assert not held(path)
    finally:
        ended.set()
        thread.join(PATIENCE)


CALLS = (
    lambda index: index.search("wing"),
    lambda index: index.search_many(["wing"]),
    lambda index: index.rank("wing"),
    lambda index: index.rank_many(["wing"]),
    lambda index: index.scores("wing"),
    lambda index: index.document("w1"),
    lambda index: index.documents_at([0]),
    lambda index: index.doc_ids(["w1"]),
    lambda index: index.ids(),
    lambda index: index.arrays,
    lambda index: index.parameters(alpha=0.5),
    lambda index: index.warm_up(),
)


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_closed_index_says_so(tmp_path, partitions):
    index = build(
        DOCUMENTS, name="t", home=tmp_path, dimensions=2, partitions=partitions, workers=1
    )
    index.close()
    index.close()  # once more does no harm
    for call in CALLS:
        with pytest.raises(StoreError, match="is closed; open it again with open_index"):
            call(index)
    assert len(index) == len(DOCUMENTS)
    assert "generation 000001" in repr(index)


def test_searches_of_other_threads_end_whole_or_with_a_sentence(path):
    """Whatever they are doing when the index is closed: they keep the arrays until they end."""
    reference = open_index(path)
    expected = [hit.id for hit in reference.search("wing dough")]
    index, seen, failures = open_index(path), [], []
    under_way = threading.Barrier(5)

    def search():
        under_way.wait(PATIENCE)
        try:
            while True:
                seen.append([hit.id for hit in index.search("wing dough")])
        except StoreError as failure:
            failures.append(failure)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=search) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        under_way.wait(PATIENCE)
        wait_until(lambda: seen or failures)
        index.close()
        for thread in threads:
            thread.join(PATIENCE)
    finally:
        sys.setswitchinterval(interval)
    assert len(failures) == 4
    assert all("closed" in failure.message for failure in failures)
    assert all(ids == expected for ids in seen)
    reference.close()


def test_an_index_closes_at_the_end_of_its_block(tmp_path):
    with build(DOCUMENTS, name="t", home=tmp_path, dimensions=2) as index:
        assert len(index) == len(DOCUMENTS)
    with pytest.raises(StoreError, match="closed"):
        index.search("wing")
