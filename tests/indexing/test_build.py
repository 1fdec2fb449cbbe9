"""Builds: the files they write, reproducibility, and what is refused."""

import errno
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from klsa_search import Document, build, list_indexes, open_index
from klsa_search.core.progress import PHASES
from klsa_search.errors import (
    CollectionError,
    FormatUnsupported,
    IndexDamaged,
    IndexNotFound,
    SettingsError,
    StoreError,
)
from klsa_search.indexing.compaction import compact
from klsa_search.search.rankers import RANKERS
from klsa_search.storage.maintenance import verify
from klsa_search.storage.manifest import FORMAT_VERSION
from klsa_search.storage.names import LOG_FILES
from tests.conftest import ROOT
from tests.storage.worlds import replace_manifest
from tests.support.waiting import PATIENCE
from tests.support.worlds import random_documents

RECORDS = [{"id": str(i), "text": text} for i, text in enumerate(random_documents(40, 30))]


def test_an_index_opens_again_as_it_was_built(tmp_path):
    built = build(RECORDS, name="a", home=tmp_path, dimensions=7, alpha=0.3)
    opened = open_index(tmp_path / "a")
    assert (opened.name, opened.generation, len(opened)) == ("a", "000001", 40)
    assert opened.settings == built.settings
    assert (opened.settings.dimensions, opened.settings.alpha) == (7, 0.3)
    assert np.array_equal(opened.scores("t03 t05"), built.scores("t03 t05"))
    counts = opened.manifest.counts
    assert (counts.documents, counts.terms, counts.skipped) == (40, 30, 0)
    assert counts.tokens == sum(len(record["text"].split()) for record in RECORDS)
    spectrum = opened.manifest.spectra["bm25"]
    assert spectrum.dimensions == 7
    assert spectrum.residual < 1e-6
    assert 0 < spectrum.captured < 1
    assert verify(tmp_path / "a") == opened.manifest


def test_python_uses_the_index_directory_of_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLSA_HOME", raising=False)
    build([{"id": "1", "text": "wing"}], name="here").close()
    monkeypatch.setenv("KLSA_HOME", str(tmp_path / "elsewhere"))
    with build([{"id": "1", "text": "wing"}], name="there") as index:
        assert index.path.parent == tmp_path / "elsewhere" / "there"
    assert list_indexes() == ["there"]
    monkeypatch.setenv("KLSA_HOME", "")
    assert list_indexes() == list_indexes(tmp_path / "index") == ["here"]


def test_the_readme_of_an_index_lists_its_files(tmp_path):
    whole = build(RECORDS, name="a", home=tmp_path, spectral="squashing")
    metadata = {"year": 2024, "day": "2024-03-01", "of": ["a", "b"]}
    cut = build([RECORDS[0] | metadata, *RECORDS[1:]], name="b", home=tmp_path)
    build(RECORDS, name="c", home=tmp_path).close()
    with open_index(tmp_path / "c") as index:
        index.add([RECORDS[0] | {"text": "wings"}, *RECORDS[1:]])  # not the first ones any more
    compacted = compact(tmp_path / "c")
    build(RECORDS, name="d", home=tmp_path, partitions=2).close()
    files = set()
    for index in (whole, cut, compacted, *map(open_index, (tmp_path / "d").glob("000001-?"))):
        held = {path.name for path in index.path.iterdir()}
        written = held - {"KLSA-INDEX", "manifest.json"}
        assert {name for name in written if not LOG_FILES.fullmatch(name)} == {
            *index.manifest.files
        }
        files |= held
    readme = (ROOT / "index" / "README.md").read_text(encoding="utf-8")
    readme, _, _ = readme.partition("## The catalogue")
    described = set(re.findall(r"^\| `([\w.-]+)` \|", readme, flags=re.MULTILINE))
    assert {name for name in files ^ described if not LOG_FILES.fullmatch(name)} == set()


SCRIPT = """
import hashlib, json, sys
from klsa_search import build
from klsa_search.core.progress import PHASES
from klsa_search.search.rankers import RANKERS
from tests.storage.worlds import replace_manifest
index = build(json.load(open(sys.argv[1])), name="a", home=sys.argv[2], dimensions=40)
sums = {name: entry.sha256 for name, entry in index.manifest.files.items()}
queries = ("t03 t05", "t11", "t00 t29")
ranking = [index.rank(q, 40, ranker=r)[0].tolist() for r in RANKERS for q in queries]
print(json.dumps([index.manifest.fingerprint, sums, ranking]))
"""


def test_two_builds_of_the_same_documents_give_the_same_bytes(tmp_path):
    documents = [
        {"id": str(number), "text": text, "tags": text.split()[:2], "_vectors": {"m": [number, 1]}}
        for number, text in enumerate(random_documents(60, 80))
    ]
    fingerprints, sums = set(), []
    for name in ("one", "other"):
        with build(documents, name=name, home=tmp_path, dimensions=40) as index:
            fingerprints.add(index.manifest.fingerprint)
            sums.append({file: entry.sha256 for file, entry in index.manifest.files.items()})
    assert len(fingerprints) == 1
    assert sums[0] == sums[1]


@pytest.mark.slow
# Some, and enough for BLAS to use its threads if it were let.
@pytest.mark.parametrize("size", [60, pytest.param(900, marks=pytest.mark.slow)])
def test_the_same_input_gives_the_same_bytes_whatever_hash_seed_and_threads(tmp_path, size):
    path = tmp_path / "records.json"
    texts = random_documents(size, 4 * size // 3)
    path.write_text(json.dumps([{"id": str(i), "text": text} for i, text in enumerate(texts)]))
    printed = set()
    for run, threads in enumerate(("1", "2")):
        own = {"PYTHONHASHSEED": str(run), "OPENBLAS_NUM_THREADS": threads}
        command = [sys.executable, "-c", SCRIPT, str(path), str(tmp_path / threads)]
        printed.add(subprocess.check_output(command, env=os.environ | own, timeout=PATIENCE))
    assert len(printed) == 1


def test_fingerprints_follow_documents_and_settings(tmp_path):
    def fingerprint(records, **settings):
        index = build(records, name="a", home=tmp_path, **settings)
        return index.manifest.fingerprint

    base = fingerprint(RECORDS)
    assert fingerprint(RECORDS) == base
    assert fingerprint(RECORDS, k1=1.3) != base
    assert fingerprint(RECORDS[:-1]) != base
    assert fingerprint(RECORDS[::-1]) != base
    for changed in ({"text": "other"}, {"title": "other"}, {"year": 1958}, {"id": "other"}):
        assert fingerprint([RECORDS[0] | changed, *RECORDS[1:]]) != base
    assert fingerprint(RECORDS, fields=("year:number",)) != base


@pytest.mark.parametrize("records", [[], [{"id": "a"}], [{"id": "a", "text": "one"}]])
def test_almost_nothing_is_an_index_too(tmp_path, records):
    index = build(records, name="a", home=tmp_path)
    assert len(index) == len(records)
    for ranker in RANKERS:
        assert len(index.search("one two", ranker=ranker)) <= len(records)
    if records and "text" in records[0]:
        assert [hit.id for hit in index.search("one")] == ["a"]  # a common word is a word, too


def test_one_document_is_found(tmp_path):
    index = build([Document(id="a", title="wings")], name="a", home=tmp_path)
    assert [hit.id for hit in index.search("wing")] == ["a"]


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"id": "a"}, {"text": "x"}], r"document 2: .*'id'"),
        ([{"id": "", "text": "x"}], "document 1: the id is blank"),
        ([1], "document 1: is of type int"),
        ([{"id": "a"}, {"id": "a"}], r"document 2: the id 'a' is used before"),
        ([Document(id="a"), {"id": "a"}], r"document 2: the id 'a' is used before"),
    ],
)
def test_bad_records_are_named_and_leave_the_old_index(copy_of, tmp_path, records, message):
    copy_of(RECORDS, name="a")
    with pytest.raises(CollectionError, match=message):
        build(records, name="a", home=tmp_path)
    assert len(open_index(tmp_path / "a")) == 40


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"k1": -1.0}, "k1"),
        ({"b": 1.1}, "b"),
        ({"dimensions": 0}, "dimensions"),
        ({"depth": 3}, "depth"),
        ({"preset": "secret"}, "preset"),
        ({"language": "klingon"}, "language"),
    ],
)
def test_bad_settings_are_named(tmp_path, settings, field):
    with pytest.raises(SettingsError) as caught:
        build(RECORDS, name="a", home=tmp_path, **settings)
    assert field in caught.value.message
    assert not (tmp_path / "a" / "CURRENT").exists()


def test_the_paper_preset_is_the_published_method():
    from klsa_search.core.config import Settings

    paper = Settings.of_preset("paper")
    assert (paper.k1, paper.b, paper.dimensions, paper.z, paper.alpha) == (2.0, 0.75, 300, 1, 0.9)
    assert (paper.kernel_k1, paper.idf_power, paper.pairs) == (2.0, 0.5, 0.0)
    assert not any([paper.centred, paper.normalised, paper.unit_length])
    assert (paper.coverage, paper.latent, paper.spectral) == (0.0, 0.0, "truncation")
    assert (paper.sharpness, paper.lexical_sharpness) == (1.0, 1.0)


def test_a_full_disk_is_named_with_its_file(copy_of, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    copy_of(RECORDS, name="a")
    monkeypatch.setattr("numpy.lib.format.write_array_header_1_0", full)
    with pytest.raises(StoreError, match=r"cannot use `.*\.npy`: No space left on device"):
        build(RECORDS, name="a", home=tmp_path)
    assert len(open_index(tmp_path / "a")) == 40


def test_a_disk_too_full_for_scratch_files_is_named_too(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("klsa_search.core.array_types.Spool.append", full)
    with pytest.raises(StoreError, match=r"cannot use `.*000001`: No space left on device"):
        build(RECORDS, name="a", home=tmp_path)
    assert not (tmp_path / "a").exists()


def test_progress_is_reported_by_phases(tmp_path):
    told = []
    build(RECORDS, name="a", home=tmp_path, progress=lambda *step: told.append(step))
    phases = list(dict.fromkeys(phase for phase, _, _ in told))
    assert phases[0] == "documents"
    assert phases[-1] == "files"
    assert set(phases) <= set(PHASES)
    assert ("documents", 40, 40) in told


def test_a_build_leaves_no_sums_to_be_compared_on_its_own_machine(tmp_path, monkeypatch):
    def compared(*_):
        raise AssertionError("compared once more")

    monkeypatch.setattr("klsa_search.storage.checksums.compare_checksums", compared)
    build(RECORDS, name="a", home=tmp_path).close()
    open_index(tmp_path / "a").close()


def test_another_format_is_refused_with_the_next_step(tmp_path):
    index = build(RECORDS, name="a", home=tmp_path)
    path = index.path / "manifest.json"
    own = f'"format_version": {FORMAT_VERSION}'
    text = path.read_text().replace(own, '"format_version": 99')
    path.write_text(text)
    with pytest.raises(IndexDamaged, match="has changed since it was built"):
        open_index(tmp_path / "a")
    replace_manifest(index.path, text.encode())
    refusal = f"has format 99, and this version reads {FORMAT_VERSION}; a later version"
    with pytest.raises(FormatUnsupported, match=refusal):
        open_index(tmp_path / "a")
    replace_manifest(index.path, b"{")
    with pytest.raises(IndexDamaged, match=r"cannot read `.*manifest\.json`"):
        open_index(tmp_path / "a")
    with pytest.raises(IndexNotFound):
        open_index(tmp_path / "b")
