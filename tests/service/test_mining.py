"""Similar documents, related terms and classification."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klsa_search.mining import KERNELS, classify, document_map, related, strongest_terms
from klsa_search.mining.similar import similar
from klsa_search.search.index import open_index
from klsa_search.service.routes.mining import SimilarRequest
from klsa_search.service.schemas.base import MAX_HITS
from tests.campaigns.test_fuzz import check, json_values
from tests.support.examples import one_in

from .conftest import build_tiny, failure_of

LABELS = {"1": "air", "3": "cold"}


@pytest.fixture(scope="module")
def index(tiny_home):
    opened = open_index(tiny_home / "tiny")
    yield opened
    opened.close()


@pytest.mark.parametrize("kernel", ["document", "latent", "squashing"])
def test_more_like_this(client_of, tmp_path, kernel):
    texts = {"a/b c?%": "wing lift", "w": "lift of a wing", "x": "bread dough", "y": "dough, bread"}
    documents = [{"id": name, "title": name, "text": text} for name, text in texts.items()]
    build_tiny(tmp_path, documents=documents)
    path = f"/indexes/tiny/documents/{quote('a/b c?%', safe='')}/similar"
    answer = client_of(tmp_path).get(path, params={"k": 2, "kernel": kernel}).json()
    assert (answer["id"], answer["index"], answer["kernel"]) == ("a/b c?%", "tiny", kernel)
    index = open_index(tmp_path / "tiny")
    expected = similar(index, "a/b c?%", 2, kernel=kernel)
    index.close()
    (hit,) = answer["hits"]
    assert (hit["rank"], hit["id"], hit["snippet"]) == (1, "w", "lift of a wing")
    assert hit["score"] == pytest.approx(expected[0].score)


def test_every_kernel_has_its_name_in_the_request(client):
    for kernel in KERNELS:
        path = "/indexes/tiny/documents/1/similar"
        assert client.get(path, params={"kernel": kernel}).status_code == 200
    assert SimilarRequest().kernel == KERNELS[0]


def test_vectors_and_their_sum_with_words(client_of, tmp_path):
    vectors = {"w": [1, 0], "x": [1, 0.1], "y": [0, 1], "z": [0.1, 1]}
    texts = {"w": "wing lift", "x": "bread dough", "y": "lift of a wing", "z": "dough, bread"}
    documents = [
        {"id": id_, "title": "", "text": text, "_vectors": {"m": vectors[id_]}}
        for id_, text in texts.items()
    ]
    build_tiny(tmp_path, documents=documents)
    client, path = client_of(tmp_path), "/indexes/tiny"
    for kernel, nearest in (("latent", "y"), ("vectors:m", "x")):
        params = {"k": 1, "kernel": kernel}
        answer = client.get(f"{path}/documents/w/similar", params=params).json()
        assert [hit["id"] for hit in answer["hits"]] == [nearest]
    labels = {"w": "first", "z": "second"}
    for kernel, label in (("latent", "first"), ("vectors:m", "second")):
        body = {"labels": labels, "ids": ["y"], "kernel": kernel}
        (one,) = client.post(f"{path}/classify", json=body).json()["classified"]
        assert one["label"] == label
    for kernel in ("vectors:m", "sum:m"):
        whole = client.get(f"{path}/map", params={"kernel": kernel}).json()
        some = client.post(f"{path}/map", json={"ids": ["x"], "kernel": kernel}).json()
        assert some["x"] == whole["x"][1:2]
    error = failure_of(client.get(f"{path}/map", params={"kernel": "vectors:n"}), 422)
    assert error["field"] == "kernel"


@pytest.mark.parametrize("term", ["wing", "heat/wing", "boundary layer"])
def test_related_terms(client, index, term):
    answer = client.get(f"/indexes/tiny/terms/{quote(term, safe='')}/related?k=3").json()
    assert (answer["term"], answer["generation"]) == (term, "000001")
    assert [one["word"] for one in answer["related"]] == [
        one.word for one in related(index, term, 3)
    ]


def test_strongest_terms(client, index):
    answer = client.get("/indexes/tiny/documents/1/terms?k=3").json()
    assert (answer["id"], answer["index"]) == ("1", "tiny")
    assert [(one["word"], one["weight"]) for one in answer["terms"]] == [
        (one.word, pytest.approx(one.weight)) for one in strongest_terms(index, "1", 3)
    ]
    assert failure_of(client.get("/indexes/tiny/documents/nope/terms"), 404)["code"]
    failure_of(client.get("/indexes/tiny/documents/1/terms?k=0"), 422)


def test_the_map(client, index):
    answer = client.get("/indexes/tiny/map").json()
    drawn = document_map(index)
    assert (answer["index"], answer["documents"]) == ("tiny", len(index))
    assert answer["ids"] == index.ids(drawn.doc_ids)
    assert list(zip(answer["x"], answer["y"], strict=True)) == [
        tuple(place) for place in drawn.as_integers(65_535).tolist()
    ]
    assert answer["cluster"] == drawn.cluster.tolist()
    for told, one in zip(answer["clusters"], drawn.clusters, strict=True):
        assert (told["words"], told["size"], told["tone"]) == (list(one.words), one.size, one.tone)
    assert answer["unplaced"] + len(answer["ids"]) == answer["documents"]


def test_places_on_the_map(client, index):
    whole = client.get("/indexes/tiny/map").json()
    some = client.post("/indexes/tiny/map", json={"ids": whole["ids"][1:]}).json()
    assert some["ids"] == whole["ids"][1:]
    assert [some[name] for name in ("x", "y", "cluster")] == [
        whole[name][1:] for name in ("x", "y", "cluster")
    ]
    assert (some["clusters"], some["documents"]) == ([], whole["documents"])
    failure_of(client.post("/indexes/tiny/map", json={"ids": ["nope"]}), 404)
    failure_of(client.post("/indexes/tiny/map", json={"ids": ["1"] * (MAX_HITS + 1)}), 422)


def test_classify_the_rest_ids_or_texts(client, index):
    path = "/indexes/tiny/classify"
    answer = client.post(path, json={"labels": LABELS}).json()
    assert [one["id"] for one in answer["classified"]] == [
        one.id for one in classify(index, LABELS)
    ]
    assert len(client.post(path, json={"labels": LABELS, "k": 1}).json()["classified"]) == 1
    (one,) = client.post(path, json={"labels": LABELS, "ids": ["a/b c?%"]}).json()["classified"]
    assert (one["id"], one["label"]) == ("a/b c?%", "air")
    texts = ["snow and ice", "wing of an aircraft"]
    answer = client.post(path, json={"labels": LABELS, "texts": texts}).json()
    assert [(one["id"], one["label"]) for one in answer["classified"]] == [
        (None, "cold"),
        (None, "air"),
    ]
    for one in answer["classified"]:
        assert one["margin"] == pytest.approx(abs(one["scores"]["air"] - one["scores"]["cold"]))


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/indexes/nope/documents/1/similar", "index_not_found"),
        ("/indexes/tiny/documents/nope/similar", "document_not_found"),
        ("/indexes/tiny/terms/zebra/related", "term_not_found"),
        ("/indexes/tiny/terms/the/related", "term_not_found"),
        ("/indexes/tiny/terms/wing", "not_found"),
    ],
)
def test_missing_documents_and_terms_are_errors(client, path, code):
    assert failure_of(client.get(path), 404)["code"] == code


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"k": 0}, "k"),
        ({"k": 1_001}, "k"),
        ({"kernel": "cosine"}, "kernel"),
        ({"kernel": "von-neumann", "gamma": 1}, "gamma"),
        ({"gamma": "nan"}, "gamma"),
        ({"alpha": 1}, "alpha"),
    ],
)
def test_parameters_outside_their_limits(client, parameters, field):
    error = failure_of(client.get("/indexes/tiny/documents/1/similar", params=parameters), 422)
    assert error["field"] == field
    assert field in error["message"]


def test_related_terms_are_limited(client):
    path = "/indexes/tiny/terms/wing/related"
    assert client.get(path, params={"k": 100}).status_code == 200
    assert failure_of(client.get(path, params={"k": 101}), 422)["field"] == "k"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "labels"),
        ({"labels": {"1": "a"}}, "labels"),
        ({"labels": {"1": 1, "3": 2}}, "labels"),
        ({"labels": LABELS, "ids": ["3"], "texts": ["x"]}, "texts"),
        ({"labels": LABELS, "texts": 7}, "texts"),
        ({"labels": LABELS, "k": 0}, "k"),
        ({"labels": {str(n): str(n) for n in range(101)}}, "labels"),
        ({"labels": LABELS, "kernel": "vectors:m"}, "kernel"),
        ({"labels": LABELS, "kernel": "vectors:m", "texts": ["wing"]}, "kernel"),
        ({"labels": LABELS, "ranker": "bm25"}, "ranker"),
    ],
)
def test_a_bad_question_is_named(client, body, field):
    assert failure_of(client.post("/indexes/tiny/classify", json=body), 422)["field"] == field


def test_a_labelled_document_that_is_not_there(client):
    for body in ({"labels": LABELS | {"nope": "x"}}, {"labels": LABELS, "ids": ["nope"]}):
        error = failure_of(client.post("/indexes/tiny/classify", json=body), 404)
        assert error["code"] == "document_not_found"


@pytest.mark.slow
@one_in(3)
@given(
    body=st.dictionaries(
        st.sampled_from(["labels", "ids", "texts", "k"]),
        st.one_of(json_values, st.just(LABELS), st.lists(st.sampled_from(["1", "3", "5"]))),
    )
)
def test_any_body_gets_a_proper_answer(client, body):
    headers = {"Content-Type": "application/json"}
    check(client.post("/indexes/tiny/classify", content=json.dumps(body), headers=headers))


@pytest.mark.slow
@one_in(3)
@given(
    name=st.text(max_size=20), kind=st.sampled_from(["documents/{}/similar", "terms/{}/related"])
)
def test_any_id_or_term_gets_a_proper_answer(client, name, kind):
    escaped = "".join(f"%{byte:02X}" for byte in name.encode())
    check(client.get("/indexes/tiny/" + kind.format(escaped)))
