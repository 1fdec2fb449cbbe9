"""open_collection: invalid sources, where names are looked up, file names that are not UTF-8."""

import os
import shutil

import pytest

from klsa_search.collection import open_collection
from klsa_search.collection.model import Collection
from klsa_search.collection.public_collections import cache_directory, collection_directories
from klsa_search.errors import CollectionError


@pytest.mark.parametrize("source", [None, 5, 0.5, object()])
def test_other_objects_are_refused_as_sources(source):
    with pytest.raises(CollectionError, match="give a path, one of"):
        open_collection(source)


def test_a_blank_source_is_not_this_folder():
    with pytest.raises(CollectionError, match="the source is blank; give a path"):
        open_collection("")


def test_a_collection_is_distinguished_from_other_iterables():
    assert isinstance(open_collection([]), Collection)
    assert not isinstance([], Collection)


def test_names_are_looked_for_where_the_commands_look(tmp_path, monkeypatch):
    (tmp_path / "shared" / "collections").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv("KLSA_COLLECTIONS", raising=False)
    assert collection_directories() == [cache_directory()]
    named = tmp_path / "named"
    monkeypatch.setenv("KLSA_COLLECTIONS", str(named))
    assert collection_directories() == [named, cache_directory()]
    with pytest.raises(CollectionError, match=r"no collection `med` in .*named or "):
        open_collection("med")
    (named / "med").mkdir(parents=True)
    (named / "med" / "MED.ALL").write_text(".I 1\n.W\nheat\n")
    (named / "med" / "MED.QRY").write_text(".I 1\n.W\nheat\n")
    (named / "med" / "MED.REL").write_text("1 0 1 1\n")
    assert [document.id for document in open_collection("med").documents()] == ["1"]


def test_a_name_is_looked_for_in_every_folder(tmp_path):
    for place, name in (("a", "other"), ("b", "MED"), ("c", "med")):
        folder = tmp_path / place / name
        folder.mkdir(parents=True)
        (folder / "MED.ALL").write_text(f".I 1\n.W\n{place}\n")
        (folder / "MED.QRY").write_text(".I 1\n.W\na\n")
        (folder / "MED.REL").write_text("1 0 1 1\n")
    homes = [tmp_path / place for place in ("nowhere", "a", "b", "c")]
    (document,) = open_collection("med", data=homes).documents()
    assert document.text == "b"


def test_a_name_found_nowhere_is_to_be_fetched_where_it_will_be_found(tmp_path):
    first, last = tmp_path / "first", tmp_path / "the last"
    with pytest.raises(CollectionError) as caught:
        open_collection("med", data=[first, last])
    message = caught.value.message
    assert f"{first} or {last}" in message
    assert f"`klsa-eval fetch med --data '{last}'`" in message
    assert "data=" in message
    with pytest.raises(CollectionError, match=r"name one with data=FOLDER .*fetch cran --data"):
        open_collection("cran-1837", data=[])


def test_a_folder_whose_name_is_not_utf_8(tmp_path):
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("needs file names of any bytes")
    with open(folder + b"/a.txt", "w") as stream:
        stream.write("prose")
    source = open_collection(os.fsdecode(folder))
    assert source.name == "caf\ufffd"
    assert [document.id for document in source.documents()] == ["a.txt"]


@pytest.mark.parametrize(
    ("name", "fact"),
    [("notes", "was removed"), ("notes/one.jsonl", "cannot be read")],
)
def test_a_source_that_is_removed_before_it_is_read_is_named(tmp_path, name, fact):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.jsonl").write_text('{"id": "1", "text": "one"}\n')
    collection = open_collection(tmp_path / name)
    shutil.rmtree(tmp_path / "notes")
    with pytest.raises(CollectionError, match=f"{name}.*{fact}"):
        list(collection.documents())
