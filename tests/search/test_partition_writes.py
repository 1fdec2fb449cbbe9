"""Writes to an index in partitions: as to one index, in all partitions at once."""

import os
import pickle
import threading

import pytest

from klsa_search import build, open_index
from klsa_search.collection.model import Document
from klsa_search.errors import (
    BadDocument,
    CollectionError,
    DocumentNotFound,
    SettingsError,
    StoreError,
    WritingRefused,
)
from klsa_search.lowrank import sparse_expansion
from klsa_search.search.parts import open_parts
from klsa_search.search.parts.generation import OpenGeneration
from klsa_search.storage.maintenance import undo_writes
from klsa_search.storage.partitions import folders_of, generations_of_build, partition_of
from tests.support.waiting import PATIENCE
from tests.support.worlds import cyclic_records

COUNT = 80


@pytest.fixture
def index(copy_of):
    return copy_of(cyclic_records(), name="parts", partitions=3, workers=1)


def scores(index, query):
    hits = index.search(query, 300, ranker="bm25", spelling="off").hits
    return sorted(((hit.id, hit.score) for hit in hits), key=lambda hit: (-hit[1], hit[0]))


def test_a_sync_compares_the_source_with_all_partitions(index, tmp_path):
    source = [*cyclic_records()[3:], {"id": "new", "text": "word1 zebra"}]
    source[10] = {**source[10], "text": "word2 quagga"}
    dry = index.sync(source, dry_run=True)
    assert len(index) == COUNT
    done = index.sync(source)
    assert (done.added, done.changed) == (("new",), ("d13",)) == (dry.added, dry.changed)
    assert set(done.deleted) == {"d0", "d1", "d2"} == set(dry.deleted)
    assert done.unchanged == COUNT - 4
    assert index.sync(source).unchanged == len(source)
    with build(source, name="one", home=tmp_path) as one:
        for query in ("word1 zebra", "quagga", "word5"):
            assert scores(index, query) == scores(one, query)


def test_deletions_of_a_sync_count_over_all_partitions(index):
    with pytest.raises(CollectionError, match="40 would be deleted"):
        index.sync(cyclic_records(COUNT // 2))
    assert len(index) == COUNT
    index.sync(cyclic_records(COUNT // 2), max_delete="50%")
    assert len(index) == COUNT // 2


def test_only_words_that_no_partition_had_are_unseen(tmp_path):
    rare = [f"rare{number}" for number in range(8)]
    records = [{"id": word, "text": f"common {word}"} for word in rare]
    with build(records, name="parts", home=tmp_path, partitions=2, workers=1) as index:
        text = " ".join([*rare, "quokka"])
        index.add([{"id": f"new {number}", "text": text} for number in range(8)])
        assert {partition_of(f"new {number}", 2) for number in range(8)} == {0, 1}
        assert (index.drift.words, index.drift.unseen) == (8 * 9, 8)


def test_a_snapshot_keeps_all_partitions_as_they_were(index):
    before, found = index.snapshot(), scores(index, "word1 word2")
    index.add([{"id": "new", "text": "word1 word2"}, {"id": "d1", "text": "other"}])
    assert scores(before, "word1 word2") == found != scores(index, "word1 word2")
    assert len(before) == COUNT == len(index) - 1
    assert before.document("d1").text != "other"
    with pytest.raises(DocumentNotFound):
        before.document("new")
    with pytest.raises(StoreError, match="read-only"):
        before.add([{"id": "x", "text": "y"}])
    with pytest.raises(StoreError, match="pickle the index itself"):
        pickle.dumps(before)
    before.close()
    assert index.search("word1").hits


def test_an_index_in_partitions_is_pickled_by_path(index):
    with pickle.loads(pickle.dumps(index)) as again:
        assert scores(again, "word1") == scores(index, "word1")


def test_query_settings_and_synonyms_change_in_all_partitions(index, tmp_path):
    index.update_settings(alpha=0.25, page_title="Parts")
    index.set_synonyms({"tv": ["word3"]})
    with open_index(tmp_path / "parts") as other:
        for each in (index, other):
            assert each.settings.alpha == 0.25
            assert {own.settings.alpha for own in each.partitions} == {0.25}
            assert list(each.synonyms["tv"]) == ["word3"]
            found = {hit.id for hit in each.search("tv", 100, ranker="bm25").hits}
            assert found == {hit.id for hit in each.search("word3", 100, ranker="bm25").hits}
        index.update_settings(alpha=0.5)
        assert other.refresh()
        assert {own.settings.alpha for own in other.partitions} == {0.5}
        assert not other.refresh()
    with pytest.raises(SettingsError, match="needs another build"):
        index.update_settings(k1=3.0)


def test_judgements_are_of_the_whole_index(index):
    index.judge("word1", "d1", 2)
    index.judge("word1", "d2", 0)
    assert [each.grades for each in index.judgements.queries()] == [{"d1": 2, "d2": 0}]
    with pytest.raises(DocumentNotFound):
        index.judge("word1", "none", 1)


def test_an_invalid_document_leaves_all_partitions_as_they_were(index):
    fine = [Document(id=f"n{number}", text="word1") for number in range(6)]
    with pytest.raises(BadDocument):
        index.write([*fine, Document(id="bad", text="x", metadata={"value": float("nan")})])
    assert len(index) == COUNT
    assert index.last_write.seq == 0


def test_a_failed_partition_is_named_and_written_again(index, monkeypatch):
    made = [{"id": f"n{number}", "text": "zebra"} for number in range(12)]
    write = OpenGeneration.write

    def failing(partition, *batch):
        if partition.state.info.path.parent.name.endswith("-2"):
            raise StoreError("the disk is full")
        return write(partition, *batch)

    with monkeypatch.context() as context:
        context.setattr(OpenGeneration, "write", failing)
        with pytest.raises(StoreError, match=r"wrote to 2 of 3 partitions .* not to `000001-2`"):
            index.add(made)
    there = {each["id"] for each in made if partition_of(each["id"], 3) != 2}
    assert {hit.id for hit in index.search("zebra", 50).hits} == there
    index.add(made)
    assert {hit.id for hit in index.search("zebra", 50).hits} == {each["id"] for each in made}


def test_an_interrupted_refresh_loses_no_write(index, monkeypatch):
    refresh = OpenGeneration.refresh

    def failing(partition, *log):
        if partition.state.info.path.parent.name.endswith("-2"):
            raise StoreError("the log cannot be read")
        return refresh(partition, *log)

    with open_index(index.path.parent) as other:
        ids = [id_ for id_ in (f"n{number}" for number in range(12)) if partition_of(id_, 3) != 2]
        index.add([{"id": id_, "text": "zebra"} for id_ in ids])
        with monkeypatch.context() as context:
            context.setattr(OpenGeneration, "refresh", failing)
            with pytest.raises(StoreError, match="the log cannot be read"):
                other.refresh()
        assert other.refresh()
        assert {hit.id for hit in other.search("zebra", 50).hits} == set(ids)


def test_a_synchronisation_begins_only_if_no_partition_is_full(index, monkeypatch):
    largest = max(part.max_doc for part in index.partitions)
    monkeypatch.setattr(sparse_expansion, "MAX_DOCUMENTS", largest)
    records = [{"id": f"d{number}", "text": "word1"} for number in range(COUNT)]
    with pytest.raises(WritingRefused, match="is full"):
        index.sync([*records, {"id": "more", "text": "word1"}])
    assert index.last_write.seq == 0


def test_many_documents_are_patched_in_all_partitions_or_in_none(index):
    ids = [f"d{number}" for number in range(9)]
    for bad in ({"id": "never", "text": "x"}, {"id": "d9", "title": ["t"]}):
        with pytest.raises((DocumentNotFound, BadDocument)):
            index.patch_many([*({"id": id_, "text": "zebra"} for id_ in ids), bad])
        assert index.search("zebra", 50, spelling="off").total == 0
    assert index.patch_many({"id": id_, "text": "zebra"} for id_ in ids).changed == 9
    unknown = [f"none {number}" for number in range(5)]
    with pytest.raises(DocumentNotFound, match=", ".join(map(repr, unknown))):
        index.patch_many({"id": id_, "text": "gnu"} for id_ in [*unknown, *ids])
    assert index.write((), unknown).unknown == (*unknown,)
    assert {hit.id for hit in index.search("zebra", 50, ranker="bm25").hits} == set(ids)


def test_a_reader_with_the_position_of_a_write_has_all_writes_before(index, tmp_path):
    assert len(index.partitions) > 1
    with open_index(tmp_path / "parts") as reader:
        first = index.write(deletes=["d1", "d2", "d3"])
        assert first.log_position == index.last_write.seq == 3
        index.patch("d4", {"text": "word1 zebra"})
        assert reader.refresh()
        assert reader.last_write == index.last_write
        assert scores(reader, "word1 zebra") == scores(index, "word1 zebra")
        assert not reader.refresh()


def test_a_refresh_publishes_no_part_of_a_write(index, monkeypatch):
    seen = []
    write = OpenGeneration.write

    def found():
        return index.search("quagga", ranker="bm25", spelling="off").total

    def writing(partition, *batch):
        done = write(partition, *batch)
        os.utime(index.path)  # as if its settings had changed
        thread = threading.Thread(target=index.refresh)  # of a search
        thread.start()
        thread.join(PATIENCE)
        seen.append(found())
        return done

    monkeypatch.setattr(OpenGeneration, "write", writing)
    index.add({**each, "text": "quagga"} for each in cyclic_records(9))
    assert seen == [0, 0, 0]
    assert found() == 9


@pytest.mark.slow
@pytest.mark.parametrize("opens", ["open_index", "refresh"])
def test_partitions_that_are_removed_while_they_are_opened_are_followed(
    opens, index, tmp_path, monkeypatch
):
    """Two builds remove the partitions that were named when opening began."""
    home = tmp_path

    def rebuild():
        build(cyclic_records(40), name="parts", home=home, partitions=2, workers=1).close()

    if opens == "refresh":
        rebuild()
    removed = []

    def generations_slowly(build):
        if not removed:
            removed.extend(folders_of(build))
            monkeypatch.undo()  # the builds open what they have built
            for _ in range(2):
                rebuild()
            assert not any(each.exists() for each in removed)
        return generations_of_build(build)

    monkeypatch.setattr(open_parts, "generations_of_build", generations_slowly)
    if opens == "refresh":
        assert index.refresh()
    else:
        index.close()
        index = open_index(home / "parts")
    assert removed
    assert len(index) == 40
    assert index.search("word1").hits
    index.close()


@pytest.mark.slow
def test_partitions_that_are_removed_while_their_logs_are_read_are_followed(
    index, tmp_path, monkeypatch
):
    refresh = OpenGeneration.refresh

    def refresh_slowly(partition):
        monkeypatch.undo()
        for _ in range(2):
            build(cyclic_records(40), name="parts", home=tmp_path, partitions=2, workers=1).close()
        return refresh(partition)

    monkeypatch.setattr(OpenGeneration, "refresh", refresh_slowly)
    assert index.refresh()
    assert len(index) == 40


def test_calls_are_undone_in_their_order_though_the_clock_was_set_back(index, monkeypatch):
    before = sorted(index.ids())
    ids = [f"later{n}" for n in range(30)]
    first = [next(id_ for id_ in ids if partition_of(id_, 3) == n) for n in range(2)]
    second = next(id_ for id_ in ids if partition_of(id_, 3) == 1 and id_ not in first)
    for seconds, written in ((10, first), (5, [second])):
        time = f"2026-11-30T12:00:{seconds:02}.000000+00:00"
        monkeypatch.setattr(open_parts, "write_time", lambda time=time: time)
        index.write([Document(id=id_, title="", text="late") for id_ in written])
    for left in (first, []):
        undo_writes(index.path.parent, 1)
        index.refresh()
        assert sorted(index.ids()) == sorted([*before, *left])
