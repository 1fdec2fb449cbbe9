"""Refits of an index that is written to meanwhile."""

import shutil
from contextlib import closing

import pytest

from klsa_search import build, open_index
from klsa_search.errors import IndexBusy, StoreError
from klsa_search.indexing import build_like, refit, verify_deep
from klsa_search.storage.generations import writing
from klsa_search.storage.maintenance import rollback, verify
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.forked import another_thread
from tests.support.worlds import random_documents

TEXTS = random_documents(60, 45, seed=3)
PLAIN = {"stop_words": "none", "stemmer": "none"}
QUERIES = ["t00 t05", "t01 t20 t33", "t44 t02"]

CARS = [
    {"id": "heat", "title": "Heat", "text": "engines overheat when coolant leaks", "year": 1999},
    {"id": "cold", "title": "Cold", "text": "coolant thins in the cold and engines stall"},
    {"id": "tyre", "title": "Tyres", "text": "worn tyres slip on wet roads"},
]


def records(*numbers):
    return [
        {"id": str(number), "title": f"T{number}", "text": TEXTS[number], "year": 1900 + number}
        for number in numbers
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """An index of 30 documents, to which some were added, of which some were replaced or deleted"""
    home = tmp_path_factory.mktemp("written")
    with build(records(*range(30)), name="it", home=home, **PLAIN) as index:
        index.add([*records(*range(30, 40)), {"id": "3", "text": "t00 t33"}])
        index.delete(["0", "35"])
    return home


@pytest.fixture
def path(written, tmp_path):
    return shutil.copytree(written, tmp_path / "index") / "it"


def documents_of(path):
    index = open_index(path)
    held = index.documents_at(index.doc_ids(index.ids()))
    index.close()
    return held


def files_of(index):
    return {name: entry.sha256 for name, entry in index.manifest.files.items()}


def ranked(index):
    return [
        [(hit.id, hit.score) for hit in index.search(query, 100).hits] for query in QUERIES
    ]  # fmt: skip


def test_a_refit_equals_a_build_of_the_same_documents(path, tmp_path):
    held = documents_of(path)
    again = refit(path)
    fresh = build(held, name="it", home=tmp_path / "fresh", **PLAIN)
    assert again.generation == "000002"
    assert again.manifest.fingerprint == fresh.manifest.fingerprint
    assert files_of(again) == files_of(fresh)
    assert again.ids() == fresh.ids()
    assert ranked(again) == ranked(fresh)
    assert again.last_write.seq == 0
    assert again.manifest.source == "documents"
    verify(path)
    again.close()
    fresh.close()


@pytest.mark.parametrize("changes", [{}, {"alpha": 0.2}])
def test_an_empty_index_can_be_refitted_and_added_to(path, changes):
    with closing(open_index(path)) as index:
        index.delete(index.ids())
        assert (len(index), ranked(index)) == (0, [[], [], []])
    with closing(refit(path, **changes)) as index:
        assert (index.generation, len(index), ranked(index)) == ("000002", 0, [[], [], []])
        assert verify_deep(path).counts.documents == 0
        index.add(records(3, 4))
        assert index.rank("t00 t01 t02 t03 t04 t05", 5)
        assert verify_deep(path).counts.documents == 0
    with closing(refit(path)) as index:
        assert (index.generation, index.ids()) == ("000003", ["3", "4"])


def test_writes_during_a_refit_are_kept(path, tmp_path, monkeypatch):
    """At each phase of the build somebody adds one, replaces the last one and deletes another."""
    other, phases = open_index(path), []

    def progress(phase, done, total):
        if phase not in phases:
            phases.append(phase)
            number = 40 + len(phases)
            other.add([*records(number), {"id": "moved", "text": f"moved {len(phases)}"}])
            other.delete([str(len(phases))])

    again = refit(path, progress=progress)
    assert len(phases) > 2
    assert again.generation == "000002"
    gone = {str(number) for number in range(1, len(phases) + 1)} | {"0", "35"}
    wanted = {str(number) for number in range(40)} - gone
    wanted |= {str(40 + number) for number in range(1, len(phases) + 1)} | {"moved"}
    assert sorted(again.ids()) == sorted(wanted)
    assert again.document("moved").text == f"moved {len(phases)}"
    assert WriteLog(again.path).last().seq == 3 * len(phases)
    assert other.refresh()  # who had it open is on the new one, and writes there
    assert other.generation == "000002"
    other.add(records(55))
    assert again.refresh()
    assert again.document("55")
    assert ranked(again) == ranked(other)
    other.close()
    again.close()


def test_a_thread_that_goes_on_writing_loses_nothing(path):
    other, written = open_index(path), []

    def write():
        id_ = f"later-{len(written)}"
        other.add([{"id": id_, "text": "t00 later"}])
        written.append(id_)

    with another_thread(write):
        refit(path).close()
    again = open_index(path)
    assert again.generation == "000002"
    assert {*written} <= {*again.ids()}
    assert [id_ for id_ in again.ids() if id_.startswith("later")] == written
    again.close()
    other.close()


def test_the_generation_before_comes_back_with_its_log(path):
    before = documents_of(path)
    refit(path).close()
    later = open_index(path)
    later.add(records(50))
    later.close()
    assert rollback(path).now == "000001"
    assert documents_of(path) == before
    assert WriteLog(path / "000001").last().seq == 13
    assert rollback(path, "000002").now == "000002"
    assert documents_of(path)[-1].id == "50"


def test_a_rebuild_carries_over_what_its_index_has_not_taken_up(path):
    index, other = open_index(path), open_index(path)
    other.add(records(50))
    other.delete(["1"])
    again = refit(index, alpha=0.3)
    assert again.settings.alpha == 0.3
    assert "50" in again.ids()
    assert "1" not in again.ids()
    for each in (index, other, again):
        each.close()


def test_a_build_elsewhere_is_of_the_living_documents(path, tmp_path):
    index = open_index(path)
    like = build_like(index, home=tmp_path, name="other", k1=2.0)
    assert like.ids() == index.ids()
    assert like.document("3").text == "t00 t33"
    assert not WriteLog(like.path).batches()
    index.close()
    like.close()


def test_a_build_over_what_was_written_needs_a_yes(path):
    with pytest.raises(StoreError, match=r"11 documents added and 2 deleted.*klsa-index refit it"):
        build(records(*range(30)), name="it", home=path.parent, **PLAIN)
    assert len(documents_of(path)) == 38
    build(records(*range(30)), name="it", home=path.parent, replace=True, **PLAIN).close()
    assert len(documents_of(path)) == 30
    build(records(*range(30)), name="it", home=path.parent, **PLAIN).close()


def test_writes_that_were_undone_need_none(path):
    with writing(path), LogWriter(path / "000001") as writer:
        writer.undo(2)
    build(records(*range(30)), name="it", home=path.parent, **PLAIN).close()
    assert len(documents_of(path)) == 30


def test_one_refit_at_a_time(path):
    def progress(phase, done, total):
        with pytest.raises(IndexBusy, match="being changed by another process"):
            refit(path)

    refit(path, progress=progress).close()
    assert not (path / "000003").exists()


@pytest.mark.parametrize("changes", [{"alpha": 0.3}, {"k1": 2.0, "b": 0.4}, {"gamma": 0.9}])
def test_a_refit_equals_a_build_with_these_settings(tmp_path, changes):
    index = build(CARS, name="cars", home=tmp_path / "one", z=5)
    again = refit(index, **changes)
    wanted = build(CARS, name="cars", home=tmp_path / "two", z=5, **changes)
    assert again.generation == "000002"
    assert again.settings == wanted.settings
    assert again.manifest.fingerprint == wanted.manifest.fingerprint != index.manifest.fingerprint
    arrays = {name: file.sha256 for name, file in wanted.manifest.files.items() if "npy" in name}
    assert arrays.items() <= {n: f.sha256 for n, f in again.manifest.files.items()}.items()
    assert again.manifest.source == index.manifest.source
    assert dict(again.document("heat").metadata) == {"year": 1999}
    verify(again.path.parent)


def test_an_index_replaced_meanwhile_is_left_alone(tmp_path):
    index = build(CARS, name="cars", home=tmp_path)
    build(CARS[:2], name="cars", home=tmp_path)
    with pytest.raises(StoreError, match="rebuilt after generation 000001"):
        refit(index, alpha=0.3)
