"""Vectors on the command line: build with a file of rows, info, export and back."""

import json

import numpy as np

from klsa_search import open_index
from klsa_search.collection.vectors import quantised, vectors_of

ROWS = np.random.default_rng(0).normal(size=(2, 3))
RECORDS = [{"id": f"d{number}", "text": f"word{number}"} for number in range(2)]


def test_rows_of_a_file_are_added_and_exported(shell, tmp_path):
    (tmp_path / "docs.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in RECORDS))
    np.save(tmp_path / "rows.npy", ROWS.astype(np.float32))
    built = shell("klsa-index", "build", "docs.jsonl", "--name", "a", "--vectors", "m=rows.npy")
    assert "2 of 2 documents, dimension 3" in built.out
    assert "vectors (m)" in shell("klsa-index", "info", "a").out
    assert shell("klsa-index", "info", "a", "--json").json["vectors"][0]["dimension"] == 3
    shell("klsa-index", "dump", "a", "out.jsonl")
    shell("klsa-index", "build", "out.jsonl", "--name", "b")
    with open_index("index/a") as one, open_index("index/b") as other:
        assert list(one.live_documents()) == list(other.live_documents())
        stored = [vectors_of(each)["m"] for each in other.live_documents()]
        np.testing.assert_array_equal(np.concatenate(stored), quantised(ROWS.astype(np.float32)))


def test_wrong_vectors_are_refused(shell, tmp_path):
    (tmp_path / "docs.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in RECORDS))
    np.save(tmp_path / "rows.npy", ROWS[:1])
    build = ("klsa-index", "build", "docs.jsonl", "--name", "a", "--vectors")
    for given, fact in (
        (("m=rows.npy",), "1 row,"),
        (("rows.npy",), "names no space"),
        (("m=rows.npy", "--vectors", "m=rows.npy"), "given twice"),
        (("m=rows.npy", "--cluster", "local"), "--cluster needs --partitions"),
    ):
        failed = shell(*build, *given)
        assert failed.code
        assert fact in failed.err
