"""Synonyms over HTTP: set, list, search, remove, scopes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.application import app_of_indexes
from tests.support.catalogs import read_synonyms
from tests.support.client import AppClient

from .conftest import failure_of

RULES = ["aerofoil => wing", "aeroplane, aircraft"]
TOLD = {"aerofoil": ["wing"], "aeroplane": ["aircraft"], "aircraft": ["aeroplane"]}
PATH = "/indexes/first/synonyms"


def search(writer, **asked):
    answer = writer.get("/search", params={"q": "aerofoil", "index": "first", **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_synonyms_are_set_returned_used_and_removed(writer, home):
    assert writer.get(PATH).json() == {"index": "first", "synonyms": {}}
    before = search(writer)
    assert (before["hits"], before["interpretation"]["synonyms"]) == ([], {})
    done = writer.put(PATH, json={"synonyms": RULES})
    assert (done.status_code, done.json()) == (200, {"index": "first", "words": 3})
    assert writer.get(PATH).json()["synonyms"] == TOLD
    assert {w: list(o) for w, o in read_synonyms(home / "first").items()} == TOLD
    found = search(writer)
    assert found["interpretation"]["synonyms"] == {"aerofoil": ["wing"]}
    assert found["total"] > 0
    assert search(writer, synonyms="false")["total"] == 0
    body = {"q": "aerofoil", "synonyms": False}
    assert writer.post("/indexes/first/search", json=body).json()["total"] == 0
    assert writer.put(PATH, json={"synonyms": TOLD}).json()["words"] == 3
    assert writer.delete(PATH).json() == {"index": "first", "words": 0}
    assert search(writer)["total"] == 0


@pytest.mark.slow
def test_synonyms_that_several_add_at_once_are_all_kept(writer):
    writer.put(PATH, json={"synonyms": {"aerofoil": ["wing"], "jet": ["engine"]}})
    added = [f"synonym{number}" for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        sent = pool.map(
            lambda word: writer.patch(PATH, json={"synonyms": {"aerofoil": [word]}}), added
        )
        assert [answer.json()["words"] for answer in sent] == [2] * len(added)
    kept = writer.get(PATH).json()["synonyms"]
    assert (kept["aerofoil"][0], set(kept["aerofoil"][1:])) == ("wing", set(added))
    assert kept["jet"] == ["engine"]
    assert writer.patch(PATH, json={"synonyms": ["jet => engine"]}).json()["words"] == 2
    assert writer.get(PATH).json()["synonyms"] == kept
    too_many = {"synonyms": {"aerofoil": [f"other{number}" for number in range(99)]}}
    assert failure_of(writer.patch(PATH, json=too_many), 422)["field"] == "synonyms"
    assert writer.get(PATH).json()["synonyms"] == kept


def test_invalid_synonyms_are_refused(writer, home, indexes_of):
    for synonyms in (["alone"], {"": ["x"]}, {"x": ["y" * 101]}):
        refused = failure_of(writer.put(PATH, json={"synonyms": synonyms}), 422)
        assert refused["field"] == "synonyms"
    for body in ({}, {"synonyms": {"a": "b"}}, {"synonyms": [1]}, []):
        assert writer.put(PATH, json=body).status_code == 422
    assert writer.put("/indexes/none/synonyms", json={"synonyms": RULES}).status_code == 404
    reading = AppClient(app_of_indexes(indexes_of(home)), raise_server_exceptions=False)
    assert reading.put(PATH, json={"synonyms": RULES}).status_code == 403
    assert reading.patch(PATH, json={"synonyms": RULES}).status_code == 403
    assert reading.delete(PATH).status_code == 403
    assert writer.get(PATH).json()["synonyms"] == {}
