"""Aliases: changed in one step, and never in place of an index."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from klsa_search import build, list_indexes, open_index
from klsa_search.errors import IndexNotFound, SettingsError, StoreError
from klsa_search.storage.aliases import aliases_in, delete_alias, set_alias
from klsa_search.storage.catalog import change_catalog
from klsa_search.storage.catalog_entry import Entry
from klsa_search.storage.maintenance import delete_index
from tests.support.forked import another_thread


def made(home, name, text="wing"):
    build([{"id": name, "text": text}], name=name, home=home).close()


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    home = tmp_path_factory.mktemp("two")
    made(home, "one")
    made(home, "two")
    return home


@pytest.fixture
def home(two, tmp_path):
    return shutil.copytree(two, tmp_path, dirs_exist_ok=True)


def found(home, name):
    index = open_index(home / name)
    ids = index.ids()
    index.close()
    return ids


def test_an_alias_is_another_name_and_points_to_its_target(home):
    set_alias(home, "live", "one")
    assert (found(home, "live"), aliases_in(home)) == (["one"], {"live": "one"})
    set_alias(home, "live", "two")
    assert (found(home, "live"), aliases_in(home)) == (["two"], {"live": "two"})
    assert list_indexes(home) == ["one", "two"]
    delete_alias(home, "live")
    assert aliases_in(home) == {}
    with pytest.raises(IndexNotFound):
        open_index(home / "live")
    assert found(home, "two") == ["two"]


def test_an_open_index_stays_when_its_alias_moves(home):
    set_alias(home, "live", "one")
    index = open_index(home / "live")
    set_alias(home, "live", "two")
    assert not index.refresh()
    assert (index.name, index.ids()) == ("one", ["one"])
    index.close()


def test_nothing_is_built_deleted_or_aliased_in_its_place(home):
    set_alias(home, "live", "one")
    with pytest.raises(StoreError, match="is an alias of `one`"):
        made(home, "live")
    with pytest.raises(StoreError, match="is an alias of `one`"):
        delete_index(home / "live")
    with pytest.raises(SettingsError, match="name that index"):
        set_alias(home, "other", "live")
    with pytest.raises(SettingsError, match="alias"):
        set_alias(home, "two", "one")
    (home / "notes").write_text("mine")
    with pytest.raises(SettingsError, match="alias"):
        set_alias(home, "notes", "one")
    assert (home / "notes").read_text() == "mine"
    assert found(home, "live") == ["one"]
    assert found(home, "two") == ["two"]


@pytest.mark.parametrize("name", ["", "../up", ".hidden", "a/b", "x" * 101, "é"])
def test_names_that_no_index_can_have(home, name):
    for change in (lambda: set_alias(home, name, "one"), lambda: set_alias(home, "live", name)):
        with pytest.raises(SettingsError):
            change()
    with pytest.raises(SettingsError):
        delete_alias(home, name)


def test_missing_targets_and_aliases_are_errors(home, tmp_path):
    with pytest.raises(IndexNotFound, match="before you set the alias"):
        set_alias(home, "live", "three")
    with pytest.raises(IndexNotFound, match="no alias"):
        delete_alias(home, "one")
    assert aliases_in(tmp_path / "nowhere") == {}
    set_alias(home, "live", "one")
    delete_index(home / "one")
    with pytest.raises(IndexNotFound, match="one"):
        open_index(home / "live")


def test_a_concurrent_reader_sees_the_old_or_the_new_target(home):
    set_alias(home, "live", "one")
    seen = set()
    with another_thread(lambda: seen.add(aliases_in(home).get("live"))):
        for count in range(100):
            set_alias(home, "live", ("one", "two")[count % 2])
    assert seen <= {"one", "two"}


def test_a_folder_that_is_built_meanwhile_has_the_name(home):
    set_alias(home, "live", "one")
    made(home.parent / "other", "live", "tail")
    (home.parent / "other" / "live").rename(home / "live")
    assert (found(home, "live"), aliases_in(home)) == (["live"], {})
    delete_index(home / "live")
    assert (found(home, "live"), aliases_in(home)) == (["one"], {"live": "one"})


def test_aliases_and_settings_of_indexes_change_in_one_transaction(home):
    with pytest.raises(RuntimeError), change_catalog(home) as catalog:
        catalog.insert("aliases", [("live", "two")])
        Entry(catalog, home / "two").insert("settings", [("000001", '{"alpha": 0.25}')])
        raise RuntimeError
    with open_index(home / "two") as index:
        assert (aliases_in(home), index.settings.alpha) == ({}, 0.7)
    with change_catalog(home) as catalog:
        catalog.insert("aliases", [("live", "two")])
        Entry(catalog, home / "two").insert("settings", [("000001", '{"alpha": 0.25}')])
    with open_index(home / "live") as index:
        assert (index.name, index.settings.alpha) == ("two", 0.25)


def test_many_at_once_all_succeed(home):
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda name: set_alias(home, name, "one"), ["a", "b", "same", "same"]):
            pass
    assert sorted(aliases_in(home)) == ["a", "b", "same"]
