"""Refit, split and rollback of an index in partitions, while it is searched and written."""

import shutil

import pytest

from klsa_search import build, open_index
from klsa_search.errors import StoreError
from klsa_search.indexing import partitions as module
from klsa_search.indexing import refit
from klsa_search.storage.maintenance import delete_index, rollback, undo_writes
from tests.support.worlds import cyclic_records

COUNT = 80
QUERIES = ("word1 word2", "word5 zebra", "quagga", "word12")


def write(index):
    index.add([{"id": "new", "text": "word1 zebra"}, {"id": "d3", "text": "word2 quagga"}])
    index.delete(["d7", "d8"])


def scores(index, query):
    hits = index.search(query, 300, ranker="bm25", spelling="off").hits
    return sorted(((hit.id, hit.score) for hit in hits), key=lambda hit: (-hit[1], hit[0]))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The same documents in two partitions and in one."""
    home = tmp_path_factory.mktemp("written")
    for name, partitions in (("parts", 2), ("one", 1)):
        with build(
            cyclic_records(), name=name, home=home, partitions=partitions, workers=1
        ) as index:
            write(index)
    return home


@pytest.fixture
def path(written, tmp_path):
    return shutil.copytree(written / "parts", tmp_path / "parts")


@pytest.fixture
def expected(written, tmp_path):
    """Compare an index with one partition of the same documents."""
    with open_index(shutil.copytree(written / "one", tmp_path / "one")) as one:

        def compare(index, *others):
            one.add(others)
            assert sorted(index.ids()) == sorted(one.ids())
            for query in QUERIES:
                assert scores(index, query) == scores(one, query)

        yield compare


def test_a_refit_has_the_documents_and_keeps_the_build_before(path, expected):
    with open_index(path) as before:
        before.update_settings(alpha=0.5)
        with refit(path) as index:
            assert len(index.partitions) > 1
            assert (index.generation, len(index.partitions)) == ("000002", 2)
            assert index.last_write.seq == index.drift.added == 0
            assert index.settings.alpha == index.manifest.checked_settings().alpha == 0.5
            expected(index)
        assert before.refresh()
        assert before.generation == "000002"
        back = rollback(path)
        assert (back.now, back.before) == ("000001", "000002")
        assert before.refresh()
        assert before.drift.added == 2
        expected(before)
    assert rollback(path, "000002").before == "000001"
    with refit(path) as index:
        assert index.generation == "000003"
        folders = [entry.name for entry in path.iterdir() if entry.is_dir()]
        assert sorted(folders) == [
            f"{build}{part}"
            for build in ("000002", "000003")
            for part in ("", "-0", "-1", "-terms")
        ]
    with pytest.raises(StoreError, match="generations are: 000002"):
        rollback(path, "000001")


def test_writes_during_a_refit_are_replayed(path, expected, monkeypatch):
    later = [{"id": f"later{number}", "text": f"word{number} quagga"} for number in range(9)]
    write = module.write_partitions

    def writing(*given):
        write(*given)
        with open_index(path) as other:
            other.add(later)
            other.delete(["later3"])
            other.add(later[3:4])
            other.update_settings(alpha=0.75)

    monkeypatch.setattr(module, "write_partitions", writing)
    with refit(path) as index:
        assert index.drift.added == len(later)
        assert index.settings.alpha == 0.75
        expected(index, *later)


def test_an_index_is_divided_and_joined_under_its_name(path, expected):
    with refit(path, partitions=3, workers=1) as three:
        assert [len(three.partitions), three.generation] == [3, "000002"]  # type: ignore[attr-defined]
        expected(three)
    with refit(path, partitions=1) as one:
        assert len(one.partitions) == 1
        assert one.generation == "000003"
        expected(one)
    with refit(path, partitions=2, workers=1) as again:
        assert again.generation == "000004"
        expected(again)
        assert rollback(path).now == "000003"
        assert again.refresh()
        assert len(again.partitions) == 1
        expected(again)
    with open_index(path) as one:
        expected(one)
        assert rollback(path, "000004").before == "000003"
        assert one.delete(["never there"]) == 0  # a write follows, too
        assert len(one.partitions) == 2
        expected(one)
    with open_index(path) as again:
        expected(again)
    assert delete_index(path) == []


@pytest.mark.parametrize("partitions", [2, 4])
@pytest.mark.parametrize("name", ["one", "parts"])
def test_a_divided_index_is_a_build_of_its_documents(written, tmp_path, name, partitions):
    path = shutil.copytree(written / name, tmp_path / name)
    with open_index(path) as index:
        documents = list(index.live_documents())
    options = {"home": tmp_path, "partitions": partitions, "workers": 1}
    with (
        refit(path, partitions=partitions, workers=1) as divided,
        build(documents, name="built", **options) as built,
    ):
        assert files(divided) == files(built)
        for query in QUERIES:
            assert divided.search(query, 300).hits == built.search(query, 300).hits


def files(index):
    """Return the checksums of files by partition and name."""
    entries = index.manifest.files.items()
    return {name.removeprefix(index.generation): entry.sha256 for name, entry in entries}


def test_a_refit_of_one_partition_removes_the_partitions_before_it(path):
    refit(path, partitions=1).close()
    partitions = [f"000001{part}" for part in ("", "-0", "-1", "-terms")]
    assert sorted(entry.name for entry in path.glob("0*")) == [*partitions, "000002"]
    refit(path).close()
    assert sorted(entry.name for entry in path.glob("0*")) == ["000002", "000003"]


def test_a_rebuild_changes_settings_of_all_partitions(path):
    with open_index(path) as index, refit(index, k1=2.0) as other:
        assert len(other.partitions) > 1
        assert other.settings.k1 == 2.0
        assert {each.settings.k1 for each in other.partitions} == {2.0}


@pytest.mark.slow
def test_a_failed_build_leaves_the_index_as_it_was(path, expected, monkeypatch):
    def failing(*_, **__):
        raise StoreError("the disk is full")

    before = sorted(entry.name for entry in path.iterdir())
    monkeypatch.setattr("klsa_search.indexing.partitions.write_partitions", failing)
    with pytest.raises(StoreError, match="the disk is full"):
        refit(path)
    assert sorted(entry.name for entry in path.iterdir()) == before
    with open_index(path) as index:
        expected(index)


def test_a_write_is_undone_in_all_partitions(path):
    with open_index(path) as index:
        before = sorted(index.ids())
        index.add({"id": f"new{number}", "text": "okapi"} for number in range(9))
        index.patch_many({"id": f"new{number}", "text": "quagga"} for number in range(9))
        index.delete(before[:5])
        assert undo_writes(path, 2) == index.last_write.seq - 14
        assert index.refresh()
        assert index.search("okapi", 20, ranker="bm25").total == 9
        assert sorted(index.ids()) == sorted([*before, *(f"new{number}" for number in range(9))])
        undo_writes(path)
        assert index.refresh()
        assert sorted(index.ids()) == before
    with open_index(path) as index:
        assert sorted(index.ids()) == before
        with pytest.raises(StoreError, match="batches of writes to undo, not 99"):
            undo_writes(path, 99)


def test_a_build_does_not_drop_writes_to_partitions(path):
    home = path.parent
    with pytest.raises(StoreError, match="has writes after its build, 2 documents added"):
        build(cyclic_records(), name="parts", home=home, partitions=2, workers=1)
    build(cyclic_records(), name="parts", home=home, partitions=2, workers=1, replace=True).close()
