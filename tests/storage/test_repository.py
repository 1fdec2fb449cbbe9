"""Backups of an index directory in a repository, and what is restored from them."""

import json
import shutil
import uuid
from contextlib import suppress
from itertools import count

import pytest

from klsa_search.collection import Document
from klsa_search.errors import (
    IndexBusy,
    IndexDamaged,
    IndexExists,
    IndexNotFound,
    SettingsError,
    StoreError,
)
from klsa_search.storage.aliases import aliases_in, delete_alias, set_alias
from klsa_search.storage.backup import back_up
from klsa_search.storage.current import current_generation
from klsa_search.storage.files import exclusive_lock
from klsa_search.storage.judgements import Judgements
from klsa_search.storage.maintenance import delete_index, indexes_in, undo_writes, verify
from klsa_search.storage.objects import open_store, refuse_password
from klsa_search.storage.repair import readable_documents
from klsa_search.storage.repository import Repository, read_state
from klsa_search.storage.restore import follow, restore_all, restore_index
from klsa_search.storage.synonyms import write_synonyms
from klsa_search.storage.write_log_writer import LogWriter
from tests.support.catalogs import read_rules, read_synonyms

from .test_kills import Killed, dying
from .worlds import write_documents


def build(path, *documents):
    return write_documents(path, documents)


def add(path, *documents, deletes=()):
    with LogWriter(current_generation(path)) as writer:
        writer.append(documents, deletes)


def texts(path):
    faults = []
    found = readable_documents(current_generation(path), faults)
    assert not faults
    return {document.id: document.text for document in found}


def home_texts(home):
    return {path.name: texts(path) for path in indexes_in(home)}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Two indexes, one written to, with an alias, synonyms and judgements."""
    home = tmp_path_factory.mktemp("written")
    build(home / "cars", Document(id="a", text="one"), Document(id="b", text="two"))
    add(home / "cars", Document(id="c", text="three"), deletes=["a"])
    write_synonyms(home / "cars", {"auto": ["car"]})
    Judgements(home / "cars").put("fast car", "b", 1)
    build(home / "boats")
    set_alias(home, "live", "cars")
    (home / ".keys.json").write_text("secret")
    return home


@pytest.fixture
def home(written, tmp_path):
    return shutil.copytree(written, tmp_path / "home")


@pytest.fixture
def target():
    return f"memory://{uuid.uuid4().hex}/backups"


@pytest.fixture
def repository(target):
    return Repository(target)


@pytest.mark.parametrize("url", ["sftp://me:s3cret@host/x", "dir::sftp://:s3cret@host/x"])
def test_a_url_with_a_password_is_refused_and_not_shown(url):
    with pytest.raises(SettingsError, match="has a password") as refused:
        Repository(url)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["sftp://me@host:22/x", "s3://bucket/a:b@c", "/a:b@c", "memory://x"]
)
def test_other_urls_have_no_password(url):
    refuse_password(url)


CARS = {"b": "two", "c": "three"}


@pytest.mark.parametrize("place", ["directory", "object storage"])
def test_all_indexes_are_restored_with_what_belongs_to_them(home, repository, tmp_path, place):
    if place == "directory":
        repository = Repository(str(tmp_path / "kept"))
    done = back_up(repository, home)
    assert (done.number, done.indexes, done.faults) == (1, 2, {})
    other = tmp_path / "other"
    restore_all(repository, other)
    assert home_texts(other) == {"cars": CARS, "boats": {}}
    assert aliases_in(other) == {"live": "cars"}
    assert read_synonyms(other / "cars") == read_synonyms(home / "cars")
    assert Judgements(other / "cars").queries() == Judgements(home / "cars").queries()
    for path in indexes_in(other):
        verify(path)
    assert not (other / ".keys.json").exists()
    restore_all(repository, other)  # what is equal stays
    add(other / "cars", Document(id="d", text="four"))
    with pytest.raises(IndexExists, match="cars"):
        restore_all(repository, other)


def test_one_index_is_restored_under_a_free_name(home, repository, tmp_path):
    back_up(repository, home)
    restore_index(repository, "cars", home / "copy")
    assert texts(home / "copy") == CARS
    with pytest.raises(IndexExists):
        restore_index(repository, "boats", home / "copy")
    with pytest.raises(IndexNotFound, match="boats, cars"):
        restore_index(repository, "planes", home / "planes")
    with pytest.raises(IndexNotFound, match="1 to 1"):
        restore_index(repository, "cars", home / "planes", number=7)


def test_a_restore_interrupted_before_its_last_step_is_repeated(home, repository, tmp_path):
    """A kill between the manifest and CURRENT leaves a complete build that is not in use."""
    back_up(repository, home)
    path = tmp_path / "all" / "cars"
    restore_all(repository, path.parent)
    (path / "CURRENT").unlink()
    restore_index(repository, "cars", path)
    assert texts(path) == CARS
    (path / "CURRENT").unlink()
    restore_all(repository, path.parent)
    assert home_texts(path.parent) == {"cars": CARS, "boats": {}}
    add(path, Document(id="d", text="four"))
    (path / "CURRENT").unlink()  # damage: what was written since would be lost
    with pytest.raises(IndexExists, match="cars"):
        restore_index(repository, "cars", path)


def bytes_below(path):
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def with_other_synonyms(path):
    write_synonyms(path, {"boat": ["ship"]})
    (path / "CURRENT").unlink()


def with_an_interrupted_deletion(path):
    (path / "CURRENT").rename(path / ".CURRENT.klsa-deleted")


def without_its_rows(path):
    (path / "CATALOG-ID").unlink()
    (path / "CURRENT").unlink()


def with_a_changed_bit(path):
    file = current_generation(path) / "documents_starts.npy"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (path / "CURRENT").unlink()


def with_a_changed_manifest(path):
    file = current_generation(path) / "manifest.json"
    manifest = json.loads(file.read_bytes())
    file.write_text(json.dumps(manifest | {"source": "other"}))
    (path / "CURRENT").unlink()


def with_a_damaged_current(path):
    (path / "CURRENT").write_text("xx")


@pytest.mark.parametrize(
    "change",
    [
        with_other_synonyms,
        with_an_interrupted_deletion,
        without_its_rows,
        with_a_changed_bit,
        with_a_changed_manifest,
        with_a_damaged_current,
    ],
)
def test_an_index_out_of_use_that_differs_is_not_taken_for_a_restore(
    home, repository, tmp_path, change
):
    back_up(repository, home)
    path = tmp_path / "all" / "cars"
    restore_all(repository, path.parent)
    change(path)
    before, synonyms = bytes_below(path), read_synonyms(path)
    with pytest.raises(IndexExists, match="cars"):
        restore_index(repository, "cars", path)
    with pytest.raises(IndexExists, match="cars"):
        restore_all(repository, path.parent)
    assert (bytes_below(path), read_synonyms(path)) == (before, synonyms)


@pytest.mark.parametrize(
    ("every", "leaves_empty"),
    [(7, False), *(pytest.param(1, empty, marks=pytest.mark.slow) for empty in (False, True))],
)
def test_a_restore_killed_at_any_step_is_repeated(
    home, repository, tmp_path, monkeypatch, every, leaves_empty
):
    back_up(repository, home)
    for step in count(step=every):
        path = tmp_path / f"{step}" / "cars"
        with dying(monkeypatch, step, leaves_empty=leaves_empty) as tried, suppress(Killed):
            restore_index(repository, "cars", path)
        if not (path / "CURRENT").exists():
            restore_index(repository, "cars", path)
        assert texts(path) == CARS
        assert read_synonyms(path) == read_synonyms(home / "cars")
        verify(path)
        if len(tried) <= step:
            break


def test_only_what_changed_is_written_and_old_backups_stay(home, repository, tmp_path):
    first = back_up(repository, home)
    again = back_up(repository, home)
    assert first.written > again.written == 0
    assert list(repository.names()) == [2]  # equal to the first, whose place it takes
    add(home / "cars", Document(id="d", text="four"))
    third = back_up(repository, home)
    assert 0 < third.written < first.written
    delete_index(home / "boats")
    back_up(repository, home, keep=2)
    assert list(repository.names()) == [3, 4]
    restore_all(repository, tmp_path / "before", number=3)
    assert home_texts(tmp_path / "before") == {"cars": CARS | {"d": "four"}, "boats": {}}


def test_unused_pieces_are_removed(home, tmp_path):
    repository = Repository(str(tmp_path / "kept"))
    back_up(repository, home)
    (tmp_path / "kept/objects" / ("0" * 64)).write_text("left by a killed backup")
    delete_index(home / "cars")
    back_up(repository, home, keep=1)
    (name,) = repository.names().values()
    kept = {path.name for path in (tmp_path / "kept/objects").iterdir()}
    assert kept == repository.read(name).pieces()


def test_objects_are_removed_with_the_backups_that_used_them(home, tmp_path):
    repository = Repository(str(tmp_path / "kept"))
    back_up(repository, home)
    delete_index(home / "cars")
    back_up(repository, home)
    back_up(repository, home, keep=1)  # unchanged
    (name,) = repository.names().values()
    assert repository.stored_pieces().keys() == repository.read(name).pieces()


@pytest.mark.parametrize("place", ["directory", "object storage"])
def test_another_index_directory_is_refused_until_it_takes_over(home, repository, tmp_path, place):
    if place == "directory":
        repository = Repository(str(tmp_path / "kept"))
    back_up(repository, home)
    names = repository.names()
    other = tmp_path / "other"
    build(other / "planes", Document(id="p", text="wing"))
    with pytest.raises(StoreError, match="--take-over") as refused:
        back_up(repository, other, keep=1)
    assert all(f"{path}`" in refused.value.message for path in (home, other))
    assert repository.names() == names
    restore_all(repository, tmp_path / "new machine")
    with pytest.raises(StoreError, match="--take-over"):
        back_up(repository, tmp_path / "new machine")
    assert back_up(repository, tmp_path / "new machine", take_over=True).number == 2
    assert back_up(repository, tmp_path / "new machine").number == 3
    with pytest.raises(StoreError, match="--take-over"):
        back_up(repository, home)
    assert back_up(repository, home, take_over=True).number == 4
    (name,) = repository.names().values()
    assert len(repository.read(name).owner.predecessors) == 1


def test_a_moved_index_directory_continues_its_backups(home, repository, tmp_path):
    back_up(repository, home)
    moved = home.rename(tmp_path / "moved")
    assert back_up(repository, moved).number == 2
    assert back_up(repository, moved.rename(home)).number == 3


def test_a_copied_index_directory_is_another(home, repository, tmp_path):
    back_up(repository, home)
    names = repository.names()
    copy = shutil.copytree(home, tmp_path / "copy")
    with pytest.raises(StoreError, match="--take-over"):
        back_up(repository, copy, keep=1)
    assert repository.names() == names
    assert back_up(repository, home).number == 2
    with pytest.raises(StoreError, match="--take-over"):
        back_up(repository, copy)


def test_the_next_backup_removes_the_remains_of_an_interrupted_one(home, repository):
    back_up(repository, home)
    repository.write_piece("0" * 64, b"left")
    back_up(repository, home)  # unchanged
    (name,) = repository.names().values()
    assert repository.stored_pieces().keys() == repository.read(name).pieces()


def test_a_backup_is_not_written_if_another_process_wrote_one_meanwhile(
    home, repository, tmp_path, monkeypatch
):
    other = tmp_path / "other"
    build(other / "planes")

    def meanwhile(directory):
        monkeypatch.undo()
        back_up(Repository(repository.target), other)
        return aliases_in(directory)

    monkeypatch.setattr("klsa_search.storage.backup.aliases_in", meanwhile)
    with pytest.raises(StoreError, match="another process wrote to it meanwhile"):
        back_up(repository, home)
    restore_all(repository, tmp_path / "restored")
    assert home_texts(tmp_path / "restored") == {"planes": {}}


def test_one_process_at_a_time_writes_to_a_directory(home, tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    with exclusive_lock(kept / ".lock"), pytest.raises(IndexBusy, match="kept"):
        back_up(Repository(str(kept)), home)


def test_an_unreadable_index_keeps_its_last_backup(home, repository, tmp_path):
    back_up(repository, home)
    (current_generation(home / "cars") / "manifest.json").write_text("{")
    add(home / "boats", Document(id="x", text="new"))
    done = back_up(repository, home, keep=1)
    assert done.faults.keys() == {"cars"}
    restore_all(repository, tmp_path / "other")
    assert home_texts(tmp_path / "other") == {"cars": CARS, "boats": {"x": "new"}}


def test_a_changed_backup_is_not_restored(home, tmp_path):
    repository = Repository(str(tmp_path / "kept"))
    back_up(repository, home)
    for piece in (tmp_path / "kept/objects").iterdir():
        piece.write_bytes(b"?" + piece.read_bytes()[1:])
    with pytest.raises(IndexDamaged, match="has changed"):
        restore_all(repository, tmp_path / "other")
    assert indexes_in(tmp_path / "other") == []
    (name,) = (tmp_path / "kept/backups").iterdir()
    name.write_bytes(name.read_bytes()[:-9])
    with pytest.raises(IndexDamaged, match="has changed"):
        restore_all(Repository(str(tmp_path / "kept")), tmp_path / "other")


def test_a_storage_that_returns_other_bytes_is_noticed(home, target, repository, monkeypatch):
    kind = type(open_store(target))
    read = kind.read
    monkeypatch.setattr(kind, "read", lambda store, name: read(store, name)[:-1])
    with pytest.raises(StoreError, match="other content than was written"):
        back_up(repository, home)
    assert repository.names() == {}


def test_a_follower_becomes_equal_again_and_again(home, repository, tmp_path):
    own = tmp_path / "follower"
    with pytest.raises(IndexNotFound, match="no backup"):
        follow(repository, own)

    def followed():
        back_up(repository, home, keep=2)
        state = follow(repository, own)
        assert read_state(own, "follow") == state
        assert home_texts(own) == home_texts(home)
        assert aliases_in(own) == aliases_in(home)
        for path in indexes_in(home):
            assert read_synonyms(own / path.name) == read_synonyms(path)
            assert read_rules(own / path.name) == read_rules(path)
            assert Judgements(own / path.name).queries() == Judgements(path).queries()
            verify(own / path.name)
        return current_generation(own / "cars").name

    assert followed() == followed() == "000001"
    add(home / "boats", Document(id="s", text="sail"))  # its first write
    add(home / "cars", Document(id="d", text="four"))
    assert followed() == "000001"
    undo_writes(home / "cars", 1)
    write_synonyms(home / "cars", {})
    assert followed() == "000001"
    build(home / "cars", Document(id="z", text="again"))  # a refit
    assert followed() == "000002"
    build(home / "cars-2")
    set_alias(home, "live", "cars-2")
    delete_index(home / "boats")
    set_alias(home, "boats", "cars")  # an index becomes an alias
    followed()
    delete_alias(home, "boats")
    build(home / "boats", Document(id="s", text="sail"))  # and an alias an index
    followed()


def test_a_source_that_went_back_is_followed(home, repository, tmp_path):
    own = tmp_path / "follower"
    back_up(repository, home)
    first = list(repository.names())[-1]
    add(home / "cars", Document(id="d", text="four"))
    back_up(repository, home)
    follow(repository, own)
    delete_index(home / "cars")
    restore_index(repository, "cars", home / "cars", number=first)
    add(home / "cars", Document(id="e", text="five"))
    back_up(repository, home)
    follow(repository, own)
    assert texts(own / "cars") == CARS | {"e": "five"}


def test_a_follower_keeps_what_it_has_if_a_backup_is_damaged_or_gone(home, tmp_path):
    kept, own = tmp_path / "kept", tmp_path / "follower"
    back_up(Repository(str(kept)), home)
    state = follow(Repository(str(kept)), own)
    before = home_texts(own)
    build(home / "cars", Document(id="z", text="again"))
    back_up(Repository(str(kept)), home)
    pieces = {path: path.read_bytes() for path in (kept / "objects").iterdir()}
    for path in pieces:
        path.unlink()
    with pytest.raises(StoreError):
        follow(Repository(str(kept)), own)
    assert home_texts(own) == before
    now = read_state(own, "follow")
    assert (now.number, now.newest) == (state.number, state.number + 1)
    for path, content in pieces.items():
        path.write_bytes(content)
    follow(Repository(str(kept)), own)
    assert texts(own / "cars") == {"z": "again"}


def test_a_follower_stays_with_one_index_directory(home, target, repository, tmp_path):
    own, other = tmp_path / "follower", tmp_path / "other"
    back_up(repository, home)
    leader = follow(repository, own).directory
    build(other / "planes")
    strange = f"memory://{uuid.uuid4().hex}/backups"
    for _ in range(3):
        back_up(Repository(strange), other)
    source, store = open_store(strange), open_store(target)
    for folder in ("backups", "objects"):  # as by two writers to a storage without locks
        for each in source.sizes(folder):
            store.write(f"{folder}/{each}", source.read(f"{folder}/{each}"))
    for _ in range(2):
        with pytest.raises(StoreError, match=f"ignored backup 3 .*{other}.*{leader[:8]}"):
            follow(repository, own)
        assert home_texts(own) == home_texts(home)
        state = read_state(own, "follow")
        assert (state.number, state.newest, state.ignored) == (1, 3, 3)
    add(home / "cars", Document(id="d", text="four"))
    back_up(repository, home, take_over=True)
    state = follow(repository, own)
    assert home_texts(own) == home_texts(home)
    assert (state.number, state.ignored, state.directory) == (4, None, leader)


def test_a_follower_follows_the_directory_that_took_over(home, repository, tmp_path):
    own, new = tmp_path / "follower", tmp_path / "new machine"
    back_up(repository, home)
    follow(repository, own)
    restore_all(repository, new)
    add(new / "cars", Document(id="d", text="four"))
    back_up(repository, new, keep=1, take_over=True)
    state = follow(repository, own)
    assert home_texts(own) == home_texts(new)
    assert state.directory == read_state(new, "backup").directory


def test_an_index_directory_with_other_indexes_does_not_follow(home, repository):
    back_up(repository, home)
    with pytest.raises(StoreError, match="empty index directory"):
        follow(repository, home)
    assert texts(home / "cars") == CARS
