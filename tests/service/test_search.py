import json
from urllib.parse import quote

import pytest
from pydantic import TypeAdapter

from klsa_search import build
from klsa_search.search.index import open_index
from klsa_search.service.schemas.search_answers import SearchAnswer

from .conftest import DOCUMENTS, build_tiny, failure_of


def test_a_document_of_any_id_has_an_address(client_of, tmp_path):
    names = ["two\nlines", "a\r\n/b\n", "\u2028x"]
    build_tiny(tmp_path, documents=[{"id": name, "text": "wing"} for name in names])
    client = client_of(tmp_path)
    for name in names:
        assert client.get(f"/documents/{quote(name, safe='')}").json()["id"] == name


def test_a_response_has_hits_and_interpretation(client, tiny_home):
    answer = client.get("/search", params={"q": "wing", "k": 1, "alpha": 0.5, "z": 2}).json()
    assert answer["query"] == "wing"
    assert (answer["index"], answer["generation"]) == ("tiny", "000001")
    assert answer["ranker"] == "klsa"
    assert answer["parameters"].items() >= {"alpha": 0.5, "z": 2, "dimensions": 3}.items()
    assert answer["time_ms"] >= 0
    index = open_index(tiny_home / "tiny")
    results = index.search("wing", 1, alpha=0.5, z=2)
    assert answer["total"] == results.total
    (hit,) = answer["hits"]
    assert hit == {
        "rank": 1,
        "id": results[0].id,
        "score": pytest.approx(results[0].score),
        "title": results[0].title,
        "snippet": results[0].snippet,
        "metadata": dict(results[0].metadata),
    }
    index.close()


@pytest.mark.parametrize(
    "asked",
    [
        *({"q": query} for query in ("wing", "ice", "雪 layer", "nothing", 'win* -"ice" wign')),
        {"q": "wing", "k": 2, "explain": True, "highlight": True, "quality": True},
        {"q": "wing", "page": 2, "hits_per_page": 1, "facets": "year"},
        {"filter": "year >= 1900", "fields": "text"},
        {"q": "wing", "fields": "title,year"},
    ],
)
def test_an_answer_is_what_its_model_says(client, asked):
    lists = {name: asked[name].split(",") for name in ("facets", "fields") if name in asked}
    for response in (
        client.get("/search", params=asked),
        client.post("/search", json=asked | lists),
    ):
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/json"
        model = TypeAdapter(SearchAnswer).validate_json(response.content)
        as_json = json.loads(TypeAdapter(SearchAnswer).dump_json(model))
        assert with_keys_of(as_json, response.json()) == response.json()


def with_keys_of(complete, answer):
    """Return what an answer has of a complete one, which has fields that were not requested."""
    if isinstance(answer, dict):
        return {name: with_keys_of(complete[name], value) for name, value in answer.items()}
    if isinstance(answer, list):
        return [with_keys_of(*both) for both in zip(complete, answer, strict=True)]
    return complete


def test_a_text_in_a_body_is_a_list_of_one(client):
    asked = {"q": "wing", "facets": "year", "fields": "title", "sort": "year:desc"}
    lists = {name: [text] for name, text in asked.items() if name != "q"}
    answers = [client.post("/search", json=asked | more).json() for more in ({}, lists)]
    for answer in answers:
        answer.pop("time_ms")
    assert answers[0] == answers[1]
    assert answers[0]["facets"].keys() == {"year"}
    assert "the text alone" in client.get("/openapi.json").json()["info"]["description"]


def test_the_interpretation_is_in_the_response(client):
    asked = {"q": '+wing -"no such thing" wign win*', "spelling": "suggest"}
    said = client.get("/search", params=asked).json()["interpretation"]
    assert said == {
        "words": ["wing"],
        "unknown": ["wign"],
        "phrases": [],
        "required": ["wing"],
        "excluded": ['"no such thing"'],
        "fields": [],
        "relaxed": {},
        "prefixes": {"win*": ["wing"]},
        "variants": {},
        "boolean": None,
        "stop_words": [],
        "synonyms": {},
        "corrections": {"wign": "wing"},
        "did_you_mean": '+wing -"no such thing" wing win*',
        "suggested_filters": {},
        "id": None,
        "left_out": [],
    }
    plain = client.post("/search", json={"q": '-"wing"', "operators": False}).json()
    assert plain["interpretation"]["excluded"] == []
    assert plain["hits"] == client.get("/search", params={"q": "wing"}).json()["hits"]


def test_parameters_a_ranker_does_not_have_are_null(client):
    answer = client.get("/search", params={"q": "wing", "ranker": "bm25", "alpha": 0.3}).json()
    assert answer["parameters"] == {"boosts": ""}


def test_nothing_to_look_for_finds_nothing(client):
    for query in ("", "xylophone", "\x00"):
        for response in (
            client.get("/search", params={"q": query}),
            client.post("/search", json={"q": query}),
        ):
            assert response.status_code == 200
            assert (response.json()["total"], response.json()["hits"]) == (0, [])


def test_numbers_are_finite(client):
    response = client.get("/search", params={"q": "ice", "ranker": "bm25"})
    (hit,) = json.loads(response.text, parse_constant=pytest.fail)["hits"]
    assert hit["metadata"] == {"odd": None}
    assert client.get("/documents/3").json()["metadata"] == {"odd": None}


def test_documents_are_returned_by_their_ids(client):
    for document in DOCUMENTS:
        answer = client.get(f"/documents/{quote(document['id'], safe='')}").json()
        assert (answer["index"], answer["generation"]) == ("tiny", "000001")
        assert {name: answer[name] for name in ("id", "title", "text")} == {
            name: document[name] for name in ("id", "title", "text")
        }


def test_slashes_of_an_id_may_stay(client):
    assert client.get("/documents/a/b%20c%3F%25").json()["id"] == "a/b c?%"


def test_indexes_and_their_details(client_of, home):
    client = client_of(home)
    first, second = client.get("/indexes").json()["indexes"]
    assert first == {
        "name": "first",
        "title": "",
        "ok": True,
        "error": None,
        "generation": "000001",
        "documents": 5,
        "drift": {
            "added": 0,
            "deleted": 0,
            "added_share": 0.0,
            "changed_share": 0.0,
            "unseen_share": 0.0,
            "max_doc": 5,
            "bytes": 0,
            "segments": 1,
            "log_position": 0,
        },
    }
    assert (second["name"], second["documents"]) == ("second", 2)
    details = client.get("/indexes/second").json()
    assert details.items() >= second.items()
    assert details["settings"]["dimensions"] == 3
    assert details["counts"]["documents"] == 2
    assert details["spectra"]["bm25"]["residual"] >= 0
    assert len(details["fingerprint"]) == 16


def test_the_index_is_chosen_by_name(client_of, home):
    client = client_of(home)
    for name, documents in (("first", 5), ("second", 2)):
        answer = client.get("/search", params={"q": "wing", "index": name, "ranker": "bm25"}).json()
        assert answer["index"] == name
        assert client.get(f"/indexes/{name}").json()["documents"] == documents
    assert client.get("/documents/3?index=first").status_code == 200
    assert client.get("/documents/3?index=second").status_code == 404


def test_front_door_leads_on(client):
    answer = client.get("/").json()
    assert answer["name"] == "klsa-search"
    assert answer["version"]
    for link in answer["links"].values():
        assert client.get(link).status_code == 200


def test_searched_fields_have_highlights_and_boosts(tmp_path, client_of):
    given = [
        {"id": "a", "title": "wing", "text": "heat", "summary": "layer"},
        {"id": "b", "title": "heat", "text": "layer", "summary": "wing"},
    ]
    build(given, name="some", home=tmp_path, search="title^3,text,summary").close()
    client = client_of(tmp_path)
    settings = client.get("/indexes/some").json()["settings"]
    assert settings["search"] == "title^3,summary,text"
    (hit,) = client.get("/search", params={"q": "summary:wing", "highlight": True}).json()["hits"]
    assert hit["highlight"]["summary"]["html"] == "<mark>wing</mark>"
    asked = {"q": "wing", "ranker": "bm25"}
    by_text = client.get("/search", params={**asked, "boosts": "title^0.1,summary^9"}).json()
    assert by_text["parameters"] == {"boosts": "summary^9,title^0.1"}
    assert [hit["id"] for hit in by_text["hits"]] == ["b", "a"]
    by_object = client.post("/search", json={**asked, "boosts": {"title": 0.1, "summary": 9}})
    assert by_object.json()["hits"] == by_text["hits"]
    refused = failure_of(client.get("/search", params={**asked, "boosts": "year^2"}), 422)
    assert refused["field"] == "boosts"
    assert "searched fields are: `title`, `summary`, `text`" in refused["message"]
