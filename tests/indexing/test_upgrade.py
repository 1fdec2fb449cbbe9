"""Archived indexes of every readable format, opened or upgraded, give the recorded answers."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import closing

import pytest

from klsa_search.errors import FormatUnsupported, IndexDamaged, StoreError
from klsa_search.indexing.build import build
from klsa_search.indexing.rewrite import upgrade
from klsa_search.search.opening import open_index
from klsa_search.storage.checksums import verify
from klsa_search.storage.current import current_generation
from klsa_search.storage.maintenance import rollback
from klsa_search.storage.manifest import FORMAT_VERSION, LEGACY_VERSIONS, read_manifest
from tools.format_archive import FORMATS, NAME, answers, write

RECORDS = [json.loads(line) for line in (FORMATS / "letters.jsonl").open(encoding="utf-8")]
RECORDED = sorted(path.stem for path in FORMATS.glob("*.json"))


def test_every_format_that_is_read_has_an_archive():
    archived = {int(path.name.partition(".")[0]) for path in FORMATS.glob("*.tar.gz")}
    assert archived == {*LEGACY_VERSIONS, FORMAT_VERSION}, "run: python -m tools.format_archive"


@pytest.mark.parametrize("version", RECORDED)
def test_an_archived_index_answers_as_recorded(tmp_path, version):
    shutil.unpack_archive(FORMATS / f"{version}.tar.gz", tmp_path, filter="data")
    recorded = json.loads((FORMATS / f"{version}.json").read_text(encoding="utf-8"))
    assert read_manifest(current_generation(tmp_path / NAME), legacy=True).format_version == int(
        version
    )
    upgrade(tmp_path / NAME).close()
    assert answers(tmp_path) == recorded
    assert verify(tmp_path / NAME)


def test_an_index_written_now_answers_as_the_archived_one(tmp_path):
    write(tmp_path)
    assert answers(tmp_path) == json.loads((FORMATS / f"{FORMAT_VERSION}.json").read_text("utf-8"))


@pytest.fixture(params=LEGACY_VERSIONS)
def letters(request, tmp_path):
    """An index of the six letters, built with alpha 0.7 and z 12 by the version of that format."""
    shutil.unpack_archive(FORMATS / f"{request.param}.tar.gz", tmp_path)
    return tmp_path / "letters"


def test_an_index_of_a_former_format_names_the_way_over(letters):
    with pytest.raises(
        FormatUnsupported, match=f"klsa-index upgrade letters --home {letters.parent}"
    ):
        open_index(letters)


def test_what_is_carried_over_is_what_a_build_makes(letters):
    settings = {
        "alpha": 0.7, "z": 12, "hold_back": 0.0,
        "stop_words": "long", "search": "title,text", "common_weight": 1.0, "burstiness": 1.0,
        "symbols": False, "fold_accents": False,
    }  # fmt: skip
    expected = build(RECORDS, name="fresh", home=letters.parent, **settings)
    with closing(upgrade(letters)) as index:
        assert index.generation == "000002"
        assert index.manifest.fingerprint == expected.manifest.fingerprint
        assert index.manifest.source == "letters.jsonl"
        assert index.documents(range(6)) == expected.documents(range(6))
        for query in ("air wing", "Flügel", "boundary layers"):
            found = index.rank(query)
            assert [each.tolist() for each in found] == [
                each.tolist() for each in expected.rank(query)
            ]
    assert open_index(letters).settings == expected.settings
    with pytest.raises(FormatUnsupported):
        rollback(letters)


def test_an_index_of_the_present_format_is_opened_as_it_is(tmp_path):
    built = build(RECORDS, name="letters", home=tmp_path)
    assert upgrade(tmp_path / "letters").path == built.path
    assert built.manifest.format_version == FORMAT_VERSION


def test_documents_of_another_source_are_not_replaced_whatever_the_format(letters, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "1", "text": "one"}\n')
    with pytest.raises(StoreError, match="6 documents of another source, `/srv/letters"):
        build(other, name="letters", home=tmp_path)


def test_only_the_documents_need_be_whole(letters):
    generation = current_generation(letters)
    (generation / "vocabulary.txt").unlink()
    with closing(upgrade(letters)) as index:
        assert len(index) == 6


@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_damaged_documents_are_not_carried_over(letters, damage):
    generation = current_generation(letters)
    path = generation / "documents.npy"
    if not path.exists():  # before format 4
        path = generation / "documents.db"
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)
    if damage == "gone":
        path.unlink()
    with pytest.raises(IndexDamaged, match=re.escape(path.name)):
        upgrade(letters)
    assert current_generation(letters).name == "000001"
    assert sorted(path.name for path in letters.glob("0*")) == ["000001"]
