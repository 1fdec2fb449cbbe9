"""Export of documents, and backup of an index in use."""

import json
import shutil

import pytest

from klsa_search.collection import Document, open_collection
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.storage.current import current_generation
from klsa_search.storage.generations import describe_files, new_generation
from klsa_search.storage.maintenance import (
    copy_index,
    delete_index,
    indexes_in,
    rollback,
    unfinished_in,
    verify,
)
from klsa_search.storage.repair import export, readable_documents
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter

from .worlds import files_below, write_documents

BASE = [
    Document(id="a", title="A", text="one"),
    Document(id="b", text="two\n", metadata={"metadata": {"_id": "x"}, "n": [1, {"m": None}]}),
    Document(id="ü", title="\u2028", text="one\n\ftwo"),
]
NEW_B = Document(id="b", text="new\fpage", metadata={"title": "t", "text": 1, "far": 1e308})


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "tickets"
    with LogWriter(write_documents(path, BASE)) as writer:
        writer.append([NEW_B, Document(id="c"), Document(id="d")], ["a"])
        writer.append([Document(id="a", text="again")], ["d", "never"])
        yield path


def everything(path):
    faults = []
    found = list(readable_documents(current_generation(path), faults))
    assert faults == []
    return found


WANTED = [BASE[2], NEW_B, Document(id="c"), Document(id="a", text="again")]


def test_live_documents_are_exported_and_read_back_equal(index, tmp_path):
    assert everything(index) == WANTED
    file = tmp_path / "out.jsonl"
    file.write_text("before")
    assert export([current_generation(index)], file) == 4
    assert [json.loads(line)["id"] for line in file.open(encoding="utf-8")] == [
        document.id for document in WANTED
    ]
    read = list(open_collection(str(file)).documents())
    assert [(d.id, d.title, d.text, d.metadata) for d in read] == [
        (d.id, d.title, d.text, d.metadata) for d in WANTED
    ]


def test_an_export_that_fails_leaves_what_was_there(index, tmp_path):
    file = tmp_path / "out.jsonl"
    file.write_text("before")
    generation = current_generation(index)
    (generation / "documents.npy").unlink()
    with pytest.raises(IndexDamaged):
        export([generation], file)
    assert file.read_text() == "before"
    assert [each.name for each in tmp_path.iterdir() if "out" in each.name] == ["out.jsonl"]


def test_a_backup_is_the_index_and_comes_back(index, tmp_path):
    copy_index(index, tmp_path / "kept")
    shutil.rmtree(index)
    copy_index(tmp_path / "kept", index)
    for path in (index, tmp_path / "kept"):
        verify(path)
        assert everything(path) == WANTED
    with LogWriter(current_generation(index)) as writer:
        writer.append(deletes=["c"])
    assert len(WriteLog(current_generation(index)).batches()) == 3


def test_a_backup_takes_no_ones_place_and_no_damage(index, tmp_path):
    (tmp_path / "mine").mkdir()
    for target in (index, tmp_path / "mine"):
        with pytest.raises(StoreError, match="already exists; choose another name"):
            copy_index(index, target)
    path = current_generation(index) / "documents.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(IndexDamaged, match=r"tickets/000001/documents\.npy` has changed"):
        copy_index(index, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_an_interrupted_copy_is_repeated_and_is_not_an_index_before(index, tmp_path):
    target = tmp_path / "kept"
    with new_generation(target) as half:  # what a killed copy leaves
        (half / "documents.npy").write_bytes(b"half")
        shutil.copytree(target, tmp_path / "killed")
    killed = tmp_path / "killed"
    (killed / "CATALOG-ID").write_text("of another")
    assert indexes_in(tmp_path) == [index]
    assert killed in unfinished_in(tmp_path)
    with pytest.raises(IndexNotFound, match=r"killed is unfinished: .*delete-index killed"):
        current_generation(killed)
    copy_index(index, killed)
    assert everything(killed) == WANTED
    verify(killed)
    with pytest.raises(StoreError, match="already exists"):
        copy_index(index, killed)


def test_verify_looks_at_the_log(index):
    generation = current_generation(index)
    verify(index)
    (generation / "WRITES-begun").write_text("7")
    with pytest.raises(IndexDamaged, match=r"cannot read `.*WRITES`"):
        verify(index)


def test_the_log_stays_with_its_generation_and_goes_with_it(index):
    first = current_generation(index)
    (first / "delta-000001.npz").write_text("made from the log")
    before = describe_files(first)
    assert not [name for name in before if name.startswith(("WRITES", "delta"))]
    write_documents(index, BASE)
    assert everything(index) == BASE
    rollback(index)
    assert everything(index) == WANTED
    rollback(index, "000002")
    write_documents(index, BASE)
    assert not first.exists()
    assert delete_index(index) == []
    assert files_below(index.parent) == {}


def test_two_that_export_to_one_file_do_not_meet(index, tmp_path, monkeypatch):
    generation, file = current_generation(index), tmp_path / "out.jsonl"

    def within(path, faults, former=readable_documents):
        monkeypatch.setattr("klsa_search.storage.repair.readable_documents", former)
        assert export([path], file) == len(WANTED)
        yield from former(path, faults)

    monkeypatch.setattr("klsa_search.storage.repair.readable_documents", within)
    assert export([generation], file) == len(WANTED)
    assert file.read_text().count("\n") == len(WANTED)
    assert [each.name for each in tmp_path.iterdir() if "out" in each.name] == ["out.jsonl"]


def test_an_export_is_durable_with_its_name(index, tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("klsa_search.storage.repair.sync", synced.append)
    export([current_generation(index)], tmp_path / "out.jsonl")
    assert synced == [tmp_path]
