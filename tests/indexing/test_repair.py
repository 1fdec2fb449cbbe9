"""Deep verification and repair: all that follows from the documents is restored."""

import os
import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.indexing import verify_deep
from klsa_search.indexing.rewrite import repair
from klsa_search.storage.checksums import note_checked
from klsa_search.storage.directories import generations
from klsa_search.storage.generations import describe_files
from klsa_search.storage.maintenance import rollback
from klsa_search.storage.manifest import read_manifest
from klsa_search.storage.repair import export, readable_generations
from tests.storage.worlds import replace_manifest
from tests.support.worlds import random_documents

TEXTS = random_documents(60, 40, seed=6)


def records(numbers):
    return [{"id": str(n), "title": f"The no {n}", "text": TEXTS[n % 60]} for n in numbers]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    home = tmp_path_factory.mktemp("repair")
    with closing(build(records(range(40)), name="cars", home=home)) as index:
        index.add([*records(range(35, 50)), {"id": "new", "text": "words nobody had"}])
        index.delete(["2", "41"])
        index.add(records(range(36, 38)))
    return home / "cars"


@pytest.fixture
def path(written, tmp_path):
    return shutil.copytree(written, tmp_path / "cars")


def content(path):
    with closing(open_index(path)) as index:
        return index.documents_at(index.doc_ids(index.ids()))


def changed(file):
    bytes_ = bytearray(file.read_bytes())
    bytes_[-1] ^= 1
    file.write_bytes(bytes_)


def slipped(path, name, change):
    """Change an array as a slip of the program would have: its sum is that of what is there."""
    file = path / "000001" / f"{name}.npy"
    array = np.load(file)
    change(array)
    np.save(file, array)
    manifest = read_manifest(file.parent)
    fresh = manifest.model_copy(update={"files": describe_files(file.parent)})
    replace_manifest(file.parent, fresh.model_dump_json().encode())
    note_checked(file.parent, fresh)


def test_a_whole_index_is_left_alone(path):
    before = content(path)
    assert verify_deep(path).counts.documents == 40
    done = repair(path)
    assert (done.fault, done.index.generation) == (None, "000001")
    assert content(path) == before
    done.index.close()


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("expansion_rows.npy", changed),
        ("vocabulary.txt", changed),
        ("documents_starts.npy", changed),
        ("documents_keys.npy", changed),
        ("documents_keys.npy", Path.unlink),
    ],
)
def test_derived_files_are_repaired(path, written, name, harm):
    harm(path / "000001" / name)
    with pytest.raises(IndexDamaged, match=name):
        verify_deep(path)
    with closing(repair(path).index) as index:
        assert index.generation == "000002"
    assert content(path) == content(written)
    verify_deep(path)


def replaced(file, before, after):
    content = file.read_text()
    assert content.count(before) == 1
    file.write_text(content.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"), [('"alpha": 0', '"alpha": 10'), ('"fingerprint": "', '"fingerprint": "0')]
)
def test_nothing_is_built_by_a_damaged_manifest(path, before, after):
    replaced(path / "000001" / "manifest.json", before, after)
    with pytest.raises(IndexDamaged, match=r"manifest.json` is damaged.*klsa-index dump"):
        repair(path)
    with pytest.raises(IndexDamaged, match="some documents could not be read"):
        export([path / "000001"], path.parent / "all.jsonl")
    assert len((path.parent / "all.jsonl").read_text().splitlines()) == 49


def test_a_damaged_current_is_repaired_and_the_log_stays(path, written):
    (path / "CURRENT").write_text("000004\n")
    with closing(repair(path).index) as index:
        assert index.generation == "000001"
    assert content(path) == content(written)


def test_a_repair_equals_a_build(path, tmp_path):
    expected = build(content(path), name="other", home=tmp_path)
    (path / "000001" / "lengths.npy").unlink()
    done = repair(path)
    assert "lengths.npy` is missing" in (done.fault or "")
    assert done.index.manifest.fingerprint == expected.manifest.fingerprint
    files = {name: file.sha256 for name, file in done.index.manifest.files.items()}
    assert files == {name: file.sha256 for name, file in expected.manifest.files.items()}


@pytest.mark.parametrize("name", ["documents.npy", "manifest.json", "WRITES", "WRITES-begun"])
def test_files_that_cannot_be_repaired_are_named_and_nothing_is_changed(path, name):
    changed(path / "000001" / name)
    with pytest.raises(IndexDamaged, match=name.split("-")[0]) as caught:
        repair(path)
    assert "klsa-index dump cars FILE" in caught.value.message
    assert "klsa-index build" not in caught.value.message
    assert sorted(each.name for each in path.iterdir() if each.is_dir()) == ["000001"]


def one_more(array):
    array[len(array) // 2] += 1


@pytest.mark.parametrize(
    ("name", "change", "fact"),
    [
        ("lengths", one_more, "the length of document '20'"),
        ("forward_codes", lambda codes: codes.__setitem__(5, 9), "the terms of document '0'"),
        ("postings_entries", one_more, "postings_entries from position 0"),
        ("postings_best", lambda best: best.fill(1), "postings_best from position 0"),
    ],
)
def test_damage_without_a_wrong_checksum_is_found_by_the_documents(
    path, written, name, change, fact
):
    slipped(path, name, change)
    with pytest.raises(IndexDamaged, match=f"{fact}.*klsa-index repair cars"):
        verify_deep(path)
    repair(path).index.close()
    assert content(path) == content(written)


@pytest.fixture(scope="module")
def with_vectors(tmp_path_factory):
    home = tmp_path_factory.mktemp("vectors")
    some = [
        {**each, "_vectors": {"m": [number, 1, -2]}}
        for number, each in enumerate(records(range(12)))
    ]
    with closing(build(some[:8], name="cars", home=home)) as index:
        index.add([*some[8:], {**some[2], "_vectors": {"m": [5, 5, 1], "n": [1, 2]}}])
        index.delete(["3"])
    return home / "cars"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("vectors_0", None),  # of which the sum is wrong
        ("vectors_0", lambda rows: rows.__setitem__((5, 1), 3)),
        ("vectors_0_documents", lambda documents: documents.__setitem__(slice(4, 6), 5)),
        ("vectors_0_scales", lambda scales: scales.__setitem__(6, 1)),
    ],
)
def test_vectors_are_made_again_from_the_records(with_vectors, tmp_path, name, change):
    path = shutil.copytree(with_vectors, tmp_path / "cars")
    before = content(path)
    if change is None:
        changed(path / "000001" / f"{name}.npy")
        fact = "vectors_0"
    else:
        slipped(path, name, change)
        fact = "the vectors of document"
    with pytest.raises(IndexDamaged, match=fact):
        verify_deep(path)
    with closing(repair(path).index) as index:
        assert {each.name: each.documents for each in index.vector_spaces} == {"m": 11, "n": 1}
        assert [hit.id for hit in index.search("", 1, vector={"m": [11, 1, -2]})] == ["11"]
    assert content(path) == before
    verify_deep(path)


@pytest.mark.parametrize("gone", [1, 40])
def test_an_index_that_was_only_deleted_from(tmp_path, gone):
    with closing(build(records(range(40)), name="cars", home=tmp_path)) as index:
        index.delete([str(n) for n in range(gone)])
        before = index.ids()
    path = tmp_path / "cars"
    assert repair(path).fault is None
    (path / "000001" / "lengths.npy").write_bytes(b"")
    repaired = repair(path)
    assert "lengths.npy" in repaired.fault
    with closing(repaired.index) as index:
        assert index.ids() == before
        index.add(records([50]))
        assert index.ids() == [*before, "50"]
    assert repair(path).fault is None


def test_an_index_without_writes_or_d_cut(tmp_path):
    for name, settings in {"plain": {}, "whole": {"preset": "paper"}}.items():
        build(records(range(20)), name=name, home=tmp_path, **settings).close()
        assert verify_deep(tmp_path / name).counts.documents == 20
        (tmp_path / name / "000001" / "lengths.npy").unlink()
        with closing(repair(tmp_path / name).index) as index:
            assert len(index) == 20
    with pytest.raises(IndexNotFound):
        repair(tmp_path / "none")


def built_in_partitions(home, **options):
    return build(records(range(40)), name="parts", home=home, partitions=2, workers=1, **options)


@pytest.fixture(scope="module")
def written_parts(tmp_path_factory):
    home = tmp_path_factory.mktemp("parts")
    with closing(built_in_partitions(home)) as index:
        index.add([{"id": "new", "text": "words nobody had"}])
    return home / "parts"


@pytest.fixture
def parts(written_parts, tmp_path):
    return shutil.copytree(written_parts, tmp_path / "parts")


@pytest.mark.slow
def test_repair_uses_the_build_whose_partitions_were_written_last(tmp_path):
    built_in_partitions(tmp_path).close()
    built_in_partitions(tmp_path).close()
    rollback(tmp_path / "parts")
    with closing(open_index(tmp_path / "parts")) as index:
        index.add([{"id": "new", "text": "words nobody had"}])
    (tmp_path / "parts" / "CURRENT").write_text("x")
    with closing(repair(tmp_path / "parts").index) as index:
        assert (len(index), index.generation) == (41, "000001")


DAMAGES = {
    "CURRENT": "CURRENT",
    "description": "000001/partitions.json",
    "CURRENT of a partition": "000001-0/CURRENT",
}


@pytest.mark.parametrize("file", DAMAGES.values(), ids=DAMAGES)
def test_writes_of_damaged_partitions_are_not_lost(parts, file, tmp_path):
    (parts / file).write_text("x")
    with pytest.raises(StoreError, match="has writes after its build"):
        built_in_partitions(tmp_path)
    faults = []
    assert export(readable_generations(parts, faults), tmp_path / "out.jsonl") == 41
    assert len(faults) == 1


def test_documents_of_other_partitions_are_exported_if_one_is_missing(parts, tmp_path):
    shutil.rmtree(parts / "000001-1")
    faults = []
    generations = readable_generations(parts, faults)
    assert [path.parent.name for path in generations] == ["000001-0"]
    assert faults == [f"partition `{parts / '000001-1'}` is missing"]


@pytest.mark.slow
def test_a_build_with_a_damaged_partition_is_not_kept_instead_of_an_intact_one(tmp_path):
    for _ in range(2):
        built_in_partitions(tmp_path).close()
    file = tmp_path / "parts" / "000002-0" / "000001" / "documents.npy"
    os.truncate(file, file.stat().st_size - 8)
    built_in_partitions(tmp_path).close()
    kept = {path.name for path in generations(tmp_path / "parts")}
    assert kept == {"000001", "000003"}


def test_a_damaged_current_is_reported_to_readers_of_partitions(parts):
    with closing(open_index(parts)) as index:
        (parts / "CURRENT").write_text("x")
        with pytest.raises(IndexDamaged, match="CURRENT"):
            index.refresh()


def test_what_cannot_be_verified_is_not_said_to_be_repairable(parts):
    (parts / "000001" / "partitions.json").write_text("x")
    with pytest.raises(IndexDamaged, match="restore a backup"):
        repair(parts)


def test_exchanged_partitions_are_not_verified(parts):
    one, two, between = (parts / name for name in ("000001-0", "000001-1", "between"))
    for old, new in ((one, between), (two, one), (between, two)):
        old.rename(new)
    with pytest.raises(IndexDamaged, match="belongs to another partition"):
        verify_deep(parts)


def test_a_missing_current_of_a_partition_can_be_repaired(parts):
    (parts / "000001-0" / "CURRENT").unlink()
    with pytest.raises(IndexDamaged, match="CURRENT is missing: run `klsa-index repair"):
        open_index(parts)
    with closing(repair(parts).index) as index:
        assert len(index) == 41
