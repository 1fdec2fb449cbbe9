"""Vectors over HTTP: in documents, in searches, and in what the service says about an index."""

import json
import shutil

import numpy as np
import pytest

from klsa_search import build, open_index
from klsa_search.collection.vectors import MAX_DIMENSION, quantised, vectors_of
from klsa_search.service.admission import Writes
from klsa_search.service.open_indexes import OpenIndexes
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

from .conftest import failure_of

DIMENSION = 5
NONE = {"fingerprint": None}
DOCUMENTS = "/indexes/one/documents"


def vector(seed):
    return np.random.default_rng(seed).normal(size=DIMENSION).tolist()


def record(number, **changes):
    text = f"oil {'engine' if number % 2 else 'brake'} item{number}"
    return {"id": f"d{number}", "text": text, "_vectors": {"m": vector(number)}} | changes


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("built")
    build([record(n) for n in range(12)], name="one", home=home).close()
    return home


@pytest.fixture
def client(built, tmp_path):
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    with OpenIndexes(tmp_path, interval=0) as open_indexes:
        yield AppClient(
            app_of_indexes(open_indexes, writes=Writes()), raise_server_exceptions=False
        )


@pytest.fixture
def index(client, tmp_path):
    with open_index(tmp_path / "one") as opened:
        yield opened


def stored(index, id_):
    index.refresh()
    return {name: rows.tolist() for name, rows in vectors_of(index.document(id_)).items()}


def test_searches_take_a_vector_in_the_body(client, index):
    body = {"q": "submarine", "vector": {"m": vector(7)}, "explain": True}
    expected = index.search("submarine", vector={"m": vector(7)}, explain=True)
    assert expected.hits[0].id == "d7"
    for url in ("/search", "/indexes/one/search"):
        hits = client.post(url, json=body).json()["hits"]
        assert [(hit["id"], hit["score"]) for hit in hits] == [
            (hit.id, pytest.approx(hit.score)) for hit in expected
        ]
        part = hits[0]["explanation"]["vector"]
        assert (part["space"], part["value"]) == ("m", pytest.approx(hits[0]["score"]))
    several = client.post("/multi-search", json={"queries": [body, {"q": "oil"}]}).json()
    assert several["results"][0]["hits"] == hits
    other = client.post("/search", json=body | {"vector": {"m": vector(8)}}).json()["hits"]
    assert other[0]["id"] == "d8"


def test_a_vector_is_enough(client):
    hits = client.post("/search", json={"vector": {"m": vector(3)}}).json()["hits"]
    assert hits[0]["id"] == "d3"
    assert "_vectors" not in hits[0]["metadata"]


def test_one_score_is_explained_with_a_vector(client, index):
    body = {"q": "oil", "vector": {"m": vector(7)}}
    answer = client.post("/indexes/one/explain/d4", json=body).json()["explanation"]
    expected = index.explain("oil", "d4", vector={"m": vector(7)})
    assert answer["score"] == pytest.approx(expected.score)
    assert answer["vector"]["cosine"] == pytest.approx(expected.vector.cosine)
    by_words = client.get("/indexes/one/explain/d4?q=oil").json()["explanation"]
    assert by_words["vector"] is None
    assert client.post("/indexes/one/explain/d4", json={"q": "oil"}).json()["explanation"] == (
        by_words
    )


def test_wrong_vectors_of_searches_are_refused(client):
    for given, fact in (
        ({"m": [1.0, 2.0]}, "has 2 values, and the space has 5"),
        ({"n": vector(1)}, "the spaces are: `m`"),
        ({"m": [0.0] * DIMENSION}, "only zeros"),
        ({"m": vector(1), "n": vector(1)}, "at most 1"),
        ({"m": [0.5] * (MAX_DIMENSION + 1)}, "at most 8192"),
        ({"m": ["0.5"] * DIMENSION}, "number"),
        ({"m": "AAAA"}, "list"),
        (vector(1), "mapping"),
    ):
        for url in ("/search", "/indexes/one/explain/d1"):
            error = failure_of(client.post(url, json={"q": "oil", "vector": given}), 422)
            assert (error["code"], error["field"]) == ("bad_query", "vector")
            assert fact in error["message"]
            assert len(error["message"]) < 300


def test_every_write_takes_vectors(client, index):
    assert client.post(DOCUMENTS, json=[record(20)]).json()["added"] == 1
    assert client.put(f"{DOCUMENTS}/d21", json=record(21)).json()["added"] == 1
    assert client.patch(f"{DOCUMENTS}/d5", json={"_vectors": {"m": vector(22)}}).json()["changed"]
    lines = "".join(f"{json.dumps(record(n))}\n" for n in (23, 24))
    kind = {"Content-Type": "application/x-ndjson"}
    assert client.post(DOCUMENTS, content=lines, headers=kind).status_code == 200
    for id_, seed in (("d20", 20), ("d21", 21), ("d5", 22), ("d23", 23), ("d24", 24)):
        assert stored(index, id_) == {"m": quantised(vector(seed)).tolist()}
    lines = f"{json.dumps(record(20, _vectors={'m': vector(99)}))}\n"
    url = "/indexes/one/sync?max_delete=100%25"
    assert client.post(url, content=lines, headers=kind).json()["changed"] == 1
    assert stored(index, "d20") == {"m": quantised(vector(99)).tolist()}


@pytest.mark.parametrize(
    ("given", "fact"),
    [({"m": [1, 2]}, "has 2 values, and the space `m` has 5"), ([1, 2], "not a mapping")],
)
def test_wrong_vectors_of_documents_are_refused_with_the_id(client, index, given, fact):
    bad = record(30, _vectors=given)
    kind = {"Content-Type": "application/x-ndjson"}
    lines = f"{json.dumps(record(31))}\n{json.dumps(bad)}\n"
    for answer in (
        client.post(DOCUMENTS, json=[record(31), bad]),
        client.put(f"{DOCUMENTS}/d30", json=bad),
        client.post("/indexes/one/sync?max_delete=100%25", content=lines, headers=kind),
    ):
        error = failure_of(answer, 422)
        assert error["code"] == "bad_document"
        assert "d30" in error["message"]
        assert fact in error["message"]
    index.refresh()
    assert len(index) == 12
    answer = client.post(DOCUMENTS, content=lines, headers=kind)
    good, refused = map(json.loads, answer.text.splitlines())
    assert (good["ok"], refused["ok"]) == (True, False)
    assert fact in refused["error"]["message"]
    assert "d30" in refused["error"]["message"]


def test_a_document_can_be_read_and_written_back_with_its_vectors(client, index):
    url = f"{DOCUMENTS}/d3"
    assert "_vectors" not in client.get(url).json()["metadata"]
    before, document = stored(index, "d3"), client.get(f"{url}?vectors=true").json()
    body = {name: document[name] for name in ("title", "text")} | document["metadata"]
    assert client.put(url, json=body | {"year": 2024}).json()["added"] == 1
    assert stored(index, "d3") == before
    assert client.patch(url, json={"year": 2025}).json()["changed"] == 1
    assert stored(index, "d3") == before


def test_no_other_read_shows_vectors(client):
    answer = client.get("/search?q=oil&fields=metadata")
    assert answer.status_code == 200, answer.text
    assert "_vectors" not in answer.text
    refused = failure_of(client.get("/search?q=oil&fields=metadata,_vectors"), 422)
    assert (refused["field"], "'_vectors'" in refused["message"]) == ("fields", True)
    for field in ("_vectors", "_vectors.m"):
        asked = {"q": "oil", "facets": [field]}
        assert "unknown field" in failure_of(client.post("/search", json=asked), 422)["message"]


def test_an_index_lists_its_spaces(client):
    def spaces():
        return client.get("/indexes/one").json()["vectors"]

    first = {"name": "m", "dimension": DIMENSION, "vectors": 12, "documents": 12} | NONE
    assert spaces() == [first]
    several = {"m": [vector(1), vector(2)], "other": [1, 2]}
    client.post(DOCUMENTS, json=[record(40, _vectors=several), {"id": "none", "text": "oil"}])
    client.delete(f"{DOCUMENTS}/d1")
    assert spaces() == [
        first | {"vectors": 13, "documents": 12},
        {"name": "other", "dimension": 2, "vectors": 1, "documents": 1} | NONE,
    ]
