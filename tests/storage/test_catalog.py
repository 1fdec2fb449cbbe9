"""The catalogue: rows follow their index, a change is whole or absent, damage is named."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from klsa_search import build, open_index
from klsa_search.errors import IndexBusy, IndexDamaged, SettingsError, StoreError, WritingRefused
from klsa_search.storage import catalog as module
from klsa_search.storage import database
from klsa_search.storage.aliases import aliases_in, replace_aliases
from klsa_search.storage.catalog import change_catalog, read_catalog
from klsa_search.storage.catalog_entry import (
    Entry,
    change_entry,
    entry_stamp,
    read_entry,
    replace_rows,
    rows_of,
)
from klsa_search.storage.judgements import Judgements
from klsa_search.storage.maintenance import copy_index, delete_index, verify
from klsa_search.storage.names import index_path
from klsa_search.storage.repository import ReplicationState, read_state, write_state
from klsa_search.storage.rules import Rule, write_rules
from klsa_search.storage.synonyms import add_synonyms, write_synonyms
from tests.support.catalogs import read_synonyms
from tests.support.power_loss import disks, lay_out, record
from tests.support.processes import run
from tests.support.waiting import PATIENCE

from .worlds import write

TV = {"tv": ("television",)}
CARS = {"car": ("automobile",)}


@pytest.fixture
def home(tmp_path):
    return home_in(tmp_path)


def home_in(folder):
    for name in ("one", "two"):
        write(folder / "home" / name, name)
    return folder / "home"


def test_a_renamed_index_keeps_its_rows_and_a_new_one_has_none(home):
    write_synonyms(home / "one", TV)
    (home / "one").rename(home / "three")
    assert read_synonyms(home / "three") == TV
    write(home / "one", "new")
    assert read_synonyms(home / "one") == {}
    write_synonyms(home / "one", CARS)
    write_synonyms(home / "three", TV)
    shutil.rmtree(home / "one")
    write(home / "one", "newer")
    assert (read_synonyms(home / "one"), read_synonyms(home / "three")) == ({}, TV)


def test_a_copied_folder_lacks_its_rows_until_it_gets_some(home, tmp_path):
    write_synonyms(home / "one", TV)
    for copy in (home / "copy", tmp_path / "elsewhere" / "one"):
        shutil.copytree(home / "one", copy)
        assert read_synonyms(copy) == {}
        verify(copy)
        write_synonyms(copy, CARS)
        assert (read_synonyms(copy), read_synonyms(home / "one")) == (CARS, TV)
        verify(copy)


def test_an_index_that_was_copied_alone_opens_with_the_settings_of_its_build(tmp_path):
    with build([{"id": "a", "text": "wing"}], name="one", home=tmp_path) as index:
        index.set_synonyms(["wing, tail"])
        index.update_settings(alpha=0.5)
        built = index.manifest.settings["alpha"]
    shutil.copytree(tmp_path / "one", tmp_path / "alone" / "one")
    with open_index(tmp_path / "alone" / "one") as index:
        assert (index.synonyms, index.settings.alpha) == ({}, built)
    shutil.copytree(tmp_path, tmp_path / "all", ignore=shutil.ignore_patterns("all", "alone"))
    with open_index(tmp_path / "all" / "one") as index:
        assert (index.synonyms["wing"], index.settings.alpha) == (("tail",), 0.5)


def test_a_link_to_an_index_has_its_rows(home, tmp_path):
    write_synonyms(home / "one", TV)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "live").symlink_to(home / "one")
    assert read_synonyms(tmp_path / "links" / "live") == TV
    write_synonyms(tmp_path / "links" / "live", CARS)
    assert read_synonyms(home / "one") == CARS
    assert not (tmp_path / "links" / "catalog.db").exists()


def test_a_deleted_index_leaves_no_rows(home):
    write_synonyms(home / "one", TV)
    write_synonyms(home / "two", CARS)
    assert delete_index(home / "one") == []
    with read_catalog(home) as catalog:
        assert [name for _, name in catalog.rows("indexes")] == ["two"]
        assert [word for _, word, _ in catalog.rows("synonyms")] == ["car"]


def test_a_damaged_catalogue_does_not_keep_an_index_from_being_deleted(home):
    write_synonyms(home / "one", TV)
    (home / "catalog.db").write_bytes(b"no database at all, but as long as one" * 99)
    with pytest.raises(IndexDamaged, match=r"catalog\.db.*move this file away"):
        read_synonyms(home / "one")
    assert delete_index(home / "one") == []
    assert not (home / "one").exists()


def test_a_failed_change_leaves_nothing(home):
    def fail():
        raise RuntimeError

    for changed in (True, False):
        with pytest.raises(RuntimeError), change_catalog(home) as catalog:
            for name in ("one", "two"):
                Entry(catalog, home / name).replace("synonyms", [("tv", "[]")])
            fail()
        assert read_synonyms(home / "one") == {}
        if changed:
            write_synonyms(home / "two", TV)
    assert read_synonyms(home / "two") == TV


def test_a_copy_has_the_rows_of_its_index(home, tmp_path):
    write_synonyms(home / "one", TV)
    copy_index(home / "one", tmp_path / "other" / "copy")
    copy_index(home / "one", home / "copy")
    write_synonyms(home / "one", CARS)
    for copy in (tmp_path / "other" / "copy", home / "copy"):
        assert read_synonyms(copy) == TV
        verify(copy)


def test_additions_at_once_are_all_kept(home):
    words = [f"word{number}" for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda word: add_synonyms(home / "one", {"tv": (word,)}), words))
    assert set(read_synonyms(home / "one")["tv"]) == set(words)


def test_a_change_that_waits_too_long_is_refused(home, monkeypatch):
    write_synonyms(home / "one", TV)
    monkeypatch.setattr(module, "TIMEOUT", 0.05)
    with change_entry(home / "two"), pytest.raises(IndexBusy, match="is being changed"):
        write_synonyms(home / "one", CARS)
    assert read_synonyms(home / "one") == TV


def test_a_catalogue_that_cannot_be_used_is_an_error_of_ours(home):
    (home / "catalog.db").mkdir()
    with pytest.raises(StoreError, match=r"catalog\.db.*permissions"):
        write_synonyms(home / "one", TV)
    assert read_synonyms(home / "one") == {}
    assert not (home / "one" / "CATALOG-ID").exists()
    (home / "catalog.db").rmdir()
    sqlite3.connect(home / "catalog.db").executescript("create table mine (x)").close()
    with pytest.raises(IndexDamaged, match="not a catalogue"):
        write_synonyms(home / "one", TV)


def test_a_network_file_system_is_read_and_not_written(home, monkeypatch):
    write_synonyms(home / "one", TV)
    monkeypatch.setattr(database, "network_file_system", lambda path: "nfs4")
    with pytest.raises(WritingRefused, match=r"network file system \(nfs4\)"):
        write_synonyms(home / "one", CARS)
    assert read_synonyms(home / "one") == TV


def test_no_index_has_the_name_of_the_catalogue(home):
    for name in ("catalog.db", "catalog.db-wal"):
        with pytest.raises(SettingsError, match="not an index name"):
            index_path(home, name)


def test_a_read_only_directory_can_be_read(home):
    write_synonyms(home / "one", TV)
    for path in (home, home / "catalog.db"):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        read = run(*_as_nobody(), sys.executable, "-c", READ, str(home / "one"))
    finally:
        home.chmod(0o755)
    assert read.stdout.strip() == str(TV), read.stderr


READ = """
import sys
from pathlib import Path
from tests.support.catalogs import read_synonyms
print(read_synonyms(Path(sys.argv[1])))
"""


def _as_nobody():
    """Return a prefix of commands that may not write what others own."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


KILLED = """
import os, signal, sys
from pathlib import Path
from klsa_search.storage.catalog import change_catalog
from klsa_search.storage.catalog_entry import Entry
home = Path(sys.argv[1])
with change_catalog(home) as catalog:
    catalog._connection.execute("pragma cache_size = 10")  # written before it is decided
    rows = [(f"{number}" * 20, "[]" * 200) for number in range(2000)]
    Entry(catalog, home / "one").replace("synonyms", rows)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_first_change_leaves_no_rows(home):
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(home)], check=False, timeout=PATIENCE
    )
    assert killed.returncode == -signal.SIGKILL
    assert read_synonyms(home / "one") == {}
    write_synonyms(home / "one", TV)
    assert read_synonyms(home / "one") == TV


def test_what_a_killed_process_began_is_undone(home):
    write_synonyms(home / "one", TV)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(home)], check=False, timeout=PATIENCE
    )
    assert killed.returncode == -signal.SIGKILL
    assert (home / "catalog.db-wal").stat().st_size > 0
    assert read_synonyms(home / "one") == TV
    add_synonyms(home / "one", CARS)
    assert read_synonyms(home / "one") == TV | CARS


def test_the_stamp_changes_with_every_change(home):
    def stamp():
        return entry_stamp(home / "one")

    assert stamp() is None
    seen = set()
    for number in range(5):
        write_synonyms(home / "one", {"tv": (f"{number}",)})
        seen.add(stamp())
    assert len(seen) == 5
    past = os.stat(home / "catalog.db").st_mtime_ns - 10**10
    for file in (home / "catalog.db", home / "one" / "CATALOG-ID"):
        os.utime(file, ns=(past, past))
    assert stamp() == stamp()


def changes(home):
    """Yield after each change, of every kind that there is."""
    one, two = home / "one", home / "two"
    write_synonyms(one, TV)
    yield
    write_rules(two, [Rule(id="first", then={"hide": ["d1"]})])
    yield
    with change_catalog(home) as catalog:
        catalog.insert("aliases", [("live", "two")])
        Entry(catalog, two).insert("settings", [("000001", '{"alpha": 0.25}')])
    yield
    Judgements(one).put("wing", "d1", 1)
    yield
    write_state(home, "follow", ReplicationState("there", number=7))
    yield
    write_state(home, "backup", ReplicationState("there", number=8), ends_following=True)
    yield
    replace_rows(two, rows_of(one, "000001"), "000001")
    yield
    add_synonyms(one, CARS)
    yield
    replace_aliases(home, {"live": "one", "more": "two"})
    yield
    write_synonyms(two, {})
    yield
    delete_index(one)
    yield


def everything(home):
    """Return all that the catalogue of a directory has, as its users read it."""
    return (
        *(rows_of(home / name, "000001") for name in ("one", "two")),
        aliases_in(home),
        *(read_state(home, work) for work in ("backup", "follow")),
    )


CHANGES = """
import os
from pathlib import Path
from tests.storage.test_catalog import changes

for number, _ in enumerate(changes(Path())):
    os.write(1, f"{number} ".encode())
"""


@pytest.fixture(scope="module")
def recorded_changes(tmp_path_factory):
    """The state before and after each change, and what the changes write."""
    folder = tmp_path_factory.mktemp("changes")
    home = home_in(folder)
    states = [everything(home)]
    shutil.copytree(home, folder / "scratch")
    states += (everything(folder / "scratch") for _ in changes(folder / "scratch"))
    return states, record(CHANGES, home, folder / "trace")


@pytest.mark.slow
def test_a_change_is_whole_or_absent_after_a_loss_of_power(recorded_changes, tmp_path):
    states, recording = recorded_changes
    tried = 0
    for acknowledged, disk in disks(recording, every=1):
        lay_out(disk, tmp_path / "disk")
        there, done = tmp_path / "disk", len(acknowledged)
        assert everything(there) in states[done : done + 2], acknowledged
        write_synonyms(there / "two", CARS)
        assert read_synonyms(there / "two") == CARS
        with closing(sqlite3.connect(there / "catalog.db")) as database:
            assert database.execute("pragma integrity_check").fetchone() == ("ok",)
        tried += 1
    assert tried > 10


def test_an_index_built_after_an_interrupted_deletion_has_no_rows(home, monkeypatch):
    path = home / "one"
    write_synonyms(path, TV)
    write_rules(path, [Rule(id="first", then={"hide": ["d1"]})])

    def killed(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("klsa_search.storage.directories.collect_garbage", killed)
        with pytest.raises(KeyboardInterrupt):
            delete_index(path)
    assert not (path / "CURRENT").exists()
    write(path, "new")
    assert read_synonyms(path) == {}
    with read_entry(path) as entry:
        assert entry.rows("rules") == []
    verify(path)
