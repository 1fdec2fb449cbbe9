"""Estimates agree with builds; builds that do not fit are refused before any work."""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from dataclasses import replace

import pytest

from klsa_search import build, open_index
from klsa_search.collection import open_collection
from klsa_search.core.config import Settings
from klsa_search.errors import CollectionError, SettingsError
from klsa_search.indexing import Shape
from klsa_search.indexing import survey as survey_module
from klsa_search.indexing.checks import memory_budget, memory_of_machine
from klsa_search.indexing.plan import plan, plan_of_size
from klsa_search.indexing.reading import Extent
from klsa_search.indexing.sizes import (
    disk_needed,
    extrapolate,
    memory_needed,
    shape_of_first,
    shape_of_size,
)
from klsa_search.indexing.survey import survey
from tests.support.worlds import counts_of, random_documents

TEXTS = random_documents(600, 400)


def write(path, texts=TEXTS, opened=open):
    with opened(path, "wt") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    return path


@pytest.mark.parametrize(
    ("memory", "size"),
    [("4GiB", 2**32), ("1.5 KiB", 1536), ("512", 512), (2**20, 2**20), ("800MiB", 800 * 2**20)],
)
def test_amounts_of_memory(memory, size):
    assert memory_budget(memory) == size


@pytest.mark.parametrize("memory", ["", "much", "4GB", "-1", "0", 0, -5, "1e9"])
def test_invalid_amounts_are_named(memory):
    with pytest.raises(SettingsError, match="is not an amount of memory") as caught:
        memory_budget(memory)
    assert caught.value.field == "memory"


def test_the_default_is_a_share_of_the_machine():
    assert memory_budget(None) == int(0.75 * memory_of_machine()) > 0


def shape(**changes):
    zero = dict.fromkeys(Shape.__dataclass_fields__, 0)
    return Shape(**{**zero, **changes})


def test_heaps_law_is_prolonged():
    few = shape(documents=100, tokens=1000, terms=50, non_zeros=800, pairs=10, stored=3000)
    many = shape(documents=400, tokens=4000, terms=100, non_zeros=3200, pairs=40, stored=12000)
    many = replace(many, columns=500, texts=7)
    told = extrapolate(few, many, 1600)
    # Terms grow with the root of the documents, pairs as they do; each document is as before.
    assert (told.terms, told.pairs, told.tokens, told.non_zeros) == (200, 160, 16000, 12800)
    assert (told.documents, told.stored) == (1600, 48000)
    assert (told.columns, told.texts) == (4 * 500, 4 * 7)
    assert extrapolate(few, many, 400) == many
    assert extrapolate(shape(), shape(documents=3), 9) == shape(documents=3)


def test_the_shape_of_the_first_documents_is_that_of_a_collection_of_them():
    counts = counts_of(*TEXTS)
    assert shape_of_first(counts, 1000, 600) == Shape.of(counts, 1000)
    assert shape_of_first(counts, 2000, 300) == Shape.of(counts_of(*TEXTS[:300]), 1000)


@pytest.mark.parametrize("opened", [open, gzip.open])
def test_the_number_of_documents_is_estimated_from_bytes(tmp_path, opened):
    name = "a.jsonl" if opened is open else "a.jsonl.gz"
    collection = open_collection(write(tmp_path / name, TEXTS * 20, opened), on_error="skip")
    found = survey(collection, Settings(), most=6_000)
    assert found.sampled.documents == 6_000
    assert collection.problems.count == 0
    assert found.shape.documents == pytest.approx(12_000, rel=0.05 if opened is open else 0.6)


def test_without_files_the_rest_is_counted():
    records = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)]
    found = survey(open_collection(records), Settings(), most=100)
    assert (found.sampled.documents, found.shape.documents) == (100, 600)
    assert found.shape.tokens == 6 * found.sampled.tokens


def test_long_documents_are_fewer(monkeypatch):
    monkeypatch.setattr(survey_module, "CHARACTERS", 2_500)
    records = [{"id": str(n), "text": "wing " * 200} for n in range(9)]
    found = survey(open_collection(records), Settings(), most=100)
    assert (found.sampled.documents, found.shape.documents) == (3, 9)


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


def test_a_plan_of_what_can_be_read_whole_is_exact(tmp_path):
    path = write(tmp_path / "a.jsonl")
    found = plan(path, memory="2GiB", dimensions=20)
    index = build(path, name="a", home=tmp_path, dimensions=20)
    counts = index.manifest.counts
    assert (found.shape.documents, found.sampled) == (600, 600)
    assert (found.shape.terms, found.shape.non_zeros) == (counts.terms, counts.non_zeros)
    assert found.size == pytest.approx(index.manifest.bytes(), rel=0.3)
    assert found.fits
    told = found.as_json()
    assert json.loads(json.dumps(told)) == told
    assert told["seconds"] == pytest.approx(sum(phase["seconds"] for phase in told["phases"]))


def test_nothing_can_be_planned_too(tmp_path):
    found = plan(write(tmp_path / "a.jsonl", [""]))
    assert (found.shape.documents, found.seconds) == (1, 0)
    with pytest.raises(CollectionError):
        plan(tmp_path / "none.jsonl")


def test_documents_that_are_all_alike_have_no_features_and_can_be_planned(tmp_path):
    found = plan(write(tmp_path / "a.jsonl", ["a b"] * 50))
    assert (found.shape.documents, found.fits) == (50, True)


def test_needs_grow_with_the_collection():
    settings = Settings()
    few = shape(documents=10_000, tokens=10**6, terms=10**4, non_zeros=10**6, pair_non_zeros=10**6)
    many = extrapolate(few, few, 10**6)
    for needed in (memory_needed, disk_needed):
        limits = {"memory": 2**32, "processes": 2} if needed is memory_needed else {}
        small, large = needed(few, settings, **limits), needed(many, settings, **limits)
        assert small.keys() == large.keys()
        assert all(large[name] >= small[name] for name in small)


# Shapes of Reuters-21578 and of documents generated from it, and what their builds took: all
# processes at the peak of any phase, and the files. docs/explanations/performance.md says how
# it was measured. What is stored of the two largest, and their words, are estimated from those of
# 100,000.
REUTERS = (21_578, 21_671_271, 1_617_801, 36_364, 1_040_646, 171_936, 1_022_073, 2_892_766)
MEMORY = [
    (REUTERS, 370),
    ((30_000, 18_937_388, 1_549_945, 26_992, 1_163_841, 163_775, 972_488, 2_625_542), 371),
    (
        (300_000, 192_000_000, 15_737_871, 151_678, 11_957_544, 1_033_453, 11_832_660, 26_355_000),
        1344,
    ),
    (
        (
            1_000_000,
            640_000_000,
            52_503_554,
            384_313,
            39_969_962,
            2_523_590,
            41_758_393,
            87_925_000,
        ),
        3921,
    ),
]
DISK = [
    (REUTERS, 44.2),
    ((100_000, 63_995_114, 5_224_387, 65_008, 3_955_188, 453_774, 3_662_795, 8_748_948), 147.4),
]


@pytest.mark.parametrize(("figures", "mebibytes"), MEMORY)
def test_the_memory_that_was_measured_is_what_a_shape_needs(figures, mebibytes):
    memory = memory_needed(Shape(*figures), Settings(), memory=2**33, processes=2)
    assert max(memory.values()) / 2**20 == pytest.approx(mebibytes, rel=0.1)


@pytest.mark.parametrize(("figures", "megabytes"), DISK)
def test_the_room_that_was_measured_is_what_a_shape_needs(figures, megabytes):
    disk = disk_needed(Shape(*figures), Settings())
    assert sum(disk.values()) / 1e6 == pytest.approx(megabytes, rel=0.03)


def test_each_large_phase_of_300_000_documents_is_what_was_measured():
    memory = memory_needed(Shape(*MEMORY[2][0]), Settings(), memory=2**34, processes=2)
    measured = {"postings": 1341, "eigenvectors": 1341, "neighbours": 1157, "expansion": 1316}
    assert {name: memory[name] / 2**20 for name in measured} == pytest.approx(measured, rel=0.1)


def test_intermediate_files_need_no_memory():
    large = shape(documents=10**6, words=10**8, tokens=10**8, terms=10**5, non_zeros=10**7)
    little = memory_needed(large, Settings(), memory=2**30, processes=2)
    much = memory_needed(large, Settings(), memory=2**36, processes=2)
    assert much["documents"] - little["documents"] == 4 * 10**8
    # Numbers of terms and pairs while they are counted, and what is counted of both.
    assert much["counts"] - little["counts"] == 4 * 10**8 + 12 * 10**8


def test_a_build_beyond_its_memory_is_refused_and_leaves_the_old_index(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl")
    build(path, name="a", home=tmp_path)

    def too_early(*_, **__):
        raise AssertionError("read before the check")

    with monkeypatch.context() as patched:
        patched.setattr(sys.modules["klsa_search.indexing.generation_builder"], "read", too_early)
        with pytest.raises(
            SettingsError, match=r"memory = 0 MiB is not enough: about 600 documents need \d+"
        ):
            build(path, name="a", home=tmp_path, memory="10KiB")
    records = ({"id": str(n), "text": text} for n, text in enumerate(TEXTS))
    with pytest.raises(
        SettingsError, match=r"memory = 1 MiB is not enough: 600 documents need \d+ MiB, most"
    ):
        build(records, name="a", home=tmp_path, memory="1MiB", replace=True)
    assert len(open_index(tmp_path / "a")) == 600


def test_the_budget_changes_no_bit(tmp_path):
    path = write(tmp_path / "a.jsonl")
    one = build(path, name="a", home=tmp_path).manifest
    other = build(path, name="b", home=tmp_path, memory="600MiB").manifest
    assert one.fingerprint == other.fingerprint
    assert one.files == other.files


def test_files_packed_by_zip_are_counted(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.jsonl", "".join(f'{{"id": {n}, "text": "a b"}}\n' for n in range(50)))
    extent = Extent(open_collection(path))
    assert extent.estimate(30, f"{path}:30") is None
    assert extent.estimate(30, f"{tmp_path}/b.zip:30") is None
    assert survey(open_collection(path), Settings(), most=20).shape.documents == 50


def test_a_searched_field_that_the_sample_lacks_is_not_an_error(tmp_path):
    path = write(tmp_path / "a.jsonl", ["a b"] * 50)
    found = plan(path, search="title,text,summary")
    assert found.shape.documents == 50


def test_the_shape_of_a_size_is_near_the_shapes_that_were_measured():
    for figures, _ in MEMORY[1:]:
        measured = Shape(*figures)
        found = shape_of_size(measured.documents, round(measured.words / measured.documents))
        for name in ("tokens", "terms", "non_zeros", "pairs", "pair_non_zeros", "words"):
            assert getattr(found, name) == pytest.approx(getattr(measured, name), rel=0.1), name
        assert found.stored == pytest.approx(measured.stored, rel=0.15)


@pytest.mark.parametrize(("figures", "mebibytes"), MEMORY[1:])
def test_the_memory_that_was_measured_is_what_a_size_needs(figures, mebibytes):
    memory = memory_needed(shape_of_size(figures[0], 88), Settings(), memory=2**33, processes=2)
    assert max(memory.values()) / 2**20 == pytest.approx(mebibytes, rel=0.1)


@pytest.mark.slow
def test_a_plan_needs_no_documents():
    small, large = (plan_of_size(documents, 40, memory="8GiB") for documents in (100, 10**6))
    assert (small.sampled, small.shape.documents, small.fits) == (0, 100, True)
    assert large.size > small.size
    assert large.serving_memory > small.serving_memory
    assert 0 < large.searches_per_second < small.searches_per_second
    assert all(phase.seconds > 0 for phase in large.phases)


@pytest.mark.parametrize(("documents", "words"), [(0, 10), (10, 0)])
def test_a_size_is_above_zero(documents, words):
    with pytest.raises(SettingsError, match="number above 0"):
        plan_of_size(documents, words)
