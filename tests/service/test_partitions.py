"""A service with an index in partitions, which works like one without."""

import shutil

import pytest

from klsa_search import build
from klsa_search.service.admission import Writes
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from tests.service.conftest import failure_of
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

DOCUMENTS = [
    {"id": f"d{number}", "title": f"Wing {number}", "text": f"a wing and word{number % 5}",
     "year": 2000 + number}
    for number in range(12)
]  # fmt: skip
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("partitions")
    build(DOCUMENTS, name="three", home=home, partitions=3, workers=1).close()
    return home


@pytest.fixture
def home(built, tmp_path):
    return shutil.copytree(built, tmp_path / "home")


@pytest.fixture
def client(home, tmp_path):
    file = tmp_path / "keys.json"
    key = add_key(file, "all", ["search", "write"])
    with OpenIndexes(home, interval=0) as open_indexes:
        app = app_of_indexes(open_indexes, writes=Writes(), keys=Keys(file, ()))
        with AppClient(app, headers={"Authorization": f"Bearer {key}"}) as client:
            yield client


def total(client, q, **parameters):
    answer = client.get("/search", params={"q": q, **parameters})
    assert answer.status_code == 200, answer.text
    return answer.json()["total"]


def test_an_index_in_partitions_is_described_like_another(client):
    (summary,) = client.get("/indexes").json()["indexes"]
    assert (summary["ok"], summary["documents"], summary["drift"]["max_doc"]) == (True, 12, 12)
    details = client.get("/indexes/three").json()
    assert details["bytes"] > 0
    assert details["fields"]["year"]["type"] == "number"
    assert client.get("/health").json()["ok"]


def test_searches_and_writes_work(client):
    assert total(client, "wing", filter="year >= 2006", sort="year:desc") == 6
    answer = client.post("/indexes/three/documents", json=[{"id": "new", "text": "a quokka"}])
    assert answer.status_code == 200, answer.text
    assert client.get("/search?q=quokka").json()["hits"][0]["id"] == "new"
    stream = b'{"id": "n1", "text": "zebra"}\n{"id": "n2", "text": "zebra"}\n'
    assert client.post("/indexes/three/documents", content=stream, headers=LINES).is_success
    assert total(client, "zebra") == 2
    assert client.delete("/indexes/three/documents/n1").is_success
    assert client.get("/indexes/three/documents/n2").json()["text"] == "zebra"
    rule = {"id": "r", "then": {"hide": ["n2"]}}
    assert client.put("/indexes/three/rules/r", json=rule).is_success
    assert total(client, "zebra") == 0
    assert client.delete("/indexes/three/rules/r").is_success
    judged = {"q": "zebra", "id": "n2", "grade": 1}
    assert client.put("/indexes/three/judgements", json=judged).is_success
    assert len(client.get("/indexes/three/judgements").json()["queries"]) == 1


def test_a_new_build_of_its_partitions_is_loaded(client, home):
    build(DOCUMENTS[:6], name="three", home=home, partitions=2, workers=1, replace=True).close()
    assert total(client, "wing") == 6
    assert client.get("/indexes/three").json()["generation"] == "000002"


def test_a_missing_partition_is_damage_and_not_a_missing_index(client, home):
    total(client, "wing")
    for number in range(3):
        shutil.move(home / f"three/000001-{number}", home / f"three/away-{number}")
    answer = client.put("/indexes/three/documents/new", json={"text": "a quokka"})
    failure = failure_of(answer, 503)
    # The second if the service looked at the folder between the search and the write.
    assert failure["code"] in ("index_damaged", "index_unusable")
    assert "klsa-index build" not in failure["message"]
