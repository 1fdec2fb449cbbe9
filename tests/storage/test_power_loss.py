"""Power loss at any moment: acknowledged writes are there, all others complete or absent."""

import pytest

from klsa_search.collection import Document
from klsa_search.errors import IndexNotFound
from klsa_search.storage.maintenance import verify
from klsa_search.storage.write_log import WriteLog
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.power_loss import disks, lay_out, record

from .worlds import content, write

WRITES = """
import os
from pathlib import Path
from klsa_search.collection import Document
from klsa_search.storage.write_log_writer import LogWriter

with LogWriter(Path("log")) as writer:
    for batch in (1, 2, 3):
        writer.append([Document(id=f"{batch} {n}", text="some text " * 90) for n in range(batch)])
        os.write(1, f"{batch} ".encode())
    writer.undo()
    os.write(1, b"undone ")
"""
BUILDS = """
import os
from pathlib import Path
from klsa_search.storage.maintenance import rollback
from tests.storage.worlds import write

for text in ("one", "two", "three"):
    write(Path("index"), text)
    os.write(1, f"{text} ".encode())
rollback(Path("index"))
os.write(1, b"two ")
"""


def batches_of(log):
    """Numbers of the batches that can be read, all of which are whole."""
    assert log.check() >= log.last().seq
    ids = [row.id for row in log.rows()]
    batches = sorted({int(id_.split()[0]) for id_ in ids})
    assert ids == [f"{batch} {n}" for batch in batches for n in range(batch)]
    return batches


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_log_has_what_was_acknowledged(tmp_path, every):
    (folder := tmp_path / "run").mkdir()
    (folder / "log").mkdir()
    states = [[], [1], [1, 2], [1, 2, 3], [1, 2]]
    tried = 0
    for acknowledged, disk in disks(record(WRITES, folder, tmp_path / "trace"), every=every):
        lay_out(disk, tmp_path / "disk")
        log, done = WriteLog(tmp_path / "disk" / "log"), len(acknowledged)
        found = batches_of(log)
        assert found in states[done : done + 2], acknowledged
        with LogWriter(tmp_path / "disk" / "log") as writer:
            writer.append([Document(id=f"9 {n}") for n in range(9)])
        assert batches_of(log) == [*found, 9]
        tried += 1
    assert tried > 60 // every


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_a_commit_is_whole_or_absent(tmp_path, every):
    (folder := tmp_path / "run").mkdir()
    states = [None, "one", "two", "three", "two"]
    tried = 0
    for acknowledged, disk in disks(record(BUILDS, folder, tmp_path / "trace"), every=every):
        lay_out(disk, tmp_path / "disk")
        path, done = tmp_path / "disk" / "index", len(acknowledged)
        try:
            found = content(path)
            verify(path)
        except IndexNotFound:
            found = None
        assert found in states[done : done + 2], acknowledged
        write(path, "four")
        assert content(path) == "four"
        tried += 1
    assert tried > 60 // every


@pytest.mark.slow
def test_a_commit_without_syncs_is_noticed(tmp_path):
    (folder := tmp_path / "run").mkdir()
    program = f"import os; os.fsync = lambda _: None\n{BUILDS}"
    for acknowledged, disk in disks(record(program, folder, tmp_path / "trace")):
        if acknowledged:
            lay_out(disk, tmp_path / "disk")
            with pytest.raises(IndexNotFound):
                content(tmp_path / "disk" / "index")
            return
