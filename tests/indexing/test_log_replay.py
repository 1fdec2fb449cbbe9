"""Writes during a rebuild are replayed into the new generation, or the rebuild is abandoned."""

from importlib import import_module

import pytest

from klsa_search import Document, build, open_index
from klsa_search.errors import IndexBusy, StoreError
from klsa_search.indexing import refit
from klsa_search.storage import generations
from klsa_search.storage.generations import writing
from klsa_search.storage.maintenance import undo_writes
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.worlds import random_documents

TEXTS = random_documents(60, 40, seed=4)


def records(numbers):
    return [{"id": str(number), "text": TEXTS[number]} for number in numbers]


@pytest.fixture
def index(tmp_path):
    with_writes = build(records(range(30)), name="carried", home=tmp_path)
    with_writes.add(records(range(20, 35)))
    yield with_writes
    with_writes.close()


def meanwhile(act):
    """A progress that acts once, while documents are being read."""
    left = [act]

    def progress(phase, done, total):
        while left:
            left.pop()()

    return progress


def written(index):
    index.delete(["3", "31", "never there"])
    index.add(records([40, 5, 41]))
    index.delete(["41"])
    index.add(records([41]))


@pytest.mark.parametrize("is_open", [False, True])
def test_writes_are_carried_over(index, is_open):
    path = index.path.parent
    other = open_index(path)
    again = refit(index if is_open else path, progress=meanwhile(lambda: written(other)))
    assert again.generation == "000002"
    assert again.ids() == other.ids()
    assert index.refresh()
    assert index.ids() == again.ids()
    assert [again.document(id_) for id_ in again.ids()] == other.documents_at(
        other.doc_ids(other.ids())
    )
    again.close()
    other.close()


def test_writes_undone_during_a_build_stay_undone(index):
    def undo():
        with writing(index.path.parent), LogWriter(index.path) as writer:
            writer.undo()

    with pytest.raises(StoreError, match="undone during the rebuild"):
        refit(index.path.parent, progress=meanwhile(undo))
    index.refresh()
    assert (index.generation, index.ids()) == ("000001", [str(number) for number in range(30)])


def test_an_index_of_another_generation_is_not_taken_back(index, monkeypatch):
    path = index.path.parent
    module = import_module("klsa_search.indexing.rewrite")

    def built_between(memory):
        monkeypatch.undo()
        refit(path).close()
        index.add(records([50]))
        return 2**33

    monkeypatch.setattr(module, "memory_budget", built_between)
    with pytest.raises(StoreError, match="rebuilt after generation 000001"):
        refit(path)
    assert open_index(path).ids()[-1] == "50"


def test_writes_are_not_replayed_in_a_read_only_index(index):
    with pytest.raises(StoreError, match="settings that make it read-only"):
        refit(index, spectral="squashing", progress=meanwhile(lambda: written(index)))
    assert index.generation == "000001"
    again = refit(index, spectral="squashing")
    assert again.ids() == index.ids()
    assert WriteLog(again.path).last().seq == 0
    again.close()


def test_writers_are_not_kept_out_while_files_are_synced(index, monkeypatch):
    """A write at the first sync of a refit, which may take minutes, gets through."""
    path, synced, while_kept_out = index.path.parent, [], []
    monkeypatch.setattr("klsa_search.storage.generations.WRITE_TIMEOUT", 0)

    def slow(file, former=generations.sync):
        if not synced:
            index.add(records([50]))
        synced.append(file)
        try:
            with writing(path):
                pass
        except IndexBusy:
            while_kept_out.append(file.name)
        former(file)

    monkeypatch.setattr(generations, "sync", slow)
    again = refit(path)
    assert again.ids()[-1] == "50"
    assert not [name for name in while_kept_out if name.endswith(".npy")]
    assert {file.name for file in synced} >= again.manifest.files.keys()
    again.close()


@pytest.mark.parametrize("partitions", [1, 2])
def test_replayed_calls_are_undone_one_by_one(tmp_path, partitions):
    options = {"partitions": partitions, "workers": 1} if partitions > 1 else {}
    index = build(records(range(30)), name="carried", home=tmp_path, **options)
    path = index.path.parent
    built = index.ids()
    states = []

    def write():
        for first, after in ((30, 33), (33, 36), (36, 2100)):
            index.write([Document(id=f"n{n}", title="", text="late") for n in range(first, after)])
            states.append(sorted(index.ids()))

    refit(path, progress=meanwhile(write)).close()
    with open_index(path) as again:
        for state in (*reversed(states), sorted(built)):
            assert sorted(again.ids()) == state
            if state != sorted(built):
                undo_writes(path, 1)
                again.refresh()
    with pytest.raises(StoreError, match="has 0 batches"):
        undo_writes(path, 1)
    index.close()
