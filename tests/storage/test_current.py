"""CURRENT: generation and checksums, or an error with the next step."""

import errno
import json
import os

import pytest

from klsa_search.errors import FormatUnsupported, IndexDamaged, IndexNotFound
from klsa_search.storage.current import current_build, current_generation, read_current
from klsa_search.storage.maintenance import verify
from klsa_search.storage.manifest import FORMAT_VERSION, read_manifest, sha256_of
from klsa_search.storage.names import DELETED
from klsa_search.storage.partitions import partitions_of

from .worlds import replace_manifest, write


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "a", "one")
    write(tmp_path / "a", "two")
    return tmp_path / "a"


def test_current_has_the_generation_and_the_checksum_of_its_manifest(path):
    current, kept = (sha256_of(path / name / "manifest.json") for name in ("000002", "000001"))
    text = f"000002\nsha256 {current}\nkept 000001 sha256 {kept}\n"
    assert (path / "CURRENT").read_text() == text
    found = read_current(path)
    assert (found.generation, found.sums) == ("000002", {"000002": current, "000001": kept})


SUM = b"0" * 64


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"2\n",
        b"00002\n",
        b"0000002\n",
        b"000002",
        b"000002\n",
        b"000002 \n",
        b" 000002\n",
        b"000002\n\n",
        b"000002\r\n",
        b"..",
        b"../..",
        b"/etc",
        b".",
        b"000002/../000001",
        b"\xff\xfe",
        "\u0660\u0660\u0660\u0660\u0660\u0662\n".encode(),
        b"000002\nsha256 " + SUM[1:] + b"\n",
        b"000002\nsha256 " + SUM,
        b"000002\nsha256 " + SUM + b"\nmore\n",
        b"000002\nsha256 " + SUM + b"\nkept ../.. sha256 " + SUM + b"\n",
        b"000002\nsha256 " + SUM.replace(b"0", b"G") + b"\n",
        b"000009\n",
        b"x" * 100_000,
    ],
)
def test_anything_else_is_damage_and_the_way_back_is_named(path, content):
    (path / "CURRENT").write_bytes(content)
    with pytest.raises(
        IndexDamaged, match=r"run `klsa-index repair a --home .*`, which keeps all writes"
    ) as caught:
        current_generation(path)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 500
    with pytest.raises(IndexDamaged):
        verify(path)


def test_the_message_shows_the_first_forty_bytes(path):
    (path / "CURRENT").write_bytes(b"x" * 41)
    with pytest.raises(IndexDamaged, match=r"it begins with 'x{40}';"):
        read_current(path)


def test_an_interrupted_deletion_is_named_with_the_command_that_finishes_it(path):
    (path / "CURRENT").rename(path / DELETED)
    with pytest.raises(
        IndexNotFound,
        match=r"a deletion of .* was interrupted; finish it with `klsa-index delete-index a",
    ):
        read_current(path)


def test_damage_without_a_whole_generation_is_left_to_a_repair(path):
    (path / "CURRENT").write_text("")
    for manifest in path.glob("0*/manifest.json"):
        manifest.unlink()
    with pytest.raises(IndexDamaged, match="it begins with ''; run `klsa-index repair"):
        current_generation(path)


def test_a_folder_a_pipe_and_links_to_nowhere_are_damage(path):
    current = path / "CURRENT"
    current.unlink()
    current.mkdir()
    with pytest.raises(IndexDamaged, match=r"cannot read `.*CURRENT` \(Is a directory\)"):
        current_generation(path)
    current.rmdir()
    os.mkfifo(current)
    with pytest.raises(IndexDamaged, match=r"cannot read `.*CURRENT` \(Invalid argument\)"):
        current_generation(path)
    current.unlink()
    current.symlink_to(current)
    with pytest.raises(IndexDamaged, match=r"cannot read `.*CURRENT` \(Too many levels"):
        current_generation(path)


def test_an_unreadable_file_is_damage_and_too_many_open_files_are_not(path, monkeypatch):
    def failing(number):
        def opened(*_, **__):
            raise OSError(number, os.strerror(number), str(path / "CURRENT"))

        return opened

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing(errno.EACCES))
        with pytest.raises(IndexDamaged, match=r"cannot read `.*CURRENT` \(Permission denied\)"):
            current_generation(path)
        patch.setattr(os, "open", failing(errno.EMFILE))
        with pytest.raises(OSError, match="Too many open files"):
            current_generation(path)
        with pytest.raises(OSError, match="Too many open files"):
            read_manifest(path / "000002")
        with pytest.raises(OSError, match="Too many open files"):
            partitions_of(current_build(path))


def test_an_index_that_is_not_there_is_named_with_the_next_step(tmp_path):
    with pytest.raises(IndexNotFound, match=r"klsa-index build SOURCE --name a"):
        current_generation(tmp_path / "a")
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexNotFound):
        current_generation(tmp_path / "file" / "a")


def test_a_current_that_was_lost_can_be_had_back(path):
    (path / "CURRENT").unlink()
    with pytest.raises(IndexNotFound, match=r"CURRENT is missing: .*klsa-index repair a"):
        current_generation(path)


def changed(manifest):
    raw = json.loads(manifest.read_text())
    raw["source"] = "another"
    manifest.write_text(json.dumps(raw))


@pytest.mark.parametrize("name", ["000001", "000002"])
def test_a_changed_manifest_is_damage_of_the_one_in_use_and_of_those_kept(path, name):
    changed(path / name / "manifest.json")
    with pytest.raises(
        IndexDamaged, match=rf"{name}/manifest.json` has changed since it was built"
    ):
        read_manifest(path / name)


def test_a_changed_manifest_does_not_verify(path):
    changed(path / "000002" / "manifest.json")
    with pytest.raises(IndexDamaged, match=r"manifest.json` has changed.*klsa-index repair a "):
        verify(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[1]",
        b"{}",
        b"3",
        b'{"format_version": ' + b"[" * 100_000,
        b'{"a": ' * 100_000,
        b'{"format_version": %d, "files": {"../../CURRENT": {"bytes": 1, "sha256": ""}}}'
        % FORMAT_VERSION,
        b'{"format_version": %d}' % FORMAT_VERSION,
    ],
)
def test_a_manifest_of_whatever_else_is_damage(path, content):
    replace_manifest(path / "000002", content)
    with pytest.raises(IndexDamaged, match=r"000002/manifest.json"):
        read_manifest(path / "000002")


def test_another_format_with_the_right_checksum_is_named(path):
    content = b'{"format_version": 99}'
    (path / "000002" / "manifest.json").write_bytes(content)
    with pytest.raises(IndexDamaged, match="has changed"):
        read_manifest(path / "000002")
    replace_manifest(path / "000002", content)
    with pytest.raises(FormatUnsupported, match="has format 99"):
        read_manifest(path / "000002")
