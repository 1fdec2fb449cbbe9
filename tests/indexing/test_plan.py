"""Estimates agree with builds, and builds beyond their memory are divided or refused."""

import gzip
import json
import sys
import zipfile

import pytest

from klsa_search import build, open_index
from klsa_search.collection import open_collection
from klsa_search.core.config import Settings
from klsa_search.errors import CollectionError, SettingsError
from klsa_search.indexing import estimate
from klsa_search.indexing.build import plan, plan_of_size
from klsa_search.indexing.checks import memory_budget, memory_of_machine
from klsa_search.indexing.estimate import BASE, Size, disk_needed, memory_needed, size_of
from klsa_search.indexing.reading import Extent
from klsa_search.storage.current import current_build
from klsa_search.storage.partitions import partitions_of
from tests.support.worlds import random_documents

TEXTS = random_documents(600, 400)


def write(path, texts=TEXTS, opened=open):
    with opened(path, "wt") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    return path


@pytest.mark.parametrize(
    ("memory", "size"),
    [("4GiB", 2**32), ("1.5 KiB", 1536), ("512", 512), (2**20, 2**20), ("4GB", 4 * 10**9)],
)
def test_amounts_of_memory(memory, size):
    assert memory_budget(memory) == size


@pytest.mark.parametrize("memory", ["", "much", "-1", "0", 0, -5, "1e9"])
def test_invalid_amounts_are_named(memory):
    with pytest.raises(SettingsError, match="is not an amount of memory") as caught:
        memory_budget(memory)
    assert caught.value.field == "memory"


def test_the_default_is_a_share_of_the_machine():
    assert memory_budget(None) == int(0.75 * memory_of_machine()) > 0


@pytest.mark.parametrize("opened", [open, gzip.open])
def test_the_number_of_documents_is_estimated_from_bytes(tmp_path, opened):
    name = "a.jsonl" if opened is open else "a.jsonl.gz"
    collection = open_collection(write(tmp_path / name, TEXTS * 20, opened), on_error="skip")
    size = size_of(collection, Settings())
    assert size.sampled == 5_000
    assert collection.problems.count == 0
    assert size.documents == pytest.approx(12_000, rel=0.05 if opened is open else 0.6)


def test_without_files_the_rest_is_counted(monkeypatch):
    monkeypatch.setattr(estimate, "_SAMPLE", 100)
    records = [{"id": f"{n:03}", "text": "wing"} for n in range(600)]
    size = size_of(open_collection(records), Settings())
    assert (size.sampled, size.documents) == (100, 600)
    assert size.bytes == 600 * len('["000", "", "wing", {}]')


def test_long_documents_are_fewer(monkeypatch):
    monkeypatch.setattr(estimate, "_CHARACTERS", 2_500)
    records = [{"id": str(n), "text": "wing " * 200} for n in range(9)]
    size = size_of(open_collection(records), Settings(passages="off"))
    assert (size.sampled, size.documents, size.passages) == (3, 9, 0)
    assert size_of(open_collection(records), Settings(passages="100")).passages == 18


def test_a_pass_over_a_folder_knows_its_files(tmp_path):
    for number in range(12):
        (tmp_path / f"{number:02d}.txt").write_text("wing " * 100)
    (tmp_path / "picture.png").write_bytes(b"no text")
    collection = open_collection(tmp_path)
    extent = Extent(collection)
    assert extent.bytes == 12 * 500
    documents = list(collection.documents())
    assert extent.estimate(5, documents[4].origin) == 12
    assert extent.estimate(5, "elsewhere:3") is None
    assert extent.documents(5) is None


def test_a_plan_of_what_can_be_read_whole(tmp_path):
    costs = plan(write(tmp_path / "a.jsonl"), memory="2GiB", dimensions=20)
    assert (costs.size.documents, costs.size.sampled) == (600, 600)
    assert costs.fits
    values = costs.as_json()
    assert json.loads(json.dumps(values)) == values
    assert (values["documents"], values["disk"]) == (600, costs.disk)
    with pytest.raises(CollectionError):
        plan(tmp_path / "none.jsonl")


# Reuters-21578 and documents generated from it: bytes, peak memory in MiB and MB of the index.
MEASURED = [
    (21_578, 17_700_000, 270, 48),
    (10_000, 5_000_000, 255, 16),
    (30_000, 15_000_000, 292, 47),
    (100_000, 50_000_000, 649, 155),
    (300_000, 150_000_000, 1344, 472),
    (1_000_000, 500_000_000, 3921, 1573),
]


@pytest.mark.parametrize(("documents", "size", "memory", "disk"), MEASURED)
def test_estimates_are_near_what_was_measured(documents, size, memory, disk):
    collection = Size(documents, size)
    assert memory_needed(collection, Settings()) / 2**20 == pytest.approx(memory, rel=0.1)
    assert disk_needed(collection, Settings()) / 1e6 == pytest.approx(disk, rel=0.1)


def test_eigenvectors_and_whole_rows_are_estimated_too():
    size = Size(5_000, 10**6)
    for settings in (Settings.of_preset("paper"), Settings(spectral="exponential")):
        assert memory_needed(size, settings) > memory_needed(size, Settings())
        assert disk_needed(size, settings) > disk_needed(size, Settings())


def test_a_build_beyond_its_memory_is_divided(tmp_path, caplog):
    path = write(tmp_path / "a.jsonl", TEXTS * 2)
    index = build(path, name="a", home=tmp_path, memory=BASE + 2_500_000)
    assert "building 3 partitions one after the other" in caplog.text
    assert len(index) == len(TEXTS) * 2
    assert partitions_of(current_build(tmp_path / "a")).count == 3
    assert {hit.id for hit in index.search(TEXTS[7], k=2)} == {"7", "607"}


def test_a_build_that_cannot_be_divided_is_refused_and_leaves_the_old_index(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl")
    build(path, name="a", home=tmp_path)

    def too_early(*_, **__):
        raise AssertionError("read before the check")

    with monkeypatch.context() as patched:
        patched.setattr(sys.modules["klsa_search.indexing.generation_builder"], "read", too_early)
        for options in ({}, {"preset": "paper"}, {"partitions": 1}):
            with pytest.raises(
                SettingsError,
                match=r"memory = 10.0 KiB is not enough: about 600 documents need \d+",
            ):
                build(path, name="a", home=tmp_path, memory="10KiB", **options)
    records = ({"id": str(n), "text": text} for n, text in enumerate(TEXTS))
    with pytest.raises(
        SettingsError, match=r"memory = 1.0 MiB is not enough: 600 documents need [\d.]+ MiB"
    ):
        build(records, name="a", home=tmp_path, memory="1MiB", replace=True)
    assert len(open_index(tmp_path / "a")) == 600


@pytest.mark.slow
def test_the_budget_changes_no_bit(tmp_path):
    path = write(tmp_path / "a.jsonl")
    one = build(path, name="a", home=tmp_path).manifest
    other = build(path, name="b", home=tmp_path, memory="600MiB").manifest
    assert one.fingerprint == other.fingerprint
    assert one.files == other.files


def test_files_packed_by_zip_are_counted(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.jsonl", "".join(f'{{"id": {n}, "text": "a b"}}\n' for n in range(50)))
    extent = Extent(open_collection(path))
    assert extent.estimate(30, f"{path}:30") is None
    assert extent.estimate(30, f"{tmp_path}/b.zip:30") is None
    monkeypatch.setattr(estimate, "_SAMPLE", 20)
    assert size_of(open_collection(path), Settings()).documents == 50


def test_a_searched_field_that_the_sample_lacks_is_not_an_error(tmp_path):
    costs = plan(write(tmp_path / "a.jsonl", ["a b"] * 50), search="title,text,summary")
    assert costs.size.documents == 50


def test_a_plan_needs_no_documents():
    small, large = (plan_of_size(documents, 40, memory="1GiB") for documents in (100, 10**6))
    assert (small.size.sampled, small.size.documents) == (0, 100)
    assert (small.fits, large.fits) == (True, False)
    for name in ("disk", "serving_memory", "seconds", "peak_memory"):
        assert getattr(large, name) > getattr(small, name)
    assert 0 < large.searches_per_second < small.searches_per_second
    assert plan_of_size(100, 3_000).size.passages > 100


@pytest.mark.parametrize(("documents", "words"), [(0, 10), (10, 0)])
def test_a_size_is_above_zero(documents, words):
    with pytest.raises(SettingsError, match="number above 0"):
        plan_of_size(documents, words)
