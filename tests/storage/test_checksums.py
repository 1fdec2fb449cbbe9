"""Checksums detect a changed file, at once or in the background."""

import errno

import pytest

from klsa_search.errors import IndexDamaged
from klsa_search.storage.checksums import ChecksumCheck, compare_checksums
from klsa_search.storage.generations import describe_files
from klsa_search.storage.manifest import Manifest
from tests.support.waiting import PATIENCE

from .worlds import point_current


@pytest.fixture
def sealed(tmp_path):
    path = tmp_path / "000001"
    path.mkdir()
    for name in "abc":
        (path / name).write_text(name * 1000)
    (path / "empty").touch()
    point_current(tmp_path, "000001")
    return path, Manifest.model_construct(files=describe_files(path))


def test_whole_files_pass(sealed):
    compare_checksums(*sealed)


@pytest.mark.parametrize("name", "abc")
def test_the_file_that_has_changed_is_named(sealed, name):
    (sealed[0] / name).write_text("x" * 1000)
    with pytest.raises(
        IndexDamaged, match=f"/{name}` has changed since it was built; run `klsa-index repair"
    ):
        compare_checksums(*sealed)


def test_a_file_that_cannot_be_read_is_named(sealed):
    (sealed[0] / "b").unlink()
    (sealed[0] / "b").mkdir()
    with pytest.raises(IndexDamaged, match=r"cannot read `.*b` \("):
        compare_checksums(*sealed)


def test_too_many_open_files_are_not_damage(sealed, monkeypatch):
    def exhausted(path):
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr("klsa_search.storage.checksums.sha256_of", exhausted)
    with pytest.raises(OSError, match="Too many open files"):
        compare_checksums(*sealed)
    monkeypatch.setattr(ChecksumCheck, "_throttled", lambda _, path: exhausted(path))
    check = ChecksumCheck(dict([sealed]))
    assert check.wait(PATIENCE)
    assert (check.state, check.failure) == ("stopped", None)


def test_a_whole_generation_is_found_whole_behind_other_work(sealed):
    check = ChecksumCheck(dict([sealed]))
    assert check.wait(PATIENCE)
    assert (check.state, check.failure) == ("verified", None)
    check.stop()
    assert check.state == "verified"


def test_damage_is_found_behind_other_work(sealed):
    (sealed[0] / "b").write_text("x" * 1000)
    check = ChecksumCheck(dict([sealed]))
    assert check.wait(PATIENCE)
    assert check.state == "damaged"
    assert check.failure.startswith(f"`{sealed[0] / 'b'}` has changed since it was built")


def test_a_file_that_is_gone_is_damage_only_of_what_is_in_use(sealed):
    path, manifest = sealed
    (path / "c").unlink()
    check = ChecksumCheck({path: manifest})
    assert check.wait(PATIENCE)
    assert (check.state, "cannot read" in check.failure) == ("damaged", True)
    path.with_name("000002").mkdir()
    point_current(path.parent, "000002")
    check = ChecksumCheck({path: manifest})
    assert check.wait(PATIENCE)
    assert (check.state, check.failure) == ("stopped", None)


def test_a_comparison_can_be_stopped_at_any_time(sealed, monkeypatch):
    monkeypatch.setattr("klsa_search.storage.checksums.PAUSE_RATIO", 1e9)  # it rests for years
    check = ChecksumCheck(dict([sealed]))
    assert check.state == "checking"
    check.stop()
    assert (check.state, check.failure) == ("stopped", None)
