"""Rows as Python programs have them."""

import datetime
import sqlite3
from collections import namedtuple
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from types import SimpleNamespace

import numpy as np
import pydantic
import pytest

import klsa_search as klsa
from klsa_search.collection import open_collection
from klsa_search.errors import CollectionError

Row = namedtuple("Row", "id text size")


@dataclass
class Part:
    id: str
    text: str


class Model(pydantic.BaseModel):
    id: str
    text: str
    title: str | None = None


def database_row():
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection.execute("SELECT 'a' AS id, 'pump' AS text").fetchone()


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "pump")],
        [Row("a", "pump", 3)],
        [Part("a", "pump")],
        [Model(id="a", text="pump")],
        [SimpleNamespace(id="a", text="pump", _state=object())],
        [database_row()],
        [{"id": "a", "text": "pump"}],
        [{"key": "a", "body": "pump"}],
        {"a": "pump"},
        {"a": {"text": "pump"}},
        iter([("a", "", "pump")]),
    ],
)
def test_every_kind_of_row_is_a_document(rows):
    assert [(each.id, each.text) for each in open_collection(rows).documents()] == [("a", "pump")]


@pytest.mark.parametrize("texts", [["pump", "valve"], np.array(["pump", "valve"])])
def test_texts_are_a_numbered_corpus(tmp_path, texts):
    source = open_collection(texts)
    assert [(each.id, each.text) for each in source.documents()] == [("1", "pump"), ("2", "valve")]
    assert source.numbered == ["documents"]
    index = klsa.build(texts, name="texts", home=tmp_path)
    with pytest.raises(CollectionError, match="have no IDs"):
        index.add(["hose"])
    assert index.add([("3", "hose")]) == 1


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (float("nan"), None),
        (np.float32("nan"), None),
        (np.datetime64("NaT"), None),
        (Decimal("NaN"), None),
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.array([1, 2]), [1, 2]),
        (np.datetime64("2024-03-01"), "2024-03-01"),
        (np.datetime64("2024-03-01T09:30:00.000000001"), "2024-03-01T09:30:00"),
        (datetime.datetime(2024, 3, 1, 9, 30), "2024-03-01T09:30:00"),
        ({"b", "a"}, ["a", "b"]),
        ({"x": np.int8(1), "y": float("nan")}, {"x": 1, "y": None}),
    ],
)
def test_values_of_other_libraries_are_those_of_json(value, stored):
    (document,) = open_collection([{"id": np.int64(1), "text": "a", "v": value}]).documents()
    assert (document.id, document.metadata) == ("1", {"v": stored})
    assert document.metadata["v"] is None or type(document.metadata["v"]) is type(stored)


@pytest.mark.parametrize("row", [5, None, b"pump", ["a", "b"], ("a", "b", "c", "d")])
def test_other_rows_are_refused_with_what_to_give(row):
    with pytest.raises(CollectionError, match=r"document 1: is of type \w+; give a text, a tuple"):
        list(open_collection([row]).documents())


def test_paths_and_members_of_enumerations_are_values():
    state = Enum("State", {"OPEN": "open"})
    row = {"id": "a", "text": "pump", "file": PurePosixPath("a/b"), "state": state.OPEN}
    [document] = open_collection([row]).documents()
    assert document.metadata == {"file": "a/b", "state": "open"}


@pytest.mark.parametrize("rows", [[{0: "a", 1: "pump"}], [{"id": "a", "text": "pump", 7: "x"}]])
def test_columns_without_names_are_refused(rows):
    """As those of a data frame that was made of a list of lists."""
    with pytest.raises(CollectionError, match="named by a value of type int; name the columns"):
        list(open_collection(rows).documents())
    assert list(open_collection(rows, on_error="skip").documents()) == []


class Slotted:
    __slots__ = ("id", "text", "unset")

    def __init__(self, id_, text):
        self.id, self.text = id_, text


def test_rows_with_named_fields_are_their_values():
    fields = [("id", "i4"), ("text", "U20"), ("price", "f4")]
    table = np.array([(1, "a pump", np.nan), (2, "a valve", 2.5)], dtype=fields)
    documents = list(open_collection(table).documents())
    assert [(document.id, document.text) for document in documents] == [
        ("1", "a pump"),
        ("2", "a valve"),
    ]
    assert [document.metadata["price"] for document in documents] == [None, 2.5]
    [document] = open_collection([Slotted(1, "a pump")]).documents()
    assert (document.id, document.text, document.metadata) == ("1", "a pump", {})


def test_one_mapping_with_an_id_and_a_text_is_a_document():
    for row in ({"id": "1", "text": "pump"}, {"_id": 1, "title": "pump", "n": 5}):
        (document,) = open_collection(row).documents()
        assert (document.id, document.title or document.text) == ("1", "pump")
    assert len(list(open_collection({"pump": "It leaks", "valve": "Stuck"}).documents())) == 2


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        ({"pump": "a text", "text": "about text", "title": "about titles"}, "pump text title"),
        ({"id": {"title": "x", "text": "y"}, "b": {"text": "z"}}, "id b"),
        ({"id": "about IDs", "pump": "It leaks"}, "id pump"),
        ({"id": "1", "text": "pump", "colour": "red"}, "1"),
        ({"title": "Pump", "text": "It leaks"}, "1"),
        ({"text": "It leaks", "n": 5}, "1"),
    ],
)
def test_names_of_fields_may_be_ids_of_texts(rows, ids):
    assert [document.id for document in open_collection(rows).documents()] == ids.split()


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(CollectionError, match="'id' has 2, 'text' has 1; give each one for each"):
        open_collection({"id": ["a", "b"], "text": ["pump"]}).documents().__next__()


def test_a_range_is_a_column():
    rows = open_collection({"id": range(2), "text": ("pump", "valve")})
    assert [(row.id, row.text) for row in rows.documents()] == [("0", "pump"), ("1", "valve")]


def test_bytes_are_the_content_of_a_file():
    source = open_collection(b'[{"id": "1", "text": "pump"}]')
    assert [(document.id, document.text) for document in source.documents()] == [("1", "pump")]


def test_bytes_in_a_field_are_refused_with_what_to_do():
    with pytest.raises(CollectionError, match="'text' is a bytes, not a string; decode it"):
        list(open_collection([{"id": "1", "text": b"pump"}]).documents())
