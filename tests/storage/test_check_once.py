"""Checksums of a generation are compared once on a machine, and again after any change."""

import os
from contextlib import suppress

import pytest

from klsa_search.core.installation import cache_folder
from klsa_search.errors import IndexDamaged
from klsa_search.storage import checksums
from klsa_search.storage.checksums import ChecksumCheck, check_again, check_once, note_checked
from klsa_search.storage.generations import describe_files
from klsa_search.storage.manifest import Manifest


@pytest.fixture(autouse=True)
def memory(tmp_path, monkeypatch):
    """Where generations are remembered."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if not cache_folder().is_relative_to(tmp_path):
        pytest.skip("needs Linux, whose cache folder can be chosen")
    return cache_folder() / "checked"


@pytest.fixture
def compared(monkeypatch):
    """Names of the generations whose sums were compared."""
    found, compare = [], checksums.compare_checksums
    monkeypatch.setattr(
        checksums,
        "compare_checksums",
        lambda generation, manifest: (found.append(generation.name), compare(generation, manifest)),
    )
    return found


def generation(path, **files):
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (path / name).write_text(content)
    return path, Manifest.model_construct(files=describe_files(path))


def test_sums_are_compared_once(tmp_path, compared):
    one = generation(tmp_path / "t" / "000001", a="a", b="b")
    other = generation(tmp_path / "t" / "000002", a="a", b="b")
    for each in (one, one, other, other, one):
        check_once(*each)
    assert compared == ["000001", "000002", "000001"]  # the last one is recorded


def test_without_a_home_sums_are_compared_each_time(tmp_path, compared, monkeypatch):
    monkeypatch.setattr(checksums, "cache_folder", lambda: None)
    one = generation(tmp_path / "000001", a="a")
    note_checked(*one)
    for _ in range(2):
        check_once(*one)
    assert compared == ["000001"] * 2


def test_a_generation_just_built_is_not_compared(tmp_path, compared):
    one = generation(tmp_path / "000001", a="a")
    note_checked(*one)
    check_once(*one)
    assert not compared


CHANGES = {
    "written anew": lambda path: path.write_bytes(path.read_bytes()),
    "touched": lambda path: os.utime(path, ns=(1, 1)),
    "another file of its kind": lambda path: (
        path.with_name("new").write_bytes(path.read_bytes()),
        path.with_name("new").replace(path),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_sums_are_compared_again_after_any_change(tmp_path, compared, change):
    path, manifest = generation(tmp_path / "000001", a="a", b="b")
    check_once(path, manifest)
    CHANGES[change](path / "b")
    check_once(path, manifest)
    check_once(path, manifest)
    assert compared == ["000001", "000001"]


def test_sums_are_compared_again_with_another_manifest(tmp_path):
    path, manifest = generation(tmp_path / "000001", a="a", b="b")
    check_once(path, manifest)
    entry = manifest.files["a"].model_copy(update={"sha256": "0" * 64})
    other = Manifest.model_construct(files={**manifest.files, "a": entry})
    with pytest.raises(IndexDamaged, match="a` has changed"):
        check_once(path, other)


def test_damage_is_not_remembered_as_checked(tmp_path):
    path, manifest = generation(tmp_path / "000001", a="a", b="b")
    (path / "a").write_text("c")
    for _ in range(2):
        with pytest.raises(IndexDamaged, match="a` has changed"):
            check_once(path, manifest)


@pytest.mark.parametrize("finder", [check_again, lambda *of: ChecksumCheck(dict([of])).wait()])
def test_damage_that_is_found_later_is_looked_for_at_the_next_opening(
    tmp_path, monkeypatch, finder
):
    """Also where nothing tells the files apart, as where a disk decays."""
    monkeypatch.setattr(checksums, "fingerprint_of", lambda generation, manifest: "the same")
    path, manifest = generation(tmp_path / "000001", a="a", b="b")
    check_once(path, manifest)
    (path / "a").write_text("c")
    check_once(path, manifest)
    with suppress(IndexDamaged):
        finder(path, manifest)
    with pytest.raises(IndexDamaged, match="a` has changed"):
        check_once(path, manifest)


@pytest.mark.parametrize("content", [b"", b"{", b"\n", b"\xff\n/", b"\0\n\0"])
def test_a_damaged_record_is_rewritten(tmp_path, compared, memory, content):
    one = generation(tmp_path / "000001", a="a")
    check_once(*one)
    (file,) = memory.iterdir()
    file.write_bytes(content)
    check_once(*one)
    check_once(*one)
    assert compared == ["000001", "000001"]
    assert list(memory.iterdir()) == [file]


def test_without_a_place_to_remember_sums_are_compared_each_time(tmp_path, compared, memory):
    one = generation(tmp_path / "000001", a="a")
    memory.parent.parent.mkdir(parents=True)
    memory.parent.write_text("a file where a folder should be")
    check_once(*one)
    check_once(*one)
    assert compared == ["000001", "000001"]


def test_other_files_in_the_cache_folder_are_ignored(tmp_path, compared, memory):
    (memory / "folder").mkdir(parents=True)
    (memory / "link").symlink_to(memory / "nothing")
    one = generation(tmp_path / "000001", a="a")
    check_once(*one)
    check_once(*one)
    assert compared == ["000001"]


def test_a_link_to_an_index_is_the_index(tmp_path, compared):
    path, manifest = generation(tmp_path / "t" / "000001", a="a")
    check_once(path, manifest)
    (tmp_path / "link").symlink_to(tmp_path / "t")
    check_once(tmp_path / "link" / "000001", manifest)
    assert len(compared) == 1
