"""Build beside, then point: what readers see while builds come, fail and die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from klsa_search.errors import IndexDamaged, IndexNotFound, SettingsError, StoreError
from klsa_search.store import current_generation, delete_index, index_path, indexes_in
from klsa_search.store.generations import describe_files, new_generation, seal
from klsa_search.store.manifest import FORMAT_VERSION, BuildEntry, Counts, Manifest


def manifest_of(generation):
    return Manifest(
        format_version=FORMAT_VERSION,
        package_version="0",
        source="test",
        fingerprint="0",
        settings={},
        counts=Counts(documents=0, terms=0, tokens=0, non_zeros=0, skipped=0),
        spectra={},
        build=BuildEntry(created="", seconds=0, peak_memory=0),
        files=describe_files(generation),
    )


def write(path, content):
    with new_generation(path) as generation:
        (generation / "content").write_text(content)
        seal(generation, manifest_of(generation))


def content(path):
    return (current_generation(path) / "content").read_text()


def generations(path):
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir())


def test_current_follows_the_last_whole_build_and_one_forerunner_stays(tmp_path):
    path = tmp_path / "a"
    for text in ("one", "two", "three"):
        write(path, text)
        assert content(path) == text
    assert generations(path) == ["000002", "000003"]


def test_a_failed_build_leaves_the_old_one_and_no_rubbish(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    with pytest.raises(RuntimeError), new_generation(path) as generation:
        (generation / "content").write_text("half")
        raise RuntimeError
    assert content(path) == "one"
    assert generations(path) == ["000001"]


DYING = """
import sys
from pathlib import Path
from klsa_search.store.generations import new_generation, describe_files, seal
with new_generation(Path(sys.argv[1])) as generation:
    (generation / "content").write_text("half")
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_build_leaves_the_old_one_and_its_rubbish_to_the_next(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    command = [sys.executable, "-c", DYING, path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    with pytest.raises(StoreError, match="another build"):
        write(path, "meanwhile")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert content(path) == "one"
    assert generations(path) == ["000001", "000002"]
    write(path, "two")
    assert content(path) == "two"
    assert generations(path) == ["000001", "000002"]


def test_a_sealed_generation_that_current_never_named_is_swept(tmp_path, monkeypatch):
    path = tmp_path / "a"
    write(path, "one")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        with pytest.raises(KeyboardInterrupt), new_generation(path) as generation:
            (generation / "content").write_text("sealed")
            patch.setattr("pathlib.Path.replace", interrupted)
            seal(generation, manifest_of(generation))
    assert content(path) == "one"
    write(path, "two")
    assert content(path) == "two"


def interrupted(*_):
    raise KeyboardInterrupt


def test_an_interrupt_after_the_switch_leaves_the_new_index_whole(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    with pytest.raises(KeyboardInterrupt), new_generation(path) as generation:
        (generation / "content").write_text("two")
        seal(generation, manifest_of(generation))
        raise KeyboardInterrupt
    assert content(path) == "two"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to name descriptors")
def test_everything_is_durable_before_current_is_replaced(tmp_path, monkeypatch):
    told = []
    path = tmp_path / "a"
    sync, replace = os.fsync, Path.replace

    def fsync(descriptor):
        told.append(os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(str(tmp_path) + "/"))
        sync(descriptor)

    def replaced(self, target):
        told.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replaced)
    write(path, "one")
    assert told == [
        "a/000001/content",
        "a/000001/manifest.json",
        "a/000001",
        "a/CURRENT.new",
        "replace",
        "a",
        str(tmp_path),
    ]


def test_deleting_waits_for_no_build(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    with pytest.raises(StoreError, match="another build"), new_generation(path):
        delete_index(path)
    assert content(path) == "one"


def test_a_damaged_index_can_be_deleted(tmp_path):
    write(tmp_path / "a", "one")
    (tmp_path / "a" / "CURRENT").write_text("000009")
    delete_index(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_deletion_left_is_no_index_and_in_nobodys_way(tmp_path):
    write(tmp_path / "a", "one")
    (tmp_path / "a").replace(tmp_path / ".a.deleted")
    assert indexes_in(tmp_path) == []
    write(tmp_path / "a", "two")
    delete_index(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_first_build_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), new_generation(tmp_path / "a"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_is_not_there_is_named_with_the_next_step(tmp_path):
    with pytest.raises(IndexNotFound, match=r"klsa-index build SOURCE --name a"):
        current_generation(tmp_path / "a")


@pytest.mark.parametrize("named", ["000007", ""])
def test_a_current_that_names_nothing_is_damage(tmp_path, named):
    write(tmp_path / "a", "one")
    (tmp_path / "a" / "CURRENT").write_text(named)
    with pytest.raises(IndexDamaged, match="rebuild"):
        current_generation(tmp_path / "a")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-a", "a b", ".hidden", "x" * 101, "a\n"])
def test_names_that_are_no_plain_file_names_are_refused(tmp_path, name):
    with pytest.raises(SettingsError, match="name"):
        index_path(tmp_path, name)


def test_deleting_and_listing(tmp_path):
    assert indexes_in(tmp_path / "nowhere") == []
    write(tmp_path / "b", "one")
    write(tmp_path / "a", "one")
    (tmp_path / "no-index").mkdir()
    assert [path.name for path in indexes_in(tmp_path)] == ["a", "b"]
    delete_index(tmp_path / "a")
    assert [path.name for path in indexes_in(tmp_path)] == ["b"]
    with pytest.raises(IndexNotFound):
        delete_index(tmp_path / "a")
