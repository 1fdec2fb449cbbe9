"""A build by workers writes the files of a local build, however it is divided or interrupted."""

import json
import random
from pathlib import Path

import pytest

import klsa_search as klsa
from klsa_search.cluster import counting, source, weighing
from klsa_search.cluster import source as cutting
from klsa_search.cluster.build import build
from klsa_search.delta import statistics
from klsa_search.errors import CollectionError, SettingsError
from klsa_search.storage.maintenance import delete_index
from tests.cluster.dying_workers import Dying

from .local_workers import Here

WORDS = [
    "pump",
    "heat",
    "oil",
    "valve",
    "engine",
    "the",
    "and",
    "of",
    "straße",
    "Öl",
    "日本語",
    "coolant",
    "leak",
    "gear",
    "rust",
    "weld",
    "bolt",
    "torque",
    "seal",
    "flange",
    "rotor",
    "stator",
]


def records(number=160):
    chance = random.Random(7)
    for i in range(number):
        words = chance.choices(WORDS, k=chance.randrange(0, 30))
        yield {
            "_id": f"d{chance.randrange(10**6):06d}-{i}",
            "title": " ".join(words[:3]) if i % 3 else "",
            "text": "" if i % 11 == 0 else " ".join([*words, f"only{i}" if i % 7 == 0 else "pump"]),
            "year": 1990 + i % 9,
            "tags": ["a", f"t{i % 5}"] if i % 4 else "b",
            "when": f"2024-03-{1 + i % 28:02d}",
        }


def written(path: Path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path):
    return written(tmp_path / "notes.jsonl", [json.dumps(each) for each in records()])


@pytest.fixture
def small(monkeypatch):
    """Parts, pieces and ranges so small that a small collection is cut everywhere."""
    monkeypatch.setattr(cutting, "ROWS", 16)
    monkeypatch.setattr(cutting, "PIECE", 4_000)
    monkeypatch.setattr(source, "PART", 5_000)
    monkeypatch.setattr(counting, "KEYS", 60)
    monkeypatch.setattr(counting, "ENTRIES", 100)


def manifest(index):
    told = index.manifest.model_dump()
    del told["build"]
    return told


def built(tmp_path, source, name, shards=3, workers=None, **options):
    options = {"home": tmp_path / "index", **options}
    with build(source, name=name, workers=workers or Here(), shards=shards, **options) as index:
        return manifest(index)


def plainly(tmp_path, source, **options):
    with klsa.build(source, name="plain", home=tmp_path / "index", **options) as index:
        return manifest(index)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"common_weight": 0.3, "search": "title^3,tags,text", "fields": ("year", "when")},
        {"pairs": 0.0, "language": "auto", "normalised": False},
    ],
    ids=str,
)
def test_every_file_is_that_of_one_machine(tmp_path, file, small, settings):
    assert built(tmp_path, file, "cluster", **settings) == plainly(tmp_path, file, **settings)


@pytest.mark.parametrize(
    "shards", [1, 4, *(pytest.param(each, marks=pytest.mark.long) for each in (2, 50))]
)
def test_no_cut_changes_a_bit(tmp_path, file, small, shards):
    assert built(tmp_path, file, "cluster", shards) == plainly(tmp_path, file)
    assert not list((tmp_path / "index" / "cluster").glob(".work-*"))


@pytest.mark.parametrize("number", [0, 1, 2, 17])
def test_small_collections(tmp_path, small, number):
    path = written(tmp_path / "few.jsonl", map(json.dumps, records(number)))
    assert built(tmp_path, path, "cluster") == plainly(tmp_path, path)


def test_other_sources_are_read_by_one_step(tmp_path, file, small):
    folder = tmp_path / "texts"
    folder.mkdir()
    for i, each in enumerate(records(20)):
        (folder / f"{i:02d}.txt").write_text(each["text"])
    assert built(tmp_path, folder, "texts") == plainly(tmp_path, folder)
    bare = written(tmp_path / "bare.jsonl", (json.dumps({"text": e["text"]}) for e in records(20)))
    assert built(tmp_path, bare, "bare") == plainly(tmp_path, bare, replace=True)


def test_pairs_without_numbers_are_no_features_here_as_there(tmp_path, file, small, monkeypatch):
    monkeypatch.setattr(statistics, "NUMBERS", 90)
    monkeypatch.setattr(weighing, "NUMBERS", 90)
    wanted = plainly(tmp_path, file)["files"]["epoch_pairs.npy"]
    assert built(tmp_path, file, "cluster")["files"]["epoch_pairs.npy"] == wanted
    monkeypatch.undo()
    assert plainly(tmp_path, file)["files"]["epoch_pairs.npy"] != wanted


def test_a_build_goes_on_where_it_was(tmp_path, file, small):
    whole = Dying(-1)
    wanted = built(tmp_path, file, "whole", workers=whole)
    calls = -1 - whole.left
    begun = 0
    for _ in range(3 * calls):
        workers = Dying(1 + calls // 4)
        begun += 1
        try:
            assert built(tmp_path, file, "again", workers=workers) == wanted
        except KeyboardInterrupt:
            assert len(list((tmp_path / "index" / "again").glob(".work-*"))) == 1
            continue
        break
    assert begun == 4
    assert not list((tmp_path / "index" / "again").glob(".work-*"))


def test_what_was_done_for_other_settings_goes(tmp_path, file):
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path, file, "notes", workers=Dying(3))
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path, file, "notes", workers=Dying(3), b=0.5)
    assert len(list((tmp_path / "index" / "notes").glob(".work-*"))) == 1
    with klsa.build(file, name="notes", home=tmp_path / "index"):
        assert not list((tmp_path / "index" / "notes").glob(".work-*"))


def test_an_index_that_was_never_whole_is_deleted_with_what_was_done(tmp_path, file):
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path, file, "notes", workers=Dying(3))
    assert delete_index(tmp_path / "index" / "notes") == []
    assert not (tmp_path / "index" / "notes").exists()


def faulty():
    lines = [json.dumps(each) for each in records(60)]
    again = json.loads(lines[3])
    lines[25] = json.dumps({"_id": "bad", "text": ["a"]})
    lines[40] = "{broken"
    return [*lines[:30], "", json.dumps(again), *lines[30:], json.dumps(again)]


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_fault_is_told_as_on_one_machine(tmp_path, small, order):
    path = written(tmp_path / "bad.jsonl", faulty()[::order])
    with pytest.raises(CollectionError) as plain:
        plainly(tmp_path, path)
    with pytest.raises(CollectionError) as cluster:
        built(tmp_path, path, "cluster")
    assert str(cluster.value) == str(plain.value)
    assert not (tmp_path / "index" / "cluster").exists()


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_skipped_is_told_as_on_one_machine(tmp_path, small, caplog, order):
    path = written(tmp_path / "bad.jsonl", faulty()[::order])
    wanted = plainly(tmp_path, path, on_error="skip")
    told = caplog.messages[-1]
    assert built(tmp_path, path, "cluster", reading={"on_error": "skip"}) == wanted
    assert wanted["counts"]["skipped"] == 4
    assert caplog.messages[-1] == told


def test_what_only_one_machine_can_make_is_refused(tmp_path, file):
    with pytest.raises(SettingsError, match="build without --cluster"):
        built(tmp_path, file, "paper", preset="paper")
    with pytest.raises(SettingsError, match="shards = 0 is less than 1"):
        built(tmp_path, file, "none", shards=0)
    with pytest.raises(SettingsError, match="about 160 documents need"):
        built(tmp_path, file, "large", memory=2**18)
    with pytest.raises(SettingsError, match="passages = '300': a build with --cluster"):
        built(tmp_path, file, "passages", passages=300)
    with pytest.raises(CollectionError, match="cannot be read by other processes"):
        built(tmp_path, [{"id": "a", "text": "b"}], "list")
    given = {"id": "v", "text": "text", "_vectors": {"m": [1, 2]}}
    vectors = written(tmp_path / "vectors.jsonl", [json.dumps(given)])
    with pytest.raises(CollectionError, match=r"document 'v' has vectors.*--cluster"):
        built(tmp_path, vectors, "vectors")


def test_columns_and_split_fields_are_those_of_one_machine(tmp_path):
    path = tmp_path / "desk.csv"
    rows = "".join(f'S{n};Pump {n};It leaks coolant {n};"u;v"\n' for n in range(9))
    path.write_text(f"key;subject;body;tags\n{rows}")
    split = {"split": {"tags": ";"}}
    one = plainly(tmp_path, path, **split)
    assert built(tmp_path, path, "cluster", **split) == one
    assert one["reading"]["columns"] == {"id": "key", "title": "subject", "text": ["body"]}
