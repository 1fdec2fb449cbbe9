"""List, roll back and remove indexes of a directory."""

import json
import os
from pathlib import Path

import pytest

from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.storage.current import current_generation
from klsa_search.storage.directories import is_index
from klsa_search.storage.generations import committed_generations, new_generation
from klsa_search.storage.maintenance import delete_index, indexes_in, rollback, verify

from .worlds import content, folders, without_marks, write


def written(path, *texts):
    for text in texts:
        write(path, text)
    return path


def test_deleting_and_listing(tmp_path):
    assert indexes_in(tmp_path / "nowhere") == []
    write(tmp_path / "b", "one")
    write(tmp_path / "a", "one")
    (tmp_path / "no-index").mkdir()
    (tmp_path / "file").write_text("")
    assert [path.name for path in indexes_in(tmp_path)] == ["a", "b"]
    assert delete_index(tmp_path / "a") == []
    assert [path.name for path in indexes_in(tmp_path)] == ["b"]
    with pytest.raises(IndexNotFound):
        delete_index(tmp_path / "a")
    assert delete_index(tmp_path / "no-index") == []  # as of an interrupted restore
    assert not (tmp_path / "no-index").exists()


def test_an_index_that_cannot_be_looked_into_is_listed(tmp_path, monkeypatch):
    path = written(tmp_path / "a", "one")
    (tmp_path / "lost+found").mkdir()
    lstat = os.lstat

    def refused(entry, **options):
        if str(entry).endswith("CURRENT"):
            raise PermissionError(13, "Permission denied", str(entry))
        return lstat(entry, **options)

    monkeypatch.setattr("pathlib.Path.lstat", refused)
    assert indexes_in(tmp_path) == [path]


def test_deleting_waits_for_no_build(tmp_path):
    path = written(tmp_path / "a", "one")
    for change in (delete_index, rollback):
        with (
            pytest.raises(StoreError, match="is being changed by another process"),
            new_generation(path),
        ):
            change(path)
    assert content(path) == "one"


@pytest.mark.parametrize("current", ["000009", "", None])
def test_a_damaged_index_can_be_deleted(tmp_path, current):
    path = written(tmp_path / "a", "one")
    (path / "000001" / "manifest.json").write_text("{")
    if current is None:
        (path / "CURRENT").unlink()
    else:
        (path / "CURRENT").write_text(current)
    assert is_index(path)
    assert delete_index(path) == []
    assert list(tmp_path.iterdir()) == []


def test_an_index_without_marks_can_be_deleted(tmp_path):
    path = written(tmp_path / "a", "one", "two")
    without_marks(path)
    (path / "CURRENT").write_text("?")
    assert is_index(path)
    assert delete_index(path) == []
    assert list(tmp_path.iterdir()) == []


def test_going_back_and_forward(tmp_path):
    path = written(tmp_path / "a", "one", "two")
    back = rollback(path)
    assert (back.now, back.before, back.manifest) == ("000001", "000002", verify(path))
    assert content(path) == "one"
    with pytest.raises(StoreError, match=r"no generation before 000001.*: 000001, 000002"):
        rollback(path)
    assert rollback(path, "000002").before == "000001"
    assert content(path) == "two"
    assert verify(path)


def test_a_build_after_going_back_keeps_what_it_replaces(tmp_path):
    path = written(tmp_path / "a", "one", "two")
    rollback(path)
    write(path, "three")
    assert folders(path) == ["000001", "000003"]
    rollback(path)
    assert content(path) == "one"


@pytest.mark.parametrize("current", ["", "?", "000009", "000009\nsha256 " + "0" * 64 + "\n", None])
def test_going_back_mends_a_damaged_current(tmp_path, current):
    path = written(tmp_path / "a", "one", "two")
    if current is None:
        (path / "CURRENT").unlink()
    else:
        (path / "CURRENT").write_text(current)
    back = rollback(path)
    assert (back.now, back.before) == (
        "000002",
        "000009" if current and "sha256" in current else None,
    )
    assert content(path) == "two"


def test_going_back_needs_a_whole_generation(tmp_path):
    path = written(tmp_path / "a", "one", "two")
    manifest = path / "000001" / "manifest.json"
    whole = manifest.read_text()
    manifest.write_text(json.dumps(json.loads(whole) | {"source": "another"}))
    with pytest.raises(IndexDamaged, match=r"000001/manifest.json` has changed"):
        rollback(path)
    manifest.write_text(whole)
    (path / "000001" / "vocabulary.txt").write_text("longer")
    with pytest.raises(IndexDamaged, match=r"vocabulary\.txt` has 6 bytes, not 3"):
        rollback(path)
    for name in ("000007", "..", "1", ""):
        with pytest.raises(StoreError, match=r"has no generation .*: 000001, 000002"):
            rollback(path, name)
    assert content(path) == "two"


def test_going_back_in_an_index_without_marks(tmp_path):
    path = written(tmp_path / "a", "one", "two")
    without_marks(path)
    rollback(path)
    assert content(path) == "one"
    assert [generation.name for generation in committed_generations(path)] == ["000001", "000002"]


def test_a_name_where_a_path_is_meant(tmp_path, monkeypatch):
    monkeypatch.setenv("KLSA_HOME", str(tmp_path))
    path = written(tmp_path / "a", "one")
    with pytest.raises(IndexNotFound, match=f"there is one at `{path}`"):
        current_generation(Path("a"))
    with pytest.raises(IndexNotFound, match="build one with"):
        current_generation(Path("b"))


def test_going_back_where_nothing_is(tmp_path):
    with pytest.raises(IndexNotFound, match="klsa-index build SOURCE --name a"):
        rollback(tmp_path / "a")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "CURRENT").write_text("mine")
    with pytest.raises(StoreError, match="is not an index"):
        rollback(tmp_path / "a")
    path = written(tmp_path / "b", "one")
    with pytest.raises(StoreError, match="no generation before 000001"):
        rollback(path)
    assert current_generation(path) == path / "000001"
