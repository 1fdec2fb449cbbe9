"""A fault of one index, or of the index directory, does not affect others."""

import os
import shutil

import pytest

from klsa_search import build
from klsa_search.errors import StoreError
from klsa_search.service import open_indexes
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.storage.maintenance import indexes_in
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.waiting import wait_until

from .conftest import build_tiny, failure_of


def overwrite(path, content):
    path.write_bytes(content)


def damaged_manifest(generation):
    overwrite(generation / "manifest.json", b"[]")


def documents_that_cannot_be_read(generation):
    path = generation / "documents_keys.npy"
    overwrite(path, b"\xa5" * path.stat().st_size)


def pointer_to_nothing(generation):
    overwrite(generation.parent / "CURRENT", b"000009\n")


def missing_generation(generation):
    shutil.rmtree(generation)


def missing_pointer(generation):
    (generation.parent / "CURRENT").unlink()


def missing_vocabulary(generation):
    (generation / "vocabulary.txt").unlink()


def log_that_is_no_database(generation):
    overwrite(generation / "delta.log", b"no database" * 100)


def missing_partition(generation):
    shutil.rmtree(generation.with_name("000001-1"))


def missing_terms(generation):
    shutil.rmtree(generation.with_name("000001-terms"))


@pytest.fixture(scope="module")
def divided(tmp_path_factory):
    """An index in partitions."""
    home = tmp_path_factory.mktemp("divided")
    given = [{"id": str(number), "text": "wing"} for number in range(9)]
    build(given, name="first", home=home, partitions=3, workers=1).close()
    return home / "first"


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize(
    "damage",
    [
        damaged_manifest,
        documents_that_cannot_be_read,
        pointer_to_nothing,
        missing_generation,
        missing_pointer,
        missing_vocabulary,
        log_that_is_no_database,
        missing_partition,
        missing_terms,
    ],
    ids=lambda damage: damage.__name__,
)
def test_damage_is_of_one_index_and_no_answer_names_the_index_directory(
    client_of, home, divided, damage, served
):
    generation = home / "first" / "000001"
    if damage in (missing_partition, missing_terms):
        shutil.rmtree(generation.parent)
        shutil.copytree(divided, generation.parent)
    if not served:
        damage(generation)
    client = client_of(home)
    if served:
        assert client.get("/search?q=wing&index=first").status_code == 200
        damage(generation)
    answers = [
        client.get("/search?q=wing&index=first"),
        client.get("/health"),
        client.get("/indexes"),
        client.get("/indexes/first"),
        client.get("/metrics"),
    ]
    for answer in answers:
        assert str(home) not in answer.text
        assert "--home" not in answer.text
    assert client.get("/search?q=wing&index=second").status_code == 200
    assert answers[1].json()["indexes"][-1]["ok"]
    if damage is missing_partition and not served:
        error = answers[1].json()["indexes"][0]["error"]
        assert error.startswith("partition `first/000001-1` is missing; restore a backup, or")


def test_an_index_damaged_during_service_is_reported(indexes_of, home):
    many = [{"id": str(n), "title": "", "text": "wing " * 500} for n in range(100)]
    build_tiny(home, "first", many)
    opened = indexes_of(home)
    # Else the comparison of checksums may find the damage before a request does.
    wait_until(lambda: opened.statuses()[0].checksums == "verified")
    client = AppClient(app_of_indexes(opened), raise_server_exceptions=False)
    assert client.get("/documents/1?index=first").status_code == 200
    path = home / "first" / "000002" / "documents.npy"
    with path.open("r+b") as stream:
        stream.write(b"\xa5" * path.stat().st_size)
    error = failure_of(client.get("/documents/99?index=first"), 503)
    assert error["code"] == "index_damaged"
    assert "documents.npy" in error["message"]
    first, second = client.get("/health").json()["indexes"]
    assert (first["ok"], first["generation"]) == (False, "000002")
    assert "documents.npy" in first["error"]
    assert second["ok"] is True
    assert client.get("/documents/1?index=second").status_code == 200
    build_tiny(home, "first")
    assert client.get("/documents/1?index=first").status_code == 200
    assert client.get("/health").json()["indexes"][0]["ok"] is True


def test_home_that_cannot_be_read_for_a_while(client_of, home, monkeypatch, caplog):
    client = client_of(home)

    def refuse(folder):
        if folder != home:  # of indexes that another fixture keeps open
            return indexes_in(folder)
        raise PermissionError(13, "Permission denied", str(home))

    monkeypatch.setattr(open_indexes, "indexes_in", refuse)
    for _ in range(2):
        assert client.get("/search?q=wing&index=first").status_code == 200
        assert client.get("/health").status_code == 200
    assert caplog.text.count("check its owner and permissions") == 1
    with pytest.raises(StoreError, match="check its owner and permissions"):
        OpenIndexes(home)
    monkeypatch.undo()
    build_tiny(home, "first")
    assert client.get("/search?q=wing&index=first").json()["generation"] == "000002"


def test_generation_that_fails_slowly_is_left_alone_for_a_while(home, monkeypatch):
    """Else the service would do nothing but open it; another generation is tried at once."""
    tried = []
    clock = [0.0]

    def open_slowly(path, _):
        tried.append(path.name)
        clock[0] += 5.0
        raise ValueError("its bytes")

    monkeypatch.setattr(open_indexes, "MAX_PARALLEL", 1)
    monkeypatch.setattr(open_indexes, "open_and_warm_up", open_slowly)
    monkeypatch.setattr(open_indexes, "monotonic", lambda: clock[0])
    with OpenIndexes(home, interval=3600) as opened:
        assert tried == ["first", "second"]
        opened.scan()
        assert tried == ["first", "second"]
        clock[0] += 46
        opened.scan()
        assert tried == ["first", "second"] * 2
        os.utime(home / "first" / "000001" / "manifest.json")
        opened.scan()
        assert tried == ["first", "second"] * 2 + ["first"]


def test_thread_takes_up_what_is_built(home):
    with OpenIndexes(home, interval=0.01) as opened:
        build_tiny(home, "first")
        wait_until(lambda: opened.statuses()[0].index.generation == "000002")
        with opened.use("first") as index:
            assert index.generation == "000002"
