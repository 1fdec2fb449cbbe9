"""klsa-index dump, backup and restore, and info about later writes."""

import json
from pathlib import Path

import pytest

from klsa_search.collection import Document
from klsa_search.storage.current import current_generation
from klsa_search.storage.write_log_writer import LogWriter


@pytest.fixture
def ids(shell, built):
    """Ids of an index that was written to after its build: one document gone, one new."""
    found = [
        json.loads(line)["id"] for line in shell("klsa-index", "dump", "cars").out.splitlines()
    ]
    with LogWriter(current_generation(Path("index/cars"))) as writer:
        writer.append([Document(id="new", title="New", text="brakes")], [found[0]])
        writer.append([Document(id="newer")])
        writer.undo()
    return [*found[1:], "new"]


def exported(text):
    return [json.loads(line)["id"] for line in text.splitlines()]


def test_an_export_has_what_lives(shell, ids):
    assert exported(shell("klsa-index", "dump", "cars").out) == ids
    done = shell("klsa-index", "dump", "cars", "out.jsonl")
    assert (done.code, done.out) == (0, f"cars: {len(ids)} documents in out.jsonl\n")
    assert exported(Path("out.jsonl").read_text()) == ids
    assert shell("klsa-index", "build", "out.jsonl", "--name", "again").code == 0
    assert shell("klsa-index", "dump", "again").out == Path("out.jsonl").read_text()


def test_a_backup_comes_back(shell, ids):
    done = shell("klsa-index", "backup", "cars", "kept")
    assert done.code == 0
    assert done.out.endswith("files copied to kept, checksums verified\n")
    assert shell("klsa-index", "backup", "cars", "kept").code == 1
    assert "already exists" in shell("klsa-index", "restore", "kept", "--name", "cars").err
    assert shell("klsa-index", "delete-index", "cars", "--yes").code == 0
    assert "no backup at `lost`" in shell("klsa-index", "restore", "lost", "--name", "cars").err
    assert shell("klsa-index", "restore", "kept", "--name", "cars").code == 0
    assert shell("klsa-index", "verify", "cars").code == 0
    assert exported(shell("klsa-index", "dump", "cars").out) == ids


def test_info_counts_the_writes(shell, ids):
    written = shell("klsa-index", "info", "cars", "--json").json["writes"]
    assert {name: written[name] for name in ("batches", "undone", "puts", "deletes")} == {
        "batches": 1,
        "undone": 1,
        "puts": 1,
        "deletes": 1,
    }
    assert written["bytes"] > 4096
    told = shell("klsa-index", "info", "cars").out
    assert "1 written, 1 deleted, 1 batch, 1 undone, " in told


def test_a_damaged_index_is_exported_as_far_as_it_can_be_read(shell, ids):
    Path("index/cars/000001/manifest.json").write_text("{")
    Path("index/cars/CURRENT").write_text("?")
    done = shell("klsa-index", "dump", "cars", "out.jsonl")
    assert done.code == 1
    assert "out.jsonl has 4 documents, but" in done.err
    assert exported(Path("out.jsonl").read_text()) == ids


def test_all_indexes_are_backed_up_and_restored(shell, ids):
    assert shell("klsa-index", "alias", "live", "cars").code == 0
    done = shell("klsa-index", "backup", "--all", "kept", "--keep", "2")
    assert done.code == 0
    assert done.out.startswith("backup 1: 1 index in kept, ")
    assert done.out.endswith(" written, checksums verified\n")
    listed = shell("klsa-index", "restore", "kept", "--list").out
    assert "number" in listed
    assert "cars" in listed
    assert shell("klsa-index", "restore", "kept", "--all", "--home", "other").code == 0
    assert exported(shell("klsa-index", "dump", "cars", "--home", "other").out) == ids
    assert "live" in shell("klsa-index", "alias", "--home", "other").out
    one = shell("klsa-index", "restore", "kept", "--name", "copy", "--index", "cars")
    assert one.out == "copy: restored from backup 1 in kept, checksums verified\n"
    assert exported(shell("klsa-index", "dump", "copy").out) == ids
    again = shell("klsa-index", "restore", "kept", "--name", "copy", "--index", "cars")
    assert "`index/copy` exists with other content" in again.err


def test_a_restored_directory_takes_the_target_over(shell, ids):
    assert shell("klsa-index", "backup", "--all", "kept").code == 0
    assert shell("klsa-index", "restore", "kept", "--all", "--home", "other").code == 0
    backup = ["klsa-index", "backup", "--all", "kept", "--home", "other"]
    refused = shell(*backup)
    assert refused.code == 1
    assert "klsa-index backup --all kept --take-over" in refused.err
    assert shell(*backup, "--take-over").code == 0
    assert shell(*backup).code == 0


def test_an_index_that_cannot_be_backed_up_is_named(shell, ids):
    Path("index/cars/CURRENT").write_text("?")
    done = shell("klsa-index", "backup", "--all", "kept")
    assert done.code == 1
    assert "some indexes were not backed up; their previous backup is kept: `cars`: " in done.err


def test_arguments_of_backups_are_checked(shell):
    for arguments in (["backup", "cars"], ["backup", "--all", "cars", "kept"], ["restore", "kept"]):
        done = shell("klsa-index", *arguments)
        assert done.code == 2
        assert "give " in done.err
