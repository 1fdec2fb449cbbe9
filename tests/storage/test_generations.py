"""Generations: what readers see while builds start, fail and are killed."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from klsa_search.errors import SettingsError, StoreError
from klsa_search.storage.generations import commit, new_generation, sync_files
from klsa_search.storage.maintenance import rollback
from klsa_search.storage.manifest import FORMAT_VERSION
from klsa_search.storage.names import index_path
from tests.support.waiting import PATIENCE

from .worlds import content, folders, manifest_of, replace_manifest, without_marks, write


def test_current_follows_the_last_whole_build_and_one_forerunner_stays(tmp_path):
    path = tmp_path / "a"
    for text in ("one", "two", "three"):
        write(path, text)
        assert content(path) == text
    assert folders(path) == ["000002", "000003"]


DYING = """
import sys
from pathlib import Path
from klsa_search.storage.generations import new_generation, describe_files, commit
with new_generation(Path(sys.argv[1])) as generation:
    (generation / "vocabulary.txt").write_text("half")
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
    with pytest.raises(StoreError, match="is being changed by another process"):
        write(path, "meanwhile")
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    process.stdin.close()
    process.stdout.close()
    assert content(path) == "one"
    assert folders(path) == ["000001", "000002"]
    write(path, "two")
    assert content(path) == "two"
    assert folders(path) == ["000001", "000002"]


def test_former_generations_go_only_after_the_new_one_is_sealed(tmp_path):
    path = tmp_path / "a"
    for text in ("one", "two"):
        write(path, text)
    with pytest.raises(RuntimeError), new_generation(path) as generation:
        (generation / "vocabulary.txt").write_text("half")
        assert folders(path) == ["000001", "000002", "000003"]
        raise RuntimeError
    assert folders(path) == ["000001", "000002"]
    assert content(path) == "two"


@pytest.mark.parametrize("damage", ["", "0", "\0" * 7, "000009\n", None])
def test_a_current_that_is_damaged_costs_no_whole_generation(tmp_path, damage):
    path = tmp_path / "a"
    for text in ("one", "two"):
        write(path, text)
    if damage is None:
        (path / "CURRENT").unlink()
    else:
        (path / "CURRENT").write_text(damage)
    with pytest.raises(RuntimeError), new_generation(path):
        raise RuntimeError
    assert folders(path) == ["000001", "000002"]
    write(path, "three")
    assert content(path) == "three"
    assert folders(path)[:-1] == ["000001", "000002"]  # either may have been the one in use
    write(path, "four")
    assert content(path) == "four"
    assert len(folders(path)) == 2


@pytest.mark.parametrize("name", ["vocabulary.txt", "manifest.json"])
@pytest.mark.parametrize("damage", ["", "longer than it was"])
def test_a_build_over_a_damaged_generation_keeps_the_newest_whole_one(tmp_path, name, damage):
    path = tmp_path / "a"
    for text in ("one", "two"):
        write(path, text)
    (path / "000002" / name).write_text(damage)
    write(path, "three")
    assert content(path) == "three"
    assert folders(path) == ["000001", "000003"]
    rollback(path)
    assert content(path) == "one"


def test_a_used_generation_of_another_format_stays_next_to_the_newest_complete_one(tmp_path):
    path = tmp_path / "a"
    for text in ("one", "two"):
        write(path, text)
    text = (path / "000002" / "manifest.json").read_bytes()
    own = b'"format_version": %d' % FORMAT_VERSION
    replace_manifest(path / "000002", text.replace(own, b'"format_version": 99'))
    write(path, "three")
    assert folders(path) == ["000001", "000002", "000003"]


def test_after_a_rollback_and_a_damaged_current_what_was_in_use_stays(tmp_path):
    path = tmp_path / "a"
    for text in ("one", "two"):
        write(path, text)
    rollback(path)
    (path / "CURRENT").write_text("")
    write(path, "three")
    assert folders(path) == ["000001", "000002", "000003"]
    rollback(path, "000001")
    assert content(path) == "one"


def test_without_a_complete_generation_none_is_removed(tmp_path):
    path = tmp_path / "a"
    for text in ("one", "two"):
        write(path, text)
    for manifest in path.glob("0*/manifest.json"):
        manifest.write_text("{")
    write(path, "three")
    assert folders(path) == ["000001", "000002", "000003"]


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_a_folder_that_is_removed_while_it_is_built_in_is_named(tmp_path, first, deep):
    path = tmp_path / "a"
    if not first:
        write(path, "one")
    removed = pytest.raises(StoreError, match=r"/a/00000\d` was removed during the build")
    with removed, new_generation(path) as generation:
        shutil.rmtree(path if deep else generation)
        (generation / "scratch").mkdir()
    assert not path.exists() or folders(path) == ["000001"]


def test_an_index_without_marks_is_read_marked_and_swept(tmp_path):
    path = tmp_path / "a"
    for text in ("one", "two"):
        write(path, text)
    without_marks(path)
    assert content(path) == "two"
    with pytest.raises(RuntimeError), new_generation(path):
        raise RuntimeError
    assert content(path) == "two"
    write(path, "three")
    assert content(path) == "three"
    assert folders(path) == ["000002", "000003"]
    assert (path / "KLSA-INDEX").is_file()


def test_a_generation_has_its_mark_from_the_moment_it_is_seen(tmp_path, monkeypatch):
    seen = []
    rename = os.rename

    def renamed(source, target, **options):
        seen.append(sorted(os.listdir(source)))
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", renamed)
    write(tmp_path / "a", "one")
    assert seen == [["KLSA-INDEX"]]


def test_an_old_generation_that_cannot_be_removed_is_reported(tmp_path, monkeypatch):
    path = tmp_path / "a"
    for text in ("one", "two"):
        write(path, text)

    def refused(folder, *_, **__):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr("shutil.rmtree", refused)
    with pytest.raises(
        StoreError, match=r"built generation `000003` .*could not remove an old one"
    ):
        write(path, "three")
    assert content(path) == "three"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to name descriptors")
def test_everything_is_durable_before_current_is_replaced(tmp_path, monkeypatch):
    told = []
    path = tmp_path / "a"
    sync, replace = os.fsync, os.replace

    def fsync(descriptor):
        told.append(os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(str(tmp_path) + "/"))
        sync(descriptor)

    def replaced(source, target):
        told.append(f"replaced {Path(target).relative_to(tmp_path)}")
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replaced)
    write(path, "one")
    last = told.index("replaced a/CURRENT")
    before, after = told[:last], told[last + 1 :]
    assert set(before) >= {
        "a/.KLSA-INDEX.klsa-new",
        "a/000001/KLSA-INDEX",
        "a/000001/vocabulary.txt",
        "a/000001/.manifest.json.klsa-new",
    }
    assert "a/000001" in before[before.index("replaced a/000001/manifest.json") :]
    assert before[-1] == "a/.CURRENT.klsa-new"
    assert after == ["a", str(tmp_path)]


def test_an_interrupt_after_the_switch_leaves_the_new_index_whole(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    with pytest.raises(KeyboardInterrupt), new_generation(path) as generation:
        (generation / "vocabulary.txt").write_text("two")
        sync_files(generation)
        commit(generation, manifest_of(generation))
        raise KeyboardInterrupt
    assert content(path) == "two"


def test_a_first_build_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), new_generation(tmp_path / "a"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_not_plain_file_names_are_refused(tmp_path):
    for name in (
        "", ".", "..", "a/b", "-a", "a b", ".hidden", "x" * 101, "a\n", "\na", "/etc/passwd",
        "../a", "a/../b", "a/000001", "..\\..\\etc", "a\0", "\0", "%2e%2e%2f", "....//", "~root",
        "C:\\", "file:///etc/passwd", ".keys.json", "\u2024\u2024/", "é",
    ):  # fmt: skip
        with pytest.raises(SettingsError, match="name"):
            index_path(tmp_path, name)


def test_a_first_build_that_the_disk_has_no_room_for_leaves_nothing(tmp_path, monkeypatch):
    """Whichever of its syncs is the first to fail; what CURRENT names by then is whole."""
    fsync = os.fsync
    for room in range(1000):
        path, left = tmp_path / f"home{room}" / "a", [room]

        def synced(descriptor, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(descriptor)

        with monkeypatch.context() as patch, suppress(OSError, StoreError):
            patch.setattr(os, "fsync", synced)
            write(path, "one")
        if (path / "CURRENT").exists():
            assert content(path) == "one"
        else:
            assert not path.parent.exists()
        if left[0] >= 0:
            break
    assert room > 3
