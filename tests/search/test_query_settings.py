"""Query settings change without a refit, for every reader, and no copy or rebuild loses them."""

import pickle
import sqlite3
import uuid
from contextlib import closing

import pytest

from klsa_search import build, open_index
from klsa_search.core.config import QUERY_SETTINGS, Settings
from klsa_search.core.parameters import RankingSettings
from klsa_search.errors import IndexDamaged, SettingsError, StoreError
from klsa_search.indexing import refit, repair
from klsa_search.search.configuration import change_settings
from klsa_search.storage.backup import back_up
from klsa_search.storage.catalog_entry import rows_of
from klsa_search.storage.maintenance import copy_index, rollback, verify
from klsa_search.storage.repository import Repository
from klsa_search.storage.restore import follow, restore_index

TEXTS = ("the red wing", "a wing of the swallow", "swallow and robin", "the robin sings " * 30)
CHANGES = {"alpha": 0.25, "z": 2, "match": "all", "page_title": "Birds", "boosts": "title^2"}


@pytest.fixture
def index(copy_of):
    documents = [{"id": str(n), "title": "Bird", "text": text} for n, text in enumerate(TEXTS)]
    return copy_of(documents, name="birds", dimensions=2, passages=10)


def answers(index, **options):
    for group in ("document", "passage"):
        found = index.search("red bird", group=group, **options)
        yield [(hit.id, hit.score) for hit in found.hits], found.parameters


def settings_of(index):
    return {name: getattr(index.settings, name) for name in CHANGES}


def test_searches_are_those_with_the_same_parameters(index):
    index.add([{"id": "4", "title": "Bird", "text": "red feathers"}])
    parameters = {name: value for name, value in CHANGES.items() if name != "page_title"}
    before, expected = list(answers(index)), list(answers(index, **parameters))
    assert before != expected
    with open_index(index.path.parent) as other, index.snapshot() as snapshot:
        index.update_settings(**CHANGES)
        assert settings_of(index) == CHANGES
        assert list(answers(index)) == expected
        assert list(answers(snapshot)) == list(answers(other)) == before
        assert (other.refresh(), other.refresh()) == (True, False)
        assert list(answers(other)) == expected
        index.add([{"id": "5", "text": "red"}])
        assert settings_of(index) == CHANGES
        kept = pickle.dumps(other.snapshot())
        index.update_settings(alpha=0.5)
        assert settings_of(index) == {**CHANGES, "alpha": 0.5}
        with pickle.loads(kept) as again:
            assert list(answers(again)) == expected
        with pytest.raises(StoreError, match="read-only"):
            snapshot.update_settings(alpha=0.5)


def test_settings_of_the_build_leave_no_file(index):
    built = index.settings
    index.update_settings(**CHANGES)
    index.update_settings(**{name: getattr(built, name) for name in CHANGES})
    assert index.settings == built
    assert rows_of(index.path.parent, index.generation) == ""
    index.update_settings(**CHANGES)
    change_settings(index.path.parent, None)
    assert index.refresh()
    assert index.settings == built


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"k1": 1.0}, "k1"),
        ({"spectral": "truncation"}, "spectral"),
        ({"head": 1}, "head"),
        ({"ranker": "lsi"}, "ranker"),
        ({"alpha": 2.0}, "alpha"),
        ({"boosts": "colour^2"}, "boosts"),
        ({"coverage": 0.9, "latent": 0.9}, "latent"),
    ],
)
def test_other_settings_are_refused_and_nothing_changes(index, changes, field):
    before = index.settings
    with pytest.raises(SettingsError) as refused:
        index.update_settings(**{"z": 3, **changes})
    assert refused.value.field == field
    if field in ("k1", "spectral", "head"):
        assert f"`klsa-index refit NAME --{field} {changes[field]}`" in refused.value.message
    assert index.settings == before


def test_a_part_that_the_build_left_out_can_be_turned_on(tmp_path):
    with build([{"id": "a", "text": "x"}], name="n", home=tmp_path, coverage=0.0) as index:
        index.update_settings(coverage=0.1)
        assert index.settings.coverage == 0.1


def test_a_ranker_of_lsi_needs_a_refit(tmp_path):
    with (
        build([{"id": "a", "text": "x"}], name="n", home=tmp_path) as index,
        pytest.raises(SettingsError, match=r"ranker = 'lsi' needs another build"),
    ):
        index.update_settings(ranker="lsi")


def test_every_setting_of_queries_is_one_of_searches_or_of_the_page():
    searched = set(RankingSettings.model_fields)
    assert searched - QUERY_SETTINGS == {"dimensions", "spectral", "gamma", "head"}
    assert QUERY_SETTINGS - searched == {"operators", "spelling", "synonyms", "match", "page_title"}
    assert set(Settings.model_fields) >= QUERY_SETTINGS


def test_a_refit_builds_with_them_and_a_rollback_returns(index):
    index.update_settings(**CHANGES)
    with refit(index.path.parent, z=5) as later:
        assert settings_of(later) == {**CHANGES, "z": 5}
        assert later.manifest.checked_settings() == later.settings
        assert rows_of(later.path.parent, later.generation) == ""
        later.update_settings(z=7)
    rollback(index.path.parent)
    with open_index(index.path.parent) as before:
        assert settings_of(before) == CHANGES


def test_changes_during_a_refit_are_applied_after_it(index):
    index.update_settings(alpha=0.25)

    def progress(phase, done, total):
        change_settings(index.path.parent, {"z": 3, "page_title": "Birds"})

    with refit(index, progress=progress, z=5, k1=1.0) as later:
        chosen = later.settings
        assert (chosen.alpha, chosen.z, chosen.page_title, chosen.k1) == (0.25, 3, "Birds", 1.0)
        assert verify(later.path.parent)


def test_a_change_that_does_not_go_with_a_refit_fails_it(index):
    def progress(phase, done, total):
        change_settings(index.path.parent, {"coverage": 0.6})

    with pytest.raises(SettingsError, match="latent"):
        refit(index, progress=progress, latent=0.5)
    index.refresh()
    assert index.settings.coverage == 0.6


def test_copies_have_them(index, tmp_path, tmp_path_factory):
    others = tmp_path_factory.mktemp("others")
    index.update_settings(**CHANGES)
    copy_index(index.path.parent, others / "copy")
    repository = Repository(f"memory://{uuid.uuid4().hex}/backups")
    back_up(repository, tmp_path)
    restore_index(repository, "birds", others / "restored")
    follow(repository, others / "follower")
    for path in (others / "copy", others / "restored", others / "follower" / "birds"):
        with open_index(path) as copy:
            assert settings_of(copy) == CHANGES
    with open_index(others / "follower" / "birds") as follower:
        for changes in ({**CHANGES, "z": 9}, None):
            change_settings(index.path.parent, changes)
            index.refresh()
            back_up(repository, tmp_path)
            follow(repository, others / "follower")
            assert follower.refresh()
            assert (follower.settings, follower.generation) == (index.settings, "000001")


def test_damage_is_named_and_reset(index):
    index.update_settings(**CHANGES)
    path = index.path.parent
    with closing(sqlite3.connect(path.parent / "catalog.db")) as database, database:
        database.execute("update settings set changes = replace(changes, '0.25', '0.75')")
    for use in (open_index, verify, repair, refit):
        with pytest.raises(IndexDamaged, match="klsa-index settings birds --reset"):
            use(path)
    with pytest.raises(IndexDamaged):
        index.update_settings(z=3)
    change_settings(path, None)
    with open_index(path) as again:
        assert again.settings.alpha == 0.7


def test_a_repair_builds_with_them(index):
    index.update_settings(**CHANGES)
    path = index.path.parent
    lengths = index.path / "lengths.npy"
    lengths.write_bytes(lengths.read_bytes()[:-4])
    with repair(path).index as repaired:
        assert settings_of(repaired) == CHANGES
