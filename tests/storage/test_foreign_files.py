"""Files of the user in or next to an index are never changed."""

import errno
import os

import pytest

from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.storage.directories import is_index
from klsa_search.storage.generations import new_generation
from klsa_search.storage.maintenance import delete_index, indexes_in, verify
from klsa_search.storage.names import MARKER, NEW_MARKER

from .worlds import content, files_below, folders, without_marks, write


def keep(folder, *names):
    """Put files of the user's into a folder; returns all that is below it."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"my {name}")
    return files_below(folder)


@pytest.mark.parametrize(
    "names",
    [
        ["2023/may.txt"],
        ["000001/may.txt", "notes.txt"],
        ["CURRENT"],
        ["CURRENT", "000001/manifest.json"],
        ["LOCK"],
        ["KLSA-INDEX"],
        [".hidden"],
    ],
)
def test_a_folder_that_is_not_an_index_is_refused_and_left_alone(tmp_path, names):
    mine = keep(tmp_path / "reports", *names)
    with pytest.raises(StoreError, match=r"reports` is there and is not an index.*choose another"):
        write(tmp_path / "reports", "one")
    with pytest.raises(StoreError, match="reports` is there and is not an index"):
        delete_index(tmp_path / "reports")
    assert files_below(tmp_path / "reports") == mine


def test_a_file_and_a_broken_link_are_not_indexes_either(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link"):
        with pytest.raises(StoreError, match="exists and is not a folder"):
            write(tmp_path / name, "one")
        with pytest.raises(StoreError, match="exists and is not a folder"):
            delete_index(tmp_path / name)
    assert files_below(tmp_path) == {"file": "mine", "link": str(tmp_path / "nowhere")}


def test_an_empty_folder_can_become_an_index_and_is_empty_again_if_that_fails(tmp_path):
    path = tmp_path / "a"
    path.mkdir()
    with pytest.raises(RuntimeError), new_generation(path):
        raise RuntimeError
    assert list(path.iterdir()) == []
    write(path, "one")
    assert content(path) == "one"


def test_the_folders_that_a_failed_build_made_go_with_it(tmp_path):
    with pytest.raises(RuntimeError), new_generation(tmp_path / "deep" / "home" / "a"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


MINE = ["202301/may.txt", "000007/manifest.json", "000004/may.txt", "notes.txt", ".cache/x", "1"]


@pytest.mark.parametrize("marked", [False, True])
def test_files_of_the_user_in_an_index_outlive_builds_failures_and_its_deletion(tmp_path, marked):
    path = tmp_path / "a"
    write(path, "one")
    if not marked:
        without_marks(path)
    mine = keep(path / "2023", "may.txt") and keep(path, *MINE)
    mine = {name: text for name, text in mine.items() if text.startswith("my ")}
    (path / "000009").symlink_to(tmp_path)
    for number in range(2, 5):
        write(path, str(number))
        with pytest.raises(RuntimeError), new_generation(path):
            raise RuntimeError
    assert content(path) == "4"
    stay = delete_index(path)
    assert files_below(path) == {**mine, "000009": str(tmp_path)}
    assert {entry.name for entry in stay} == {
        *(name.split("/")[0] for name in MINE), "2023", "000009",
    }  # fmt: skip
    assert indexes_in(tmp_path) == []


def test_a_generation_is_removed_with_all_that_is_in_it(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    keep(path, "000001/notes.txt", "000001/figures/one.txt")
    (path / "000001" / "manifest.json").write_text("{")
    for text in ("two", "three", "four"):
        write(path, text)
    assert folders(path) == ["000003", "000004"]
    assert delete_index(path) == []


def test_a_generation_is_removed_after_an_interrupted_removal(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    keep(path, ".000002.klsa-gone/documents.npy")
    with pytest.raises(RuntimeError, match="source"), new_generation(path):
        keep(path, ".000002.klsa-gone/documents.npy")
        raise RuntimeError("source")
    assert folders(path) == ["000001"]


def test_a_name_that_looks_half_done_is_not_ours_unless_it_is_exactly_ours(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    (path / ".000002.klsa-new").mkdir()
    (path / ".000001.klsa-gone").mkdir()
    mine = [".000002.klsa-new.txt", ".2.klsa-gone/x", ".000003.klsa-gone", "000004.klsa-new/x"]
    keep(path, *mine)
    write(path, "two")
    assert set(mine) <= set(files_below(path))
    assert not (path / ".000002.klsa-new").exists()
    assert not (path / ".000001.klsa-gone").exists()


def test_no_link_in_an_index_is_written_through(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    for name in (".CURRENT.klsa-new", "CURRENT.new"):
        (path / name).symlink_to(victim)
    write(path, "two")
    assert (content(path), victim.read_text()) == ("two", "mine")
    (path / "CURRENT").unlink()
    (path / "CURRENT").symlink_to(victim)
    write(path, "three")
    assert (content(path), victim.read_text()) == ("three", "mine")
    assert not (path / "CURRENT").is_symlink()


def test_a_lock_that_is_a_link_is_refused_and_what_it_names_stays(tmp_path):
    path = tmp_path / "a"
    write(path, "one")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (path / "LOCK").unlink()
    (path / "LOCK").symlink_to(victim)
    with pytest.raises(StoreError, match=r"LOCK is a link or a folder, .*; move it away"):
        write(path, "two")
    (path / "LOCK").unlink()
    os.link(victim, path / "LOCK")
    write(path, "two")
    assert (content(path), victim.read_text()) == ("two", "mine")


@pytest.mark.parametrize(
    "name", ["CURRENT", "KLSA-INDEX", ".CURRENT.klsa-new", ".CURRENT.klsa-deleted"]
)
def test_a_folder_under_a_name_of_ours_is_refused_before_anything_is_changed(tmp_path, name):
    path = tmp_path / "a"
    write(path, "one")
    (path / name).unlink(missing_ok=True)
    (path / name).mkdir()
    mine = keep(path, f"{name}/x")
    for change in (lambda: write(path, "two"), lambda: delete_index(path)):
        with pytest.raises(StoreError, match=f"{name}` is a folder that does not belong"):
            change()
        assert files_below(path) == mine
    if name != "CURRENT":
        assert content(path) == "one"


def test_deleting_a_linked_index_deletes_the_link(tmp_path):
    write(tmp_path / "elsewhere" / "a", "one")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "a").symlink_to(tmp_path / "elsewhere" / "a")
    write(tmp_path / "home" / "a", "two")
    assert delete_index(tmp_path / "home" / "a") == []
    assert list((tmp_path / "home").iterdir()) == []
    assert content(tmp_path / "elsewhere" / "a") == "two"


def test_a_link_to_a_folder_of_the_user_is_not_deleted(tmp_path):
    mine = keep(tmp_path / "docs", "may.txt")
    (tmp_path / "a").symlink_to(tmp_path / "docs")
    with pytest.raises(StoreError, match="is there and is not an index"):
        delete_index(tmp_path / "a")
    assert (tmp_path / "a").is_symlink()
    assert files_below(tmp_path / "docs") == mine


def test_deleting_an_index_takes_no_name_next_to_it(tmp_path):
    write(tmp_path / "a", "one")
    mine = keep(tmp_path / ".a.deleted", "may.txt")
    delete_index(tmp_path / "a")
    assert files_below(tmp_path / ".a.deleted") == mine
    with pytest.raises(IndexNotFound):
        delete_index(tmp_path / "a")


@pytest.mark.parametrize("left", [b"", b"klsa-search", b"klsa-search index"])
def test_a_mark_that_could_not_be_written_blocks_nothing(left, tmp_path):
    """A process that died, or found the disk full, while it wrote the first file of an index."""
    path = tmp_path / "a"
    path.mkdir()
    (path / NEW_MARKER).write_bytes(left)
    with new_generation(path) as generation:
        assert generation.is_dir()
    assert is_index(path)
    assert not (path / NEW_MARKER).exists()


@pytest.mark.parametrize("content", ["", "my own notes"])
def test_a_file_of_that_name_that_is_not_ours_stays(tmp_path, content):
    path = tmp_path / "a"
    path.mkdir()
    (path / MARKER).write_text(content)
    with pytest.raises(StoreError, match="is not an index"), new_generation(path):
        pass
    assert (path / MARKER).read_text() == content


def test_a_marker_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    path = tmp_path / "a"
    write(path, "one")

    def refuse(file, *_):
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr("klsa_search.storage.directories.read_regular", refuse)
    message = r"cannot read `.*KLSA-INDEX` \(Permission denied\); check its owner and permissions"
    for call in (verify, delete_index):
        with pytest.raises(IndexDamaged, match=message):
            call(path)
