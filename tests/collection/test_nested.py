"""Nested objects: dotted names as columns, fields and searched texts."""

import json

import pytest

import klsa_search as klsa
from klsa_search.collection import open_collection
from klsa_search.collection.field_paths import flat, has_path, value_at, without_paths
from klsa_search.errors import CollectionError, SettingsError

BOOK = {
    "id": "1",
    "text": "pump",
    "author": {"name": "Ann", "born": {"year": 1970}},
    "parts": [{"n": "a", "size": 1}, {"n": "b", "size": 2}, {"n": ["c", "d"]}],
    "a.b": 1,
    "a": {"b": 2},
}


def test_paths_go_through_objects_and_lists():
    assert value_at(BOOK, "author.name") == "Ann"
    assert value_at(BOOK, "author.born.year") == 1970
    assert value_at(BOOK, "parts.n") == ["a", "b", "c", "d"]
    assert value_at(BOOK, "a.b") == 1  # a name with dots comes first
    assert value_at(BOOK, "author.nobody") is None
    assert not has_path(BOOK, "author.nobody")
    assert flat(BOOK) == {
        "id": "1",
        "text": "pump",
        "author.name": "Ann",
        "author.born.year": 1970,
        "parts.n": ["a", "b", "c", "d"],
        "parts.size": [1, 2],
        "a.b": 1,
    }


def test_a_field_read_by_path_leaves_the_rest():
    left = without_paths(BOOK, ["author.name", "text", "parts.n"])
    assert left["author"] == {"born": {"year": 1970}}
    assert left["parts"] == [{"size": 1}, {"size": 2}, {}]
    assert "text" not in left
    assert BOOK["author"]["name"] == "Ann"
    assert without_paths({"a": {"b": {"c": 1}}}, ["a.b.c"]) == {}


@pytest.fixture(params=["command's file", "Python", "added"])
def books(request, tmp_path):
    """An index of two books that came in three ways."""
    other = {"id": "2", "text": "pump two", "author": {"name": "Bob"}}
    home = tmp_path / "index"
    if request.param == "Python":
        return klsa.build([BOOK, other], name="books", home=home, search="text,author.name")
    if request.param == "added":
        index = klsa.build([BOOK], name="books", home=home, search="text,author.name")
        index.add([other])
        return index
    path = tmp_path / "books.jsonl"
    path.write_text(f"{json.dumps(BOOK)}\n{json.dumps(other)}\n")
    return klsa.build(path, name="books", home=home, search="text,author.name")


def test_nested_fields_are_filtered_counted_and_searched(books):
    def found(**search):
        return [hit.id for hit in books.search(**search).hits]

    assert found(query="pump", filter="author.name = Ann") == ["1"]
    assert found(query="pump", filter="author.born.year > 1960") == ["1"]
    assert found(query="pump", filter="parts.n = b AND parts.size = 2") == ["1"]
    assert found(query="bob") == ["2"]
    facets = books.search("pump", facets=["author.name"]).facets
    assert dict(facets["author.name"].values) == {"Ann": 1, "Bob": 1}


def test_columns_may_be_paths(tmp_path):
    row = {"_id": "a", "_source": {"title": "Pump", "body": "It leaks", "year": 2024}}
    path = tmp_path / "dump.jsonl"
    path.write_text(json.dumps(row) + "\n")
    named = open_collection(path, columns={"title": "_source.title", "text": ["_source.body"]})
    (document,) = named.documents()
    assert (document.id, document.title, document.text) == ("a", "Pump", "It leaks")
    assert document.metadata == {"_source": {"year": 2024}}
    recognised = open_collection(path)
    (same,) = recognised.documents()
    assert (same.title, same.text, same.metadata) == ("Pump", "It leaks", document.metadata)
    assert "'_source.body' as text" in recognised.notes[0]
    assert recognised.options["columns"]["text"] == ["_source.body"]


def test_an_object_as_text_names_its_fields():
    with pytest.raises(CollectionError, match=r"name one of its fields: text\.en, text\.de"):
        list(open_collection([{"id": "1", "text": {"en": "a", "de": "b"}}]).documents())


def test_a_declared_field_that_nothing_has_is_an_error(tmp_path):
    with pytest.raises(SettingsError, match=r"no document has a field `autor\.name`.*author\.name"):
        klsa.build([BOOK], name="b", home=tmp_path / "index", fields=["autor.name"])
