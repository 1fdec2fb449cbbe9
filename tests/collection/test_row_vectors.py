"""Vectors beside a source: row i belongs to the i-th document."""

import json

import numpy as np
import pytest

from klsa_search import build
from klsa_search.collection import open_collection
from klsa_search.collection.vectors import quantised, vectors_of
from klsa_search.errors import CollectionError, SettingsError

ROWS = np.random.default_rng(0).normal(size=(4, 3))
RECORDS = [{"id": f"d{number}", "text": f"word{number}"} for number in range(4)]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in RECORDS))
    return path


def stored(index):
    return {each.id: vectors_of(each)["m"].tolist() for each in index.live_documents()}


def expected(rows=ROWS):
    return {f"d{number}": quantised(row).tolist() for number, row in enumerate(rows)}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rows_are_those_of_the_documents(tmp_path, source, dtype):
    rows = ROWS.astype(dtype)
    np.save(tmp_path / "rows.npy", rows)
    for number, given in enumerate((rows, tmp_path / "rows.npy")):
        with build(source, name=f"i{number}", home=tmp_path, vectors={"m": given}) as index:
            assert stored(index) == expected(rows)


def test_stored_rows_and_several_spaces(tmp_path):
    rows = quantised(ROWS)
    with build(RECORDS, name="i", home=tmp_path, vectors={"m": rows, "n": ROWS[:, :2]}) as index:
        assert stored(index) == {f"d{number}": [row] for number, row in enumerate(rows.tolist())}
        assert [(each.name, each.dimension) for each in index.vector_spaces] == [("m", 3), ("n", 2)]


def test_the_files_of_a_folder_are_read_in_the_order_of_its_documents(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("b.txt", "a.txt", "c.md"):
        (folder / name).write_text(f"The text of {name}.")
    order = [each.id for each in open_collection(folder).documents()]
    with build(folder, name="i", home=tmp_path / "index", vectors={"m": ROWS[:3]}) as index:
        found = stored(index)
    assert [found[id_] for id_ in order] == [quantised(row).tolist() for row in ROWS[:3]]


NAN = ROWS.copy()
NAN[2, 1] = np.nan
ZERO = ROWS.copy()
ZERO[1] = 0


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        (ROWS[:3], "3 rows, and the source has more documents"),
        (np.vstack([ROWS, ROWS]), "8 rows, and the source has 4 documents"),
        (NAN, r"row 2 \(document 'd2'\) contains NaN"),
        (ZERO, r"row 1 \(document 'd1'\) contains only zeros"),
        (ROWS[0], r"of shape \(3,\)"),
        (ROWS.astype("complex64"), "type complex64"),
        (ROWS.astype("int64"), "type int64"),
        (np.zeros((4, 0)), "0 values a row"),
        (np.ones((4, 8193), np.int8), "8,193 values a row"),
        ([[1.0]], "is list"),
        ("absent.npy", "No such file"),
        ("text.npy", "not an array of NumPy"),
    ],
)
def test_wrong_rows_are_refused(tmp_path, source, monkeypatch, rows, fact):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.npy").write_text("text")
    with pytest.raises(CollectionError, match=fact):
        build(source, name="i", home=tmp_path, vectors={"m": rows})
    assert not (tmp_path / "i").exists()


def test_rows_that_could_be_of_other_documents_are_refused(tmp_path, source):
    with source.open("a") as file:
        file.write("no JSON\n" + json.dumps({"id": "last", "text": "word"}) + "\n")
    rows = np.ones((5, 3))
    with pytest.raises(CollectionError, match="record of the source was skipped"):
        build(source, name="i", home=tmp_path, on_error="skip", vectors={"m": rows})
    own = [{**RECORDS[0], "_vectors": {"m": [1, 2, 3]}}]
    with pytest.raises(CollectionError, match=r"row 0 .*has a vector in `_vectors\.m` already"):
        build(own, name="i", home=tmp_path, vectors={"m": rows[:1]})
    with pytest.raises(CollectionError, match="space 'a b'"):
        build(RECORDS, name="i", home=tmp_path, vectors={"a b": rows})


def test_a_collection_of_another_kind_is_refused(tmp_path, source):
    opened = open_collection(source)

    class Own:
        name, format, problems = "own", "own", opened.problems
        documents, queries, judgements = opened.documents, opened.queries, opened.judgements

    with pytest.raises(SettingsError, match="vectors cannot be added to a Own"):
        build(Own(), name="i", home=tmp_path, vectors={"m": ROWS})
