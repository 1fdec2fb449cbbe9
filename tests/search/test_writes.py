"""An index with later writes: exact at once, and the same for every reader."""

import pickle
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from klsa_search import Document, build, open_index
from klsa_search.analysis import Analyzer
from klsa_search.collection import Topic
from klsa_search.core.config import Settings
from klsa_search.errors import (
    ArgumentError,
    CollectionError,
    DocumentNotFound,
    QueryError,
    StoreError,
    WritingRefused,
)
from klsa_search.evaluation.measures import rank_best
from klsa_search.indexing import refit
from klsa_search.indexing.replay import refuse_rebuilt
from klsa_search.kernels.bm25 import average_length, live_length
from klsa_search.kernels.query_kernel import TermWeighting
from klsa_search.lowrank import sparse_expansion
from klsa_search.search.engine.engine import Bm25Engine
from klsa_search.search.parts.generation import OpenGeneration
from klsa_search.search.rankers import RANKERS
from klsa_search.search.state.drift import Drift
from klsa_search.storage.generations import writing
from klsa_search.storage.maintenance import delete_index
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.examples import one_in
from tests.support.forked import another_thread
from tests.support.worlds import counts_of, query_kernel, random_documents

TEXTS = random_documents(90, 45, seed=8)
BUILT = 40
QUICK_RANKERS = [name for name, row in RANKERS.items() if not row.is_heavy]
PLAIN = {"stop_words": "none", "stemmer": "none"}


def records(numbers, texts=TEXTS):
    return [{"id": str(number), "text": texts[number % len(texts)]} for number in numbers]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """An index that nobody writes to."""
    home = tmp_path_factory.mktemp("living")
    build(records(range(BUILT)), name="living", home=home, **PLAIN).close()
    return home / "living"


@pytest.fixture
def path(built, tmp_path):
    return shutil.copytree(built, tmp_path / "living")


@pytest.fixture
def index(path):
    opened = open_index(path)
    yield opened
    opened.close()


def ranked(index, query, k=1000, **parameters):
    positions, scores = index.rank(query, k, **parameters)
    return list(zip(index.ids(positions), scores.tolist(), strict=True))


def fresh_bm25(documents, average):
    """Answer `QUERIES` by BM25 over documents that nothing ever happened to: [(hits, total)].

    average  the mean length of the index, which may be a step of its grid from theirs
    """
    counts = counts_of(*documents.values())
    numbers = counts.vocabulary.numbers
    chosen = Settings(**PLAIN)
    terms = sorted(Analyzer(chosen).common() & numbers.keys())
    common = np.array([numbers[term] for term in terms], np.int64)
    weighting = TermWeighting(chosen.burstiness, common, chosen.common_weight)
    mean = average_length(counts.lengths) if counts.lengths.any() else 0.0
    assert average is None or live_length(average, mean) == average
    engine = Bm25Engine(query_kernel(counts, weighting=weighting, average=average))
    asked = [[numbers.get(term, -1) for term in query.split()] for query in QUERIES]
    ids = [*documents]
    return [
        (
            [(ids[n], score) for n, score in zip(top.doc_ids, top.scores.tolist(), strict=True)],
            top.total,
        )
        for top in engine.top(asked, 1000, totals=True)
    ]


QUERIES = ["t01 t20 t33", "new t03", "other t00"]

LATER = [*TEXTS[40:], "new t03", "other " * 40, ""]

writes = st.one_of(
    st.tuples(
        st.just("put"),
        st.lists(
            st.tuples(st.integers(0, 60), st.sampled_from(LATER)),
            min_size=1,
            max_size=6,
            unique_by=lambda put: put[0],
        ),
    ),
    st.tuples(st.just("delete"), st.lists(st.integers(0, 60), min_size=1, max_size=12)),
    st.tuples(st.just("undo"), st.just([])),
    st.tuples(st.just("open"), st.just([])),
)


# Examples are fresh in each run, and one of them takes 0.1 s.
@one_in(3)
@given(history=st.lists(writes, min_size=1, max_size=4))
@example(history=[("delete", [0]), ("delete", [0, BUILT]), ("undo", [])])
def test_after_any_history_bm25_is_that_of_a_fresh_build(built, tmp_path_factory, history):
    path = shutil.copytree(built, tmp_path_factory.mktemp("history") / "living")
    index, documents = open_index(path), {str(n): TEXTS[n] for n in range(BUILT)}
    before = []  # the states that can be gone back to
    for kind, what in history:
        if kind == "open":
            index.close()
            index = open_index(path)
        elif kind == "undo":
            if not before:
                continue
            documents = before.pop()
            with writing(path), LogWriter(index.path) as writer:
                writer.undo()
            assert index.refresh()
        elif kind == "put":
            before.append(dict(documents))
            some = [{"id": str(number), "text": text} for number, text in what]
            assert index.add(some) == len(some)
            for one in some:
                documents.pop(one["id"], None)
                documents[one["id"]] = one["text"]
        else:
            ids = [str(number) for number in what]
            if gone := {*ids} & documents.keys():  # else nothing is written
                before.append(dict(documents))
            assert index.delete(ids) == len(gone)
            for one in ids:
                documents.pop(one, None)
        assert index.ids() == [*documents]
        assert len(index) == len(documents)
    fresh = fresh_bm25(documents, index.arrays.average_length)
    for query, (expected, total) in zip(QUERIES, fresh, strict=True):
        assert ranked(index, query, ranker="bm25") == expected
        assert index.search(query, 1, ranker="bm25").total == total
    again = open_index(path)
    for query in QUERIES:
        assert ranked(again, query) == ranked(index, query)
        assert not {id_ for id_, _ in ranked(index, query)} - documents.keys()
        assert [hit.id for hit in again.search(query, 5).hits] == [
            id_ for id_, _ in ranked(index, query, 5)
        ]
    again.close()
    index.close()


def test_the_division_of_writes_changes_no_bit(path, index, tmp_path):
    other_path = shutil.copytree(path, tmp_path / "other")
    other = open_index(other_path)
    index.add(records(range(30, 60)))
    index.delete([str(number) for number in range(25, 45)])
    index.add(records(range(60, 70)))
    for first in range(30, 60, 7):
        other.add(records(range(first, min(first + 7, 60))))
    for number in range(25, 45):
        other.delete([str(number)])
    other.add(records(range(60, 70)))
    for query, ranker in product(QUERIES, QUICK_RANKERS):
        assert ranked(index, query, ranker=ranker) == ranked(other, query, ranker=ranker)
        exact = {"exact": True} if ranker == "klsa" else {}
        scores = index.scores(query, ranker=ranker, **exact)
        assert scores.shape == (index.max_doc,)
        assert np.array_equal(scores, other.scores(query, ranker=ranker, **exact))
    other.close()


def test_a_later_document_is_found_by_what_it_is_about(index):
    """Not by its words alone: one that shares none with the query comes with those it is like."""
    index.add([{"id": "near", "text": " ".join(set(TEXTS[3].split()) - {"t05"})}])
    found = [id_ for id_, _ in ranked(index, "t05")]
    assert "near" in found


def test_written_documents_are_read_back_unchanged(index):
    document = Document(
        id="ä b/?", title="Wing", text="Flow\nat  rest", metadata={"a": [1, {"b": None}]}
    )
    index.add([document])
    assert index.document("ä b/?") == document
    assert index.search("flow", ranker="bm25").hits[0].snippet == "Flow at rest"
    index.add([{"id": "ä b/?", "text": "other"}])
    assert index.document("ä b/?").text == "other"
    index.delete(["ä b/?"])
    with pytest.raises(DocumentNotFound):
        index.document("ä b/?")
    assert index.delete(["ä b/?", "never there"]) == 0


def test_a_single_id_is_not_read_as_letters(index):
    index.add([{"id": "x", "text": "kept"}, {"id": "xy", "text": "kept"}])
    with pytest.raises(ArgumentError, match="give a list of texts"):
        index.delete("xy")
    assert {"x", "xy"} <= set(index.ids())


def test_another_open_index_follows_on_refresh(path, index):
    other = open_index(path)
    pinned = other.snapshot()
    assert not other.refresh()
    index.add(records([70]))
    assert "70" not in other.ids()
    assert other.refresh()
    assert "70" in other.ids()
    assert not pinned.refresh()
    assert "70" not in pinned.ids()
    with pytest.raises(StoreError, match="snapshot"):
        pinned.add(records([71]))
    pinned.close()
    assert other.document("70").text == TEXTS[70]
    other.close()


def test_a_write_opens_its_log_once_and_sees_earlier_writes_of_others(path, index, monkeypatch):
    other = open_index(path)
    other.add(records([70]))
    connections, connect = [], sqlite3.connect

    def counted(database, *args, **kwargs):
        connections.append(database)
        return connect(database, *args, **kwargs)

    monkeypatch.setattr(sqlite3, "connect", counted)
    assert index.patch("70", {"title": "later"}).changed == 1
    assert len(connections) == 1
    other.refresh()
    assert index.document("70") == other.document("70")
    other.close()


def test_masks_are_of_positions_and_never_bring_back_what_is_gone(index):
    index.add(records(range(40, 50)))
    index.delete(["3", "41"])
    everything = np.ones(index.max_doc, np.bool_)
    assert ranked(index, "t00 t01", mask=everything) == ranked(index, "t00 t01")
    positions = index.doc_ids(["4", "42"])
    mask = np.zeros(index.max_doc, np.bool_)
    mask[positions] = True
    found = ranked(index, "t00 t01 t02", mask=mask)
    scores = dict(ranked(index, "t00 t01 t02"))
    assert found
    assert all(scores[id_] == score for id_, score in found)
    with pytest.raises(QueryError, match="max_doc"):
        index.rank("t00", mask=np.ones(BUILT, np.bool_))


def test_all_documents_can_go_and_others_come(index):
    index.delete(index.ids())
    assert (len(index), index.ids(), ranked(index, "t00")) == (0, [], [])
    assert index.search("t00").total == 0
    index.add(records([80, 81]))
    assert index.ids() == ["80", "81"]
    assert {id_ for id_, _ in ranked(index, TEXTS[80])} <= {"80", "81"}


def test_a_document_that_cannot_be_kept_leaves_its_batch_out(index):
    with pytest.raises(CollectionError):
        index.add([{"id": "a", "text": "t00"}, {"id": "x" * 600, "text": "t01"}])
    assert index.ids() == [str(number) for number in range(BUILT)]


def test_an_index_whose_d_is_whole_takes_no_writes(tmp_path):
    with_whole = build(records(range(9)), name="whole", home=tmp_path, preset="paper", **PLAIN)
    with pytest.raises(StoreError, match="is read-only"):
        with_whole.add(records([10]))
    with_whole.close()


def test_a_batch_beyond_the_last_document_number_is_not_logged(path, index, monkeypatch):
    monkeypatch.setattr(sparse_expansion, "MAX_DOCUMENTS", BUILT + 3)
    with pytest.raises(WritingRefused, match="40 of 43"):
        index.add(records([0, 1, 2, 3]))
    index.add(records([0, 1]))  # which replace others: their numbers are not free until a refit
    before = index.last_write
    for puts in (records([50, 51]), records([2, 3, 4])):
        with pytest.raises(WritingRefused, match=r"42 of 43 .*klsa-index refit living"):
            index.add(puts)
    assert WriteLog(index.path).last() == before
    assert index.add(records([2])) == 1
    assert index.delete(["3"]) == 1
    with closing(open_index(path)) as again:
        assert len(again) == BUILT - 1
    with closing(refit(path)) as fitted:
        assert fitted.add(records(range(50, 53))) == 3


def test_a_log_of_more_documents_than_the_limit_is_not_opened(path, index, monkeypatch):
    index.add(records([0, 1]))
    monkeypatch.setattr(sparse_expansion, "MAX_DOCUMENTS", BUILT + 1)
    with pytest.raises(StoreError, match="needs 42 doc ids, more than the limit of 41"):
        open_index(path)
    monkeypatch.setattr(sparse_expansion, "MAX_DOCUMENTS", BUILT + 2)
    open_index(path).close()


@pytest.mark.slow
def test_readers_see_whole_batches_while_one_writes(path, index):
    """Documents come and go in pairs; nobody ever sees half a pair."""
    index.add([{"id": "a0", "text": "pair t00"}, {"id": "b0", "text": "pair t00"}])
    reader, wrong = open_index(path), []

    def read():
        reader.refresh()
        ids = {hit.id for hit in reader.search("pair", 10, ranker="bm25").hits}
        sides = [{id_[1:] for id_ in ids if id_[0] == side} for side in "ab"]
        if sides[0] != sides[1] or not ids:
            wrong.append(ids)

    with another_thread(read):
        for number in range(1, 15):
            index.add([{"id": f"{side}{number}", "text": "pair t00"} for side in "ab"])
            index.delete([f"{side}{number - 1}" for side in "ab"])
    assert not wrong
    reader.close()


def test_fields_go_on_with_what_is_written(tmp_path):
    documents = [
        {**one, "metadata": {"year": 1990 + at}} for at, one in enumerate(records(range(9)))
    ]
    index = build(documents, name="f", home=tmp_path, fields=["rank:number"], **PLAIN)
    new = {"year": 1998, "team": "a", "rank": 5.5}
    added = index.add(
        [
            {"id": "3", "text": "t00 t01", "metadata": {"year": 1990, "rank": "7"}},
            {"id": "new", "text": "t00 t01", "metadata": new},
        ]
    )
    assert (added, added.warnings.count) == (2, 0)
    assert pickle.loads(pickle.dumps(added)).warnings.count == 0

    def found(mask):
        return index.ids(np.flatnonzero(mask))

    year = index.fields["year"]
    assert found(year.any_of([1990, 1993, 1998])) == ["0", "8", "3", "new"]
    assert found(index.fields["rank"].equal(7)) == ["3"]
    assert found(index.fields["team"].present()) == ["new"]
    assert {id_ for id_, _ in ranked(index, "t00 t01", mask=year.equal(1998))} >= {"new"}
    with pytest.raises(CollectionError, match="number field 'rank'"):
        index.add([{"id": "other", "text": "t00", "metadata": {"rank": "first"}}])
    with pytest.raises(CollectionError, match="document 'other': the number field 'rank' contains"):
        index.write([Document(id="other", text="t00", metadata={"rank": "first"})])
    odd = [{"id": f"odd{n}", "text": "t00", "metadata": {"year": "N/A"}} for n in range(7)]
    added = index.add(odd)
    assert (added, added.warnings.kinds, len(added.warnings.reasons)) == (7, {"year": 7}, 5)
    assert added.warnings.reasons[0] == (
        "document 'odd0': the number field 'year' has \"N/A\", which is not a number: "
        "it counts as missing"
    )
    assert found(index.fields["year"].between(1997)) == ["7", "8", "new"]
    assert index.fields["year"].type_mismatches == 7
    assert index.document("odd0").metadata == {"year": "N/A"}
    with closing(open_index(tmp_path / "f")) as again:
        assert again.fields["year"].type_mismatches == 7
        assert again.fields["year"].missing == index.fields["year"].missing
    with closing(refit(tmp_path / "f")) as fitted:
        assert fitted.fields["year"].type == "number"
        assert fitted.fields["year"].type_mismatches == 7
        assert fitted.manifest.fields.columns["year"].type_mismatches == 7
    index.refresh()
    index.delete([*(each["id"] for each in odd), "new"])
    assert found(index.fields["year"].between(1997)) == ["7", "8"]
    assert not index.fields["team"].present().any()
    index.close()


def test_positions_stay_as_they_are_until_a_document_is_added(tmp_path):
    """And masks of the fields are of as many, whatever was deleted."""
    documents = [{**one, "metadata": {"year": 1990}} for one in records(range(9))]
    with closing(build(documents, name="f", home=tmp_path, **PLAIN)) as index:
        assert len(index.fields["year"].equal(1990)) == index.max_doc == 9
        index.delete(["0"])
        mask = index.fields["year"].equal(1990)
        assert len(mask) == index.max_doc == 9
        assert ranked(index, "t00 t01", mask=mask) == ranked(index, "t00 t01")


def test_drift_measures_the_distance_from_the_build(index):
    """Of documents that count: what is gone again is no drift."""
    first = index.drift
    assert (first.added, first.deleted, first.words, first.unseen, first.bytes) == (0, 0, 0, 0, 0)
    index.add([{"id": "a", "text": "t00 t01 new newer"}, {"id": "0", "text": "t00 new"}])
    since = index.drift
    assert (since.added, since.deleted, since.words, since.unseen) == (2, 1, 6, 3)
    assert (since.unseen_share, since.added_share(len(index))) == (0.5, 2 / 41)
    assert since.bytes > 0
    index.delete(["a", "1"])
    since = index.drift
    assert (since.added, since.deleted, since.words, since.unseen) == (1, 2, 2, 1)
    assert (since.passed, since.changed_share(len(index))) == (1, 4 / 42)
    assert len(index) == BUILT + since.added - since.deleted
    index.delete(["0"])
    assert (index.drift.unseen_share, index.drift.added) == (0.0, 0)


def test_a_document_whose_words_stay_is_no_drift(index):
    """Whether of the build or later, and however often it is written."""
    for price in (1, 2):
        index.patch_many([{"id": str(number), "price": price} for number in range(BUILT)])
    assert index.drift == replace(Drift(), bytes=index.drift.bytes)
    index.add([{"id": "a", "text": "t00 new"}, {"id": "0", "text": "t00 new"}])
    before = index.drift
    assert (before.added, before.deleted, before.words, before.unseen) == (2, 1, 4, 2)
    index.write([*(index.document(id_) for id_ in ("a", "0", "1")), index.document("a")])
    index.patch("a", {"price": 3})
    assert index.drift == replace(before, bytes=index.drift.bytes)
    index.write([Document(id="1", text="t00")], ["1"])
    index.delete(["2", "a"])
    since = index.drift
    assert (since.added, since.deleted, since.passed) == (2, 3, 1)
    assert len(index) == BUILT + since.added - since.deleted


def test_rows_whose_texts_are_in_other_fields_are_refused(index, tmp_path):
    rows = [{"id": "a", "body_de": "t00 t01"}]
    with pytest.raises(CollectionError, match=r"texts are in 'body_de': name them.*columns=") as no:
        index.add(rows)
    assert (no.value.field, "a" in index.ids()) == ("columns.text", False)
    assert index.add(rows, columns={"text": "body_de"}) == 1
    assert index.add([*rows, {"id": "b", "text": "t02"}]) == 2
    assert index.add([{"id": "c", "kind": "t00"}]) == 1  # one word may be anything
    settings = {**PLAIN, "search": "text,note"}
    first = [{"id": "a", "text": "t00", "note": "t01 t02"}]
    with build(first, name="notes", home=tmp_path, **settings) as notes:
        assert notes.add([{"id": "b", "note": "t01 t03"}]) == 1


STEPS = {
    "coercion": "klsa_search.storage.columns.growing_columns.coerced",
    "folding": "klsa_search.delta.folding.DeltaBuilder.fold",
    "snapshot": "klsa_search.search.state.delta.Delta.state",
    "commit": "klsa_search.storage.write_log_writer.LogWriter._commit",
}
FAILURES = (ValueError, OverflowError, RecursionError, QueryError, OSError, MemoryError)


@one_in(4)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(FAILURES)), max_size=4))
def test_what_cannot_be_applied_is_not_written(tmp_path_factory, built, failures):
    """Whatever a step of a write raises: else each later reader would fail at it, too."""
    path = shutil.copytree(built, tmp_path_factory.mktemp("poison") / "living")
    with open_index(path) as index, open_index(path) as other:
        for number, (step, failure) in enumerate(failures, BUILT):
            before, (record,) = index.ids(), records([number])
            record |= {"price": number, "seen": "2024-03-01"}
            poison = Document(id="poison", text="t00", metadata={"price": "x"})
            failing = patch(STEPS[step], side_effect=failure("no"))
            with failing, pytest.raises((failure, StoreError)):
                index.write([poison], ["3"])
            assert index.ids() == before
            assert not other.refresh()
            assert index.add([record]) == 1
            assert other.refresh()
            assert other.ids() == index.ids() == [*before, str(number)]
    with open_index(path) as again:
        assert again.ids() == [*map(str, range(BUILT + len(failures)))]


def test_an_evaluated_ranking_names_live_documents(index):
    index.add(records([70, 71]))
    index.delete(["3"])
    (ranking,) = rank_best(index, [Topic(id="1", text="t00 t01")])
    assert list(ranking.document_ids) == [hit.id for hit in index.search("t00 t01", k=1000)]
    assert "3" not in ranking.document_ids
    assert {"70", "71"} & set(ranking.document_ids)


@pytest.mark.parametrize("partitions", [1, 2])
def test_an_index_built_in_the_place_of_a_deleted_one_is_opened(tmp_path, partitions):
    options = {"name": "living", "home": tmp_path, "partitions": partitions, "workers": 1, **PLAIN}
    with build(records(range(BUILT)), **options) as index:
        stale = index.snapshot()
        index.add(records(range(BUILT, BUILT + 3)))
        generation = index.generation
        delete_index(index.path.parent)
        build(records(range(5)), **options).close()
        with pytest.raises(StoreError, match="was rebuilt"):
            refuse_rebuilt(stale)
        assert index.refresh()
        assert (index.generation, index.ids()) == (generation, [str(n) for n in range(5)])
        index.add(records([5]))
        index.delete(["0"])
        with open_index(index.path.parent) as other:
            assert sorted(other.ids()) == sorted(index.ids()) == [str(n) for n in range(1, 6)]


def test_synonyms_changed_during_a_write_count_after_it(path, monkeypatch):
    write = OpenGeneration.write
    with open_index(path) as index, open_index(path) as other:

        def changed_meanwhile(*arguments):
            other.set_synonyms({"kettle": ["teapot"]})
            assert not index.refresh()
            return write(*arguments)

        monkeypatch.setattr(OpenGeneration, "write", changed_meanwhile)
        index.add(records([BUILT]))
        assert index.synonyms == {"kettle": ("teapot",)}
        assert not index.refresh()
