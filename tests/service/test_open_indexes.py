import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.search.index import Index, open_index
from klsa_search.service import open_indexes as catalog_module
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.schemas.index_answers import IndexDetails
from klsa_search.service.served_index import generation_mark
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.maintenance import delete_index, indexes_in
from klsa_search.storage.manifest import read_manifest
from tests.storage.worlds import point_current
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import PATIENCE, wait_until

from .conftest import DOCUMENTS, build_tiny


def found(open_indexes, name=None):
    with open_indexes.use(name) as index:
        return index.generation, index.search("wing", ranker="bm25").total


@pytest.fixture
def closed(monkeypatch):
    """Generations of the indexes that were closed."""
    generations, close = [], vars(Index)["close"]

    def closing(index):
        generations.append(index.generation)
        close.__get__(index, Index)()

    monkeypatch.setattr(Index, "close", closing)
    return generations


def test_a_new_generation_is_loaded_and_running_calls_keep_the_old_one(
    indexes_of, tmp_path, closed
):
    build_tiny(tmp_path)
    open_indexes = indexes_of(tmp_path)
    with open_indexes.use("tiny") as old:
        build_tiny(tmp_path, documents=DOCUMENTS[:1])
        assert found(open_indexes) == ("000002", 1)
        assert old.generation == "000001"
        assert old.search("wing", ranker="bm25").total == 2
        assert old.document("3").title == "Odd"
        closed.clear()
    assert closed == ["000001"]


def test_looks_at_most_once_an_interval(tmp_path):
    build_tiny(tmp_path)
    with OpenIndexes(tmp_path, interval=3600) as open_indexes:
        build_tiny(tmp_path)
        assert found(open_indexes)[0] == "000001"


def test_unchanged_index_is_not_opened_again(indexes_of, tmp_path):
    build_tiny(tmp_path)
    open_indexes = indexes_of(tmp_path)
    with open_indexes.use() as first, open_indexes.use() as second:
        assert first.arrays is second.arrays


def test_indexes_come_and_go(indexes_of, home):
    open_indexes = indexes_of(home)
    build_tiny(home, "third")
    assert [status.name for status in open_indexes.statuses()] == ["first", "second", "third"]
    with open_indexes.use("second") as index:
        delete_index(home / "second")
        assert [status.name for status in open_indexes.statuses()] == ["first", "third"]
        assert len(index.search("wing")) == 2
    with pytest.raises(IndexNotFound, match="first, third"):
        found(open_indexes, "second")


def test_an_index_rebuilt_after_its_deletion_is_another(indexes_of, tmp_path):
    build_tiny(tmp_path)
    open_indexes = indexes_of(tmp_path)
    assert found(open_indexes) == ("000001", 2)
    delete_index(tmp_path / "tiny")
    build_tiny(tmp_path, documents=DOCUMENTS[:1])
    assert found(open_indexes) == ("000001", 1)


def test_broken_new_generation_leaves_the_old_one_in_use(indexes_of, tmp_path):
    build_tiny(tmp_path)
    open_indexes = indexes_of(tmp_path)
    whole = (tmp_path / "tiny" / "CURRENT").read_text()
    point_current(tmp_path / "tiny", "000007")
    assert found(open_indexes) == ("000001", 2)
    (status,) = open_indexes.statuses()
    assert status.index.generation == "000001"
    assert "000007" in status.failure
    (tmp_path / "tiny" / "CURRENT").write_text(whole)
    (status,) = open_indexes.statuses()
    assert status.failure is None


def test_repaired_index_is_served_again(indexes_of, tmp_path):
    build_tiny(tmp_path)
    manifest = tmp_path / "tiny" / "000001" / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:50])
    open_indexes = indexes_of(tmp_path)
    with pytest.raises(StoreError, match=r"manifest\.json"):
        found(open_indexes)
    manifest.write_bytes(whole)
    assert found(open_indexes) == ("000001", 2)


def test_home_that_is_not_there_has_no_index(indexes_of, tmp_path):
    open_indexes = indexes_of(tmp_path / "nowhere")
    assert open_indexes.statuses() == []
    with pytest.raises(StoreError, match="klsa-index build"):
        found(open_indexes)


def test_closed_catalog_lends_nothing_and_waits_for_users(tmp_path, closed):
    build_tiny(tmp_path)
    open_indexes = OpenIndexes(tmp_path, interval=0)
    with open_indexes.use() as index:
        closed.clear()
        open_indexes.close()
        assert index.document("1").title == "Wings"
        assert closed == []
    assert closed == ["000001"]
    with pytest.raises(StoreError):
        found(open_indexes)


@pytest.mark.slow
def test_each_answer_comes_from_one_generation(client_of, tmp_path):
    """Searchers at work while generations change: never a mixture, never a failure."""

    def documents(generation):
        return [
            {"id": str(number), "title": "", "text": "wing", "generation": f"{generation:06d}"}
            for number in range(generation + 2)
        ]

    build_tiny(tmp_path, documents=documents(1))
    client = client_of(tmp_path)
    done = threading.Event()
    latest = threading.Semaphore(0)

    def ask():
        seen = ["000001"]
        while not done.is_set():
            answer = client.get("/search?q=wing&ranker=bm25").json()
            generation = answer["generation"]
            assert answer["total"] == len(answer["hits"]) == int(generation) + 2
            assert {hit["metadata"]["generation"] for hit in answer["hits"]} == {generation}
            if generation != seen[-1]:
                seen.append(generation)
                latest.release()
        return seen

    count = 2
    with ThreadPoolExecutor(count) as pool:
        askers = [pool.submit(ask) for _ in range(count)]
        try:
            for generation in range(2, 5):
                build_tiny(tmp_path, documents=documents(generation))
                for _ in askers:
                    assert latest.acquire(timeout=PATIENCE)
        finally:
            done.set()
        seen = [asker.result() for asker in askers]
    assert seen == [[f"{generation:06d}" for generation in range(1, 5)]] * count


def test_damage_during_service_is_found_and_reported(tmp_path):
    """A bit that turns on the disk: size and times of the file stay as they were."""
    build_tiny(tmp_path, name="other")
    build_tiny(tmp_path)
    path = tmp_path / "tiny" / "000001" / "lengths.npy"
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    note_checked(path.parent, read_manifest(path.parent))  # as if it had been whole at first
    with OpenIndexes(tmp_path) as open_indexes:
        wait_until(
            lambda: all(status.checksums != "checking" for status in open_indexes.statuses())
        )
        whole, damaged = open_indexes.statuses()
        assert (whole.checksums, whole.failure) == ("verified", None)
        assert (damaged.checksums, damaged.index) == ("damaged", None)
        assert "lengths.npy` has changed since it was built" in damaged.failure
        with open_indexes.use("other"):
            pass
        with pytest.raises(IndexDamaged, match=r"lengths\.npy"), open_indexes.use("tiny"):
            pass


def test_a_slip_does_not_end_the_watch(tmp_path, monkeypatch, caplog):
    build_tiny(tmp_path)
    with OpenIndexes(tmp_path, interval=0.01) as open_indexes:
        slips, slipped = [KeyError("a slip")] * 3, threading.Event()

        class Slip(Exception):
            pass

        def slipping(home):
            if home != tmp_path:  # of indexes that another fixture keeps open
                return indexes_in(home)
            if slips:
                slips.pop()
                raise Slip
            slipped.set()
            return indexes_in(home)

        monkeypatch.setattr("klsa_search.service.open_indexes.indexes_in", slipping)
        assert slipped.wait(PATIENCE)
        build_tiny(tmp_path, documents=DOCUMENTS[:1])
        wait_until(lambda: found(open_indexes)[0] == "000002")
        assert open_indexes.watch.failures == 3
    assert caplog.text.count("catalog failed; will retry") == 1
    assert "Slip" in caplog.text  # the traceback


def test_one_index_that_cannot_be_closed_keeps_no_other_from_it(home, monkeypatch):
    open_indexes = OpenIndexes(home, interval=0)
    with open_indexes.writing("first") as first, open_indexes.writing("second") as second:
        pass

    def failing():
        raise RuntimeError

    monkeypatch.setattr(first, "close", failing)
    with pytest.raises(RuntimeError):
        open_indexes.close()
    with pytest.raises(Exception, match="closed"):
        second.document("1")


def test_an_index_that_was_damaged_is_served_again_once_it_is_whole(tmp_path):
    build_tiny(tmp_path)
    path = tmp_path / "tiny" / "000001" / "lengths.npy"
    whole = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(bytes([whole[-1] ^ 1]))
    note_checked(path.parent, read_manifest(path.parent))  # as if it had been whole at first
    with OpenIndexes(tmp_path, interval=0.01) as open_indexes:
        wait_until(lambda: open_indexes.statuses()[0].checksums == "damaged")
        with path.open("r+b") as file:
            file.write(whole)
        wait_until(lambda: open_indexes.statuses()[0].checksums == "verified")
        assert found(open_indexes) == ("000001", 2)


def test_the_mark_of_an_index_changes_with_each_current(tmp_path):
    build_tiny(tmp_path)
    path = tmp_path / "tiny"
    before = generation_mark(path)
    assert generation_mark(path) == before
    (path / "fresh").write_bytes((path / "CURRENT").read_bytes())
    (path / "fresh").replace(path / "CURRENT")
    assert generation_mark(path) != before


def test_writes_during_the_opening_of_a_generation_are_found(home, monkeypatch):
    """The new one was opened before the write, and takes the place of the other after it."""
    open_indexes = OpenIndexes(home, interval=3600)
    real = catalog_module.open_and_warm_up

    def slow(*how):
        index = real(*how)
        with open_indexes.writing("first") as old:
            old.add([{"id": "late", "text": "zeppelin"}])
        return index

    monkeypatch.setattr(catalog_module, "open_and_warm_up", slow)
    build_tiny(home, "first")
    open_indexes.scan()
    with open_indexes.use_if_current("first") as index:
        assert index is None
    for lend in (open_indexes.use, open_indexes.use_if_current):
        with lend("first") as index:
            assert index.generation == "000002"
            assert index.document("late").text == "zeppelin"
    open_indexes.close()


def test_a_status_stays_readable_when_its_index_is_replaced(indexes_of, home):
    open_indexes = indexes_of(home)
    app = app_of_indexes(open_indexes)
    statuses = open_indexes.statuses()
    build_tiny(home, "first", documents=DOCUMENTS[:1])
    delete_index(home / "second")
    assert [status.name for status in open_indexes.statuses()] == ["first"]
    details = [IndexDetails.of(status) for status in statuses]
    assert [(each.generation, each.documents) for each in details] == [
        ("000001", len(DOCUMENTS)),
        ("000001", 2),
    ]
    told, _ = app.state.metrics.exposition(statuses, "")
    assert b'klsa_index_documents{index="second"} 2.0' in told


@pytest.mark.parametrize("path", ["/metrics", "/health", "/indexes", "/indexes/first"])
def test_a_swap_in_the_middle_of_a_status_disturbs_it_not(indexes_of, home, path, monkeypatch):
    open_indexes = indexes_of(home)
    client = AppClient(app_of_indexes(open_indexes))
    statuses = open_indexes.statuses

    def swapped():
        found = statuses()
        open_indexes._replace("first", None)  # closes it: no request uses it
        return found

    swaps = [swapped]
    monkeypatch.setattr(open_indexes, "statuses", lambda: swaps.pop()() if swaps else statuses())
    assert client.get(path).status_code == 200
    assert not swaps


def test_an_index_that_opens_slowly_delays_no_other(home):
    """Nor does it delay what asks for its own former generation."""
    opening, opened = threading.Event(), threading.Event()
    paused = set()

    def slow(path):
        if path.name in paused:
            opening.set()
            assert opened.wait(PATIENCE)
        return open_index(path)

    with OpenIndexes(home, interval=0.01, opener=slow) as open_indexes:
        try:
            paused.add("first")
            build_tiny(home, "first", documents=DOCUMENTS[:1])
            assert opening.wait(PATIENCE)
            assert open_indexes.is_busy
            build_tiny(home, "second", documents=DOCUMENTS[:1])
            build_tiny(home, "third")
            wait_until(
                lambda: [s.name for s in open_indexes.statuses()] == ["first", "second", "third"]
            )
            wait_until(lambda: found(open_indexes, "second")[0] == "000002")
            # A refresh that began before the build ended finds the new generation by itself.
            assert found(open_indexes, "first")[0] in ("000001", "000002")
            assert not opened.is_set()
        finally:
            opened.set()
        wait_until(lambda: found(open_indexes, "first")[0] == "000002")


def test_an_index_that_is_opened_when_the_catalog_closes_is_closed(home):
    opening, opened, made = threading.Event(), threading.Event(), []

    def slow(path):
        made.append(open_index(path))
        if made[2:]:
            opening.set()
            assert opened.wait(PATIENCE)
        return made[-1]

    open_indexes = OpenIndexes(home, interval=0.01, opener=slow)
    build_tiny(home, "first")
    assert opening.wait(PATIENCE)
    open_indexes.close()
    opened.set()
    wait_until(lambda: not open_indexes.is_busy)
    assert len(made) == 3
    for index in made:
        with pytest.raises(StoreError, match="closed"):
            index.document("1")


def test_a_write_that_could_not_be_read_is_read_by_a_later_use(home, monkeypatch, caplog):
    """Without waiting for the next scan."""
    refresh = vars(Index)["refresh"]
    tries = []

    def failing(index):
        tries.append(index)
        if len(tries) <= 2:  # a use tries twice at most
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return refresh.__get__(index, Index)()

    with OpenIndexes(home, interval=3600) as writer, OpenIndexes(home, interval=3600) as reader:
        with writer.writing("first") as index:
            index.add([{"id": "new", "text": "A lamp."}])
        monkeypatch.setattr(Index, "refresh", failing)
        with reader.use("first") as index:
            assert index.search("lamp").total == 0
        assert reader.statuses()[0].failure is not None

        def is_found():
            with reader.use("first") as index:
                return index.search("lamp").total == 1

        wait_until(is_found)
        assert reader.statuses()[0].failure is None
        assert len(caplog.records) == 1


def test_an_index_is_not_closed_while_it_is_refreshed(home, monkeypatch, caplog):
    open_indexes = OpenIndexes(home, interval=0)
    refresh = vars(Index)["refresh"]

    def closing(index):
        monkeypatch.setattr(Index, "refresh", refresh)
        open_indexes.close()
        index.document("1")
        return index.refresh()

    with open_indexes.writing("first") as index:
        monkeypatch.setattr(Index, "refresh", closing)
    open_indexes.scan()
    assert not caplog.records
    with pytest.raises(StoreError, match="closed"):
        index.document("1")
