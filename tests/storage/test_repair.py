"""One changed byte: CURRENT and offsets are recovered, or damage is named."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from klsa_search.collection import Document
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.storage.current import current_generation, read_current
from klsa_search.storage.judgements import Judgements
from klsa_search.storage.maintenance import rollback, verify
from klsa_search.storage.manifest import read_manifest
from klsa_search.storage.names import LOCKS
from klsa_search.storage.repair import (
    RecoveredRecords,
    export,
    readable_documents,
    readable_generations,
    recovered_current,
    refuse_faults,
    repair_current,
)
from klsa_search.storage.rules import Rule, write_rules
from klsa_search.storage.synonyms import write_synonyms
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.catalogs import read_rules, read_synonyms

from .worlds import write_documents

BASE = [
    Document(id=f"d{n}", title=f"Title {n}", text=f"text of {n}", metadata={"n": n})
    for n in range(12)
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two generations; the one in use was written to, and there is a file of every kind."""
    path = tmp_path_factory.mktemp("recovery") / "cars"
    write_documents(path, BASE[:5])
    write_documents(path, BASE)
    with LogWriter(current_generation(path)) as writer:
        writer.append([Document(id="new", text="later")], ["d3"])
    write_synonyms(path, {"tv": ("television",)})
    write_rules(path, [Rule(id="first", then={"hide": ["d1"]})])
    Judgements(path).put("brakes", "d1", 1)
    return path


@pytest.fixture
def path(made, tmp_path):
    shutil.copytree(made.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "cars"


def flipped(file, position, bits):
    content = bytearray(file.read_bytes())
    content[position] ^= bits
    file.write_bytes(content)


def sampled(file, count):
    size = file.stat().st_size
    return sorted({size * each // count for each in range(count)} | {size - 1})


@pytest.mark.parametrize("in_use", ["000001", "000002"])
def test_any_changed_byte_of_current_is_found(path, in_use):
    if in_use == "000001":
        rollback(path)
    whole = (path / "CURRENT").read_bytes()
    for position in range(0, len(whole), 1 if in_use == "000002" else 5):
        for bits in (3,) if position > 9 else (1, 3, 0x80):
            flipped(path / "CURRENT", position, bits)
            with pytest.raises((IndexDamaged, IndexNotFound), match="klsa-index repair cars"):
                verify(path)
            (path / "CURRENT").write_bytes(whole)
    verify(path)


@pytest.mark.parametrize("content", [b"", b"000007", b"\0" * 164, None])
@pytest.mark.parametrize("in_use", ["000001", "000002"])
def test_without_current_the_generation_that_was_written_last_is_in_use(path, in_use, content):
    if in_use == "000001":
        rollback(path)
        with LogWriter(path / in_use) as writer:
            writer.append(deletes=["d0"])
        for file in (path / "000002").glob("WRITES*"):
            file.unlink()
    whole = read_current(path)
    if content is None:
        (path / "CURRENT").unlink()
    else:
        (path / "CURRENT").write_bytes(content)
    assert recovered_current(path) == whole
    repair_current(path)
    assert read_current(path) == whole


def test_a_changed_manifest_is_not_taken_for_a_changed_current(path):
    flipped(path / "000002" / "manifest.json", 50, 1)
    assert repair_current(path) is None
    with pytest.raises(IndexDamaged, match=r"000002/manifest\.json"):
        read_manifest(path / "000002")


def test_without_any_manifest_no_generation_is_taken_into_use(path):
    for file in (path / "CURRENT", *path.glob("*/manifest.json")):
        file.unlink()
    with pytest.raises(IndexDamaged, match=r"cannot read `.*000002/manifest\.json`; .*backup"):
        repair_current(path)
    assert not (path / "CURRENT").exists()


def test_headers_and_starts_are_recovered_and_records_are_not_guessed(path):
    generation = path / "000002"
    manifest = read_manifest(generation)
    for name, recovered in (("documents_starts", True), ("documents", False)):
        file = generation / f"{name}.npy"
        whole = file.read_bytes()
        for position in (*sampled(file, 25), 3, 60, 100):
            flipped(file, position, 0x21)
            records = RecoveredRecords(generation)
            if recovered or position < 128:
                assert records.fault(manifest) is None, (name, position)
                assert list(records.documents()) == BASE
            else:
                assert f"{name}.npy has changed" in records.fault(manifest)
            file.write_bytes(whole)
    (generation / "documents_starts.npy").write_bytes(b"")
    assert RecoveredRecords(generation).fault(manifest) is None


def test_export_gives_all_that_can_be_read_of_a_damaged_index(path, tmp_path):
    generation = path / "000002"
    names = ["manifest.json", "documents.npy", "documents_starts.npy", "documents_keys.npy",
             "WRITES", "WRITES-begun"]  # fmt: skip
    wanted = {document.id for document in BASE} - {"d3"} | {"new"}
    for name in names:
        file = generation / name
        whole = file.read_bytes()
        for position in sampled(file, 7):
            flipped(file, position, 0x11)
            ids = {document.id for document in readable_documents(generation, [])}
            assert len(wanted - ids) <= 1 or (name == "WRITES" and wanted - {"new"} <= ids), (
                name,
                position,
            )
            file.write_bytes(whole)
    flipped(generation / "documents.npy", 165, 1)  # in the first text
    new = tmp_path / "new.jsonl"
    with pytest.raises(IndexDamaged, match="12 documents, but"):
        export([generation], new)
    assert len(new.read_text().splitlines()) == 12
    new.write_text("before")
    with pytest.raises(IndexDamaged, match="was not changed"):
        export([generation], new)
    assert new.read_text() == "before"


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        (["a"], r"could not be read: a$"),
        (["a", "b"], r": a \(and 1 more faults\)$"),
        (["a"] * 1_001, r": a \(and 1,000 more faults\)$"),
    ],
)
def test_the_first_fault_is_named_and_the_others_are_counted(faults, told):
    refuse_faults([], "it has 12 documents")
    with pytest.raises(IndexDamaged, match=told):
        refuse_faults(faults, "it has 12 documents")


def test_an_export_says_if_the_generation_in_use_is_not_known(path, tmp_path):
    faults = []
    assert readable_generations(path, faults) == [path / "000002"]
    assert faults == []
    rollback(path)
    (path / "CURRENT").write_bytes(b"")
    (generation,) = readable_generations(path, faults)
    with pytest.raises(IndexDamaged, match=r"is damaged.*`000002` was read"):
        export([generation], tmp_path / "all.jsonl", faults)


def test_verify_reads_every_file_of_an_index(path):
    verify(path)
    there = {entry.name for entry in path.iterdir() if entry.is_file()} - {*LOCKS}
    assert there == {"CURRENT", "KLSA-INDEX", "CATALOG-ID"}
    for name in ("KLSA-INDEX",):
        file = path / name
        whole = file.read_bytes()
        for position in range(0, 17 if name == "KLSA-INDEX" else len(whole), 9):
            flipped(file, position, 1)
            with pytest.raises((IndexDamaged, IndexNotFound), match=name):
                verify(path)
        file.write_bytes(whole)


def test_any_changed_byte_of_the_catalogue_is_found_or_changes_nothing(path):
    file = path.parent / "catalog.db"
    whole, before = file.read_bytes(), (read_synonyms(path), read_rules(path))
    found = 0
    for position in sampled(file, 60):
        flipped(file, position, 0x21)
        try:
            verify(path)
            same = (read_synonyms(path), read_rules(path)) == before
        except (IndexDamaged, StoreError) as damage:
            same = "catalog.db" in damage.message
            found += 1
        assert same, position
        file.write_bytes(whole)
    assert found


@pytest.mark.parametrize(
    ("change", "step"),
    [
        ("update synonyms set synonyms = '[]'", "klsa-index synonyms cars FILE"),
        ("update rules set rule = cast(x'ff' as text)", "restore the index directory"),
        ("update rules set id = 'second'", "klsa-index rules cars FILE"),
        ("update judgements set grade = -1", "restore the index directory"),
        ("update judgements set document = 'd2'", "restore the index directory"),
        ("update queries set text = 'breaks'", "restore the index directory"),
        ("update indexes set name = 'boats'", "restore the index directory"),
        ("pragma user_version = 1", "not a catalogue of this version"),
        ("pragma user_version = 9", "not a catalogue of this version"),
    ],
)
def test_a_changed_row_is_named_with_the_next_step(path, change, step):
    with closing(sqlite3.connect(path.parent / "catalog.db")) as database, database:
        database.execute(change)
    with pytest.raises(IndexDamaged, match=rf"catalog\.db.*{step}"):
        verify(path)
