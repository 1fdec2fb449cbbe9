"""/compat/meilisearch: the requests of meilisearch and @meilisearch/instant-meilisearch (npm)."""

import pytest
from starlette.testclient import TestClient

from klsa_search.errors import QueryError
from klsa_search.service.app import create_app
from klsa_search.service.background import Writes
from klsa_search.service.catalog import Catalog
from klsa_search.service.jobs import Jobs
from klsa_search.service.keys import add_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.routes.meilisearch import PREFIX, router
from klsa_search.service.schemas.meilisearch import changed_settings, filter_text

from .test_scopes import is_too_narrow, scopes_of

BASE = PREFIX.rstrip("/")
BIKES = [
    {
        "id": 1,
        "title": "Red bicycle",
        "text": "A fast road bicycle.",
        "price": 300,
        "brand": "Corvo",
    },
    {"id": 2, "title": "Blue bicycle", "price": 700, "brand": "Lumo", "tags": ["kids", "city"]},
    {"id": 3, "title": "Helmet", "price": 40.5, "brand": "Corvo"},
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def client(home):
    with Catalog(home, interval=0) as catalog, Jobs(catalog, [], share=None) as jobs:
        jobs.watch.stop()
        app = create_app(catalog, writes=Writes(), jobs=jobs)
        client = TestClient(app, base_url=f"http://testserver{BASE}")
        assert client.post("/indexes", json={"uid": "bikes", "primaryKey": "id"}).status_code == 202
        assert client.post("/indexes/bikes/documents", json=BIKES).json()["status"] == "succeeded"
        yield client


def search(client, **body):
    answer = client.post("/indexes/bikes/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(answer):
    return [hit["id"] for hit in answer["hits"]]


def failure(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"message", "code", "type", "link"}
    return answer.json()


def test_what_instant_meilisearch_sends(client):
    tags = {"highlightPreTag": "__ais-highlight__", "highlightPostTag": "__/ais-highlight__"}
    query = {
        "indexUid": "bikes",
        "q": "red bicyc",
        "facets": ["brand", "price"],
        "attributesToHighlight": ["*"],
        **tags,
        "filter": [['"brand"="Corvo"', '"brand"="Lumo"'], '"price">=10'],
        "hitsPerPage": 1,
        "page": 1,
    }
    unfiltered = {"indexUid": "bikes", "q": "", "facets": ["brand"], **tags}
    unfiltered |= {"attributesToHighlight": ["*"], "hitsPerPage": 0, "page": 1}
    headers = {"X-Meilisearch-Client": "Meilisearch instant-meilisearch (v1)"}
    answer = client.post("/multi-search", json={"queries": [query, unfiltered]}, headers=headers)
    first, second = answer.json()["results"]
    assert (first["indexUid"], first["query"]) == ("bikes", "red bicyc")
    assert (first["page"], first["hitsPerPage"]) == (1, 1)
    assert (first["totalHits"], first["totalPages"]) == (2, 2)
    assert first["facetDistribution"] == {
        "brand": {"Corvo": 1, "Lumo": 1},
        "price": {"300": 1, "700": 1},
    }
    assert first["facetStats"] == {"price": {"min": 300, "max": 700}}
    (hit,) = first["hits"]
    assert hit == {**BIKES[0], "id": "1", "_formatted": hit["_formatted"]}
    assert hit["_formatted"]["title"] == "{0}Red{1} {0}bicycle{1}".format(*tags.values())
    assert hit["_formatted"]["text"] == "A fast road {}bicycle{}.".format(*tags.values())
    assert (hit["_formatted"]["price"], hit["_formatted"]["brand"]) == ("300", "Corvo")
    assert (second["hits"], second["totalHits"]) == ([], 3)
    assert second["facetDistribution"] == {"brand": {"Corvo": 2, "Lumo": 1}}


def test_a_blank_query_finds_every_document(client):
    found = search(client, sort=["price:desc"])
    assert ids(found) == ["2", "1", "3"]
    assert (found["estimatedTotalHits"], found["limit"], found["offset"]) == (3, 20, 0)
    assert ids(search(client, q="", limit=1, offset=1, sort=["price:asc"])) == ["1"]


def test_the_options_of_a_search(client):
    found = search(client, q="red", attributesToRetrieve=["price"], showRankingScore=True)
    assert found["hits"] == [{"price": 300, "_rankingScore": found["hits"][0]["_rankingScore"]}]
    assert 0 <= found["hits"][0]["_rankingScore"] <= 1
    assert ids(search(client, q="red bicycle", matchingStrategy="all")) == ["1"]
    cropped = search(client, q="fast", attributesToCrop=["text"], cropLength=2)["hits"][0]
    assert len(cropped["_formatted"]["text"]) <= 14 < len(cropped["text"])
    by_url = client.get("/indexes/bikes/search?q=helmet&filter=price%20<%20100&facets=brand,tags")
    assert ids(by_url.json()) == ["3"]
    assert by_url.json()["facetDistribution"] == {"brand": {"Corvo": 1}, "tags": {}}
    facets = client.post(
        "/indexes/bikes/facet-search", json={"facetName": "brand", "facetQuery": "co"}
    )
    assert facets.json()["facetHits"] == [{"value": "Corvo", "count": 2}]


@pytest.mark.parametrize(
    "name", ["vector", "hybrid", "showMatchesPosition", "rankingScoreThreshold"]
)
def test_an_option_without_equal_is_refused_by_name(client, name):
    error = failure(client.post("/indexes/bikes/search", json={"q": "red", name: 1}), 400)
    assert name in error["message"]
    assert error["type"] == "invalid_request"


def test_failures_have_the_format_of_meilisearch(client):
    missing = failure(client.post("/indexes/none/search", json={"q": "x"}), 404)
    assert missing["code"] == "index_not_found"
    document = failure(client.get("/indexes/bikes/documents/nine"), 404)
    assert document["code"] == "document_not_found"
    assert failure(client.post("/indexes", json={"uid": "bikes"}), 409)["code"] == (
        "index_already_exists"
    )
    assert (
        "primary key"
        in failure(client.post("/indexes", json={"uid": "new", "primaryKey": "sku"}), 400)[
            "message"
        ]
    )
    assert failure(client.get("/chats"), 404)["code"] == "not_found"
    failure(client.post("/indexes/bikes/search", json={"filter": [["price >"]]}), 400)
    failure(client.post("/multi-search", json={"federation": {}, "queries": []}), 400)


def test_documents_are_added_updated_read_and_deleted(client):
    assert client.post("/indexes/new/documents", json=BIKES[:2]).json()["taskUid"] == 0
    changes = [{"id": 2, "price": 650}, {"id": 4, "title": "Bell", "price": 9}]
    assert client.put("/indexes/new/documents", json=changes).status_code == 202
    assert client.get("/indexes/new/documents/2").json() == {**BIKES[1], "id": "2", "price": 650}
    assert client.get("/indexes/new/documents/4").json() == {"id": "4", "title": "Bell", "price": 9}
    assert client.post("/indexes/new/documents/delete-batch", json=[1]).status_code == 202
    assert client.delete("/indexes/new/documents/2").json()["type"] == "documentDeletion"
    assert client.get("/indexes/new/stats").json()["numberOfDocuments"] == 1
    names = [each["uid"] for each in client.get("/indexes").json()["results"]]
    assert names == ["bikes", "new"]
    assert client.get("/stats").json()["indexes"].keys() == {"bikes", "new"}
    assert client.get("/tasks/0").json()["status"] == "succeeded"
    assert client.delete("/indexes/new").json()["type"] == "indexDeletion"
    assert client.get("/indexes/new").status_code == 404
    assert client.get("/health").json() == {"status": "available"}
    assert client.get("/version").json()["pkgVersion"]


def test_settings_are_changed_or_refused(client):
    path = "/indexes/bikes/settings"
    same = client.get(path).json()
    same |= {"filterableAttributes": ["brand"], "synonyms": {"bike": ["bicycle"]}}
    assert client.patch(path, json=same).json()["taskUid"] == 0
    assert "1" in ids(search(client, q="bike"))
    job = client.put(f"{path}/searchable-attributes", json=["title", "brand"]).json()
    assert (job["taskUid"], job["status"]) == (1, "enqueued")
    off = {"typoTolerance": {"enabled": False}}
    assert client.patch(path, json=off).json()["taskUid"] == 0
    assert client.get(path).json()["typoTolerance"] == {"enabled": False}
    assert client.get("/tasks/1").json()["type"] == "settingsUpdate"
    assert client.get(f"{path}/synonyms").json() == {"bike": ["bicycle"]}
    error = failure(client.patch(path, json={"embedders": {"a": {}}}), 400)
    assert "embedders" in error["message"]
    failure(client.put(f"{path}/distinct-attribute", json="brand"), 400)


def test_settings_in_terms_of_the_service():
    current = {"distinctAttribute": None, "typoTolerance": {"enabled": True}}
    given = {"stopWords": ["a"], "typoTolerance": {"enabled": False}, "distinctAttribute": None}
    assert changed_settings(given, current) == {"own_stop_words": ["a"], "spelling": "off"}
    with pytest.raises(QueryError, match="rankingRules"):
        changed_settings({"rankingRules": ["words"]}, current)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ([], None),
        ("year > 1", "year > 1"),
        (["a = 1", ["b = 2", "c = 3"]], "((a = 1)) AND ((b = 2) OR (c = 3))"),
        ([[], "a = 1"], "((a = 1))"),
    ],
)
def test_lists_of_filters(given, expected):
    assert filter_text(given) == expected


def test_one_filter_of_a_list_cannot_leave_its_parentheses():
    with pytest.raises(QueryError):
        filter_text([["a = 1) OR (b = 2"]])


def test_its_routes_need_the_scopes_of_the_native_ones(client, home, tmp_path):
    file = tmp_path / "keys.json"
    scopes = ("search", "write")
    keys = {scope: add_key(file, scope, [scope]) for scope in scopes}
    with Catalog(home, interval=0) as catalog:
        asked = TestClient(create_app(catalog, writes=Writes(), keys=Keys(file, ())))
        for route in router.routes:
            path = route.path.replace("{uid}", "none").replace("{id:whole}", "1")
            path = path.replace("{name}", "synonyms").replace("{number}", "0")
            needed = scopes_of(route)
            for scope in scopes:
                header = {"Authorization": f"Bearer {keys[scope]}"}
                answer = asked.request(min(route.methods), path, headers=header, json=None)
                assert is_too_narrow(answer) == bool(needed and scope not in needed), path


def test_a_tenant_token_reaches_the_documents_of_its_filter_only(client, home, tmp_path):
    file = tmp_path / "keys.json"
    key = add_key(file, "all", ["search", "write"])
    with Catalog(home, interval=0) as catalog:
        asked = TestClient(create_app(catalog, writes=Writes(), keys=Keys(file, ())))
        wanted = {"filters": {"bikes": "brand = Corvo"}}
        given = asked.post(
            "/tenant-tokens", json=wanted, headers={"Authorization": f"Bearer {key}"}
        )
        assert given.status_code == 201, given.text
        asked.headers["Authorization"] = f"Bearer {given.json()['token']}"
        path = f"{BASE}/indexes/bikes"
        query = {"q": "", "facets": ["brand"]}
        found = asked.post(f"{path}/search", json=query).json()
        assert set(ids(found)) == {"1", "3"}
        assert found["facetDistribution"] == {"brand": {"Corvo": 2}}
        assert asked.get(f"{path}/search").json()["estimatedTotalHits"] == 2
        both = asked.post(
            f"{BASE}/multi-search", json={"queries": [{"indexUid": "bikes", **query}]}
        )
        assert both.json()["results"][0]["hits"] == found["hits"]
        values = asked.post(f"{path}/facet-search", json={"facetName": "brand"}).json()
        assert values["facetHits"] == [{"value": "Corvo", "count": 2}]
        assert asked.get(f"{path}/documents/3").status_code == 200
        assert asked.get(f"{path}/documents/2").status_code == 404
        documents = {"/search", "/multi-search", "/facet-search", "/documents/1", "/health"}
        for route in router.routes:
            address = route.path.replace("{uid}", "bikes").replace("{id:whole}", "1")
            address = address.replace("{name}", "synonyms").replace("{number}", "0")
            if not address.endswith(tuple(documents)):
                answer = asked.request(min(route.methods), address)
                assert answer.status_code in (401, 403), address
