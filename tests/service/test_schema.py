"""The OpenAPI schema and the page that shows it."""

import re

import pytest
from starlette.testclient import TestClient

import klsa_search
from klsa_search.config import LanguageSettings, SearchSettings
from klsa_search.service import Catalog, create_app
from klsa_search.service.messages.searching import SearchRequest
from klsa_search.service.middleware.access import needs_key

WRITING = {"200", "400", "403", "404", "413", "415", "422", "429", "500", "503"}
ROUTES = {
    ("/", "get"): {"200"},
    ("/search", "get"): {"200", "404", "422", "500", "503"},
    ("/search", "post"): {"200", "400", "404", "413", "422", "500", "503"},
    ("/indexes/{name}/explain/{id}", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/search", "post"): {"200", "400", "404", "413", "422", "500", "503"},
    ("/search/batch", "post"): {"200", "400", "404", "413", "422", "500", "503"},
    ("/indexes/{name}/evaluate", "post"): {
        "200",
        "400",
        "404",
        "413",
        "422",
        "500",
        "501",
        "503",
    },
    ("/indexes/{name}/judgements", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/judgements", "put"): WRITING - {"415"},
    ("/indexes/{name}/judgements", "delete"): WRITING - {"415"},
    ("/indexes/{name}/judgements.qrels", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/judgements.tsv", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/analyze", "post"): {"200", "400", "404", "413", "422", "500", "503"},
    ("/indexes/{name}/spectrum", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/refit", "get"): {"200", "403", "404", "422", "429", "500", "503"},
    ("/indexes/{name}/refit", "post"): (WRITING - {"200"}) | {"202"},
    ("/v1/{name}/search", "get"): {"200", "400", "404", "500", "503"},
    ("/v1/{name}/doc/{docid}", "get"): {"200", "400", "404", "500", "503"},
    ("/suggest", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/suggest", "get"): {"200", "404", "422", "500", "503"},
    ("/aliases", "get"): {"200", "500", "503"},
    ("/aliases/{name}", "put"): WRITING - {"415"},
    ("/aliases/{name}", "delete"): WRITING - {"415"},
    ("/indexes/{name}/synonyms", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/synonyms", "put"): WRITING - {"415"},
    ("/indexes/{name}/synonyms", "delete"): WRITING - {"415"},
    ("/documents/{id}", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes", "get"): {"200", "500", "503"},
    ("/indexes/{name}", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/documents/{id}/similar", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/documents/{id}/terms", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/terms/{term}/related", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/map", "get"): {"200", "404", "422", "500", "503"},
    ("/indexes/{name}/map", "post"): {"200", "400", "404", "413", "422", "500", "503"},
    ("/indexes/{name}/classify", "post"): {"200", "400", "404", "413", "422", "500", "503"},
    ("/indexes/{name}/documents", "post"): WRITING,
    ("/indexes/{name}/documents/delete-batch", "post"): WRITING,
    ("/indexes/{name}/documents/{id}", "put"): WRITING,
    ("/indexes/{name}/documents/{id}", "delete"): WRITING - {"415"},
    ("/health", "get"): {"200", "503"},
    ("/metrics", "get"): {"200"},
    ("/health/live", "get"): {"200"},
    ("/health/ready", "get"): {"200", "503"},
}
ALWAYS = {"/", "/health", "/health/live", "/health/ready", "/metrics"}
TEXTS = {
    "/metrics",
    "/indexes/{name}/judgements.qrels",
    "/indexes/{name}/judgements.tsv",
}
KEYS = {"401", "403"}
"""Answers of every route that needs a key where there are keys."""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with Catalog(tmp_path_factory.mktemp("none")) as catalog:
        yield TestClient(create_app(catalog))


@pytest.fixture(scope="module")
def schema(client):
    return client.get("/openapi.json").json()


def operations(schema):
    return {
        (path, method): operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    }


def references(part):
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"]
        for inner in part.values():
            yield from references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from references(inner)


def test_schema_is_whole(schema):
    assert schema["openapi"].startswith("3.1")
    assert schema["info"]["title"] == "klsa-search"
    assert schema["info"]["version"] == klsa_search.__version__
    names = set(schema["components"]["schemas"])
    used = {reference.removeprefix("#/components/schemas/") for reference in references(schema)}
    assert used == names
    identifiers = [operation["operationId"] for operation in operations(schema).values()]
    assert len(set(identifiers)) == len(identifiers)


def test_every_route_documents_its_answers_and_failures(schema):
    assert {
        route: set(operation["responses"]) for route, operation in operations(schema).items()
    } == {
        route: answers
        | (KEYS if needs_key(route[0]) else set())
        | (set() if route[0] in ALWAYS else {"429"})
        for route, answers in ROUTES.items()
    }
    for (path, _), operation in operations(schema).items():
        assert operation["summary"]
        for status, response in operation["responses"].items():
            if path in TEXTS and status == "200":
                assert list(response["content"]) == ["text/plain"]
                continue
            shape = response["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
            assert response["description"]
            if status not in ("200", "202") and not path.startswith("/health"):
                own = (
                    "V1Failure"
                    if path.startswith("/v1/") and status not in KEYS | {"429"}
                    else None
                )
                assert shape == (own or "FailureAnswer")


def test_limits_are_in_the_schema(schema):
    parameters = {
        parameter["name"]: parameter
        for parameter in operations(schema)["/search", "get"]["parameters"]
    }
    assert list(parameters) == list(SearchRequest.model_fields)
    assert not any(parameter["required"] for parameter in parameters.values())
    for name in ("sort", "facets", "fields"):
        assert (parameters[name]["schema"]["type"], parameters[name]["explode"]) == ("array", False)
    assert parameters["filter"]["schema"]["type"] == "string"
    assert parameters["q"]["schema"]["maxLength"] == 10_000
    for path, most in {
        "/search": 1_000,
        "/indexes/{name}/documents/{id}/similar": 1_000,
        "/indexes/{name}/terms/{term}/related": 100,
        "/suggest": 20,
    }.items():
        asked = {each["name"]: each for each in operations(schema)[path, "get"]["parameters"]}
        assert (asked["k"]["schema"]["minimum"], asked["k"]["schema"]["maximum"]) == (1, most)
    labels = schema["components"]["schemas"]["ClassifyBody"]["properties"]["labels"]
    assert "2 to 100 different" in labels["description"]
    body = schema["components"]["schemas"]["SearchBody"]
    assert list(body["properties"]) == list(parameters)
    assert body["additionalProperties"] is False


def test_every_setting_of_a_query_can_be_asked_for():
    settings = {*SearchSettings.model_fields, *LanguageSettings.model_fields}
    assert settings <= set(SearchRequest.model_fields)


def test_docs_need_no_other_machine(client):
    page = client.get("/docs")
    assert page.status_code == 200
    links = re.findall(r"""(?:src|href)=["']([^"']+)["']""", page.text)
    assert any(link.endswith(".js") for link in links)
    for link in links:
        assert link.startswith("/")
        assert client.get(link).status_code == 200
    assert "://" not in page.text
    assert '"validatorUrl": null' in page.text
    assert client.get("/redoc").status_code == 404
