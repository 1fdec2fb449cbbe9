"""Data frames as sources."""

import importlib.util
from datetime import date, datetime

import pytest

from klsa_search import build
from klsa_search.collection import Document, open_collection

COLUMNS = {
    "id": ["a", "b"],
    "title": ["Tyres", None],
    "text": ["Bald tyres slip.", "Wet roads."],
    "year": [2018, 2022],
    "price": [1.5, None],
    "seen": [datetime(2024, 3, 1, 9, 30), None],
    "day": [date(2024, 3, 1), date(2024, 3, 2)],
    "about": [["tyres", "roads"], []],
}


@pytest.fixture(params=["pandas", "polars"])
def frames(request):
    return pytest.importorskip(request.param, reason=f"needs {request.param}").DataFrame


def test_a_row_is_a_document(frames):
    first, second = open_collection(frames(COLUMNS)).documents()
    assert first == Document(
        id="a",
        title="Tyres",
        text="Bald tyres slip.",
        metadata={
            "year": 2018,
            "price": 1.5,
            "seen": "2024-03-01T09:30:00",
            "day": "2024-03-01",
            "about": ["tyres", "roads"],
        },
        origin="document 1",
    )
    assert (second.title, second.metadata["price"], second.metadata["seen"]) == ("", None, None)


def test_a_frame_is_built_and_added_and_read_twice(frames, tmp_path):
    frame = frames(COLUMNS)
    index = build(frame, name="cars", home=tmp_path)
    assert (len(index), index.fields["seen"].type) == (2, "date")
    assert index.add(frame) == 2
    assert [hit.id for hit in index.search("tyres", filter="year < 2020")] == ["a"]
    index.close()


def test_answers_are_a_frame_by_the_frames_own_constructor(frames, tmp_path):
    index = build(frames(COLUMNS), name="cars", home=tmp_path)
    found = frames(index.search("roads tyres").hits)
    assert list(found.columns)[:5] == ["rank", "id", "score", "title", "snippet"]
    assert set(found["id"]) == {"a", "b"}
    index.close()


def test_rows_without_ids_are_numbered(frames):
    documents = open_collection(frames({"text": ["x", "y"]})).documents()
    assert [document.id for document in documents] == ["1", "2"]


def test_gaps_of_pandas_are_none():
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    frame = pandas.DataFrame(
        {"id": [1, 2], "n": pandas.array([1, None], "Int64"), "at": [pandas.NaT, pandas.NaT]}
    )
    documents = list(open_collection(frame).documents())
    assert [each.id for each in documents] == ["1", "2"]
    assert [each.metadata for each in documents] == [{"n": 1, "at": None}, {"n": None, "at": None}]


def test_lazy_frames_and_tables_of_arrow_are_read():
    frame = pytest.importorskip("polars", reason="needs polars").DataFrame(COLUMNS)
    tables = [frame.lazy()]
    if importlib.util.find_spec("pyarrow"):
        tables += [frame.to_arrow(), frame.to_arrow().to_reader()]
    for table in tables:
        assert [row.id for row in open_collection(table).documents()] == ["a", "b"]
