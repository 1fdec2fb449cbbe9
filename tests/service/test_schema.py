"""The OpenAPI schema and the page that shows it."""

import json
import re

import pytest

import klsa_search
from klsa_search.core.parameters import ParsingSettings, RankingSettings
from klsa_search.service.middleware.auth import needs_key
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.schemas.search_requests import SearchRequest
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

TEXTS = {
    "/indexes/{name}/export",
    "/metrics",
    "/indexes/{name}/judgements.qrels",
    "/indexes/{name}/judgements.tsv",
    "/indexes/{name}/analytics.csv",
}
KEYS = {"401", "403"}  # answers of every route that needs a key where there are keys


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with OpenIndexes(tmp_path_factory.mktemp("none")) as open_indexes:
        yield AppClient(app_of_indexes(open_indexes))


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


def test_no_text_has_doubled_braces(schema):
    assert "{{" not in json.dumps(schema)


def test_schema_is_whole(schema):
    assert schema["openapi"].startswith("3.1")
    assert schema["info"]["title"] == "klsa-search"
    assert schema["info"]["version"] == klsa_search.__version__
    names = set(schema["components"]["schemas"])
    used = {reference.removeprefix("#/components/schemas/") for reference in references(schema)}
    assert used == names
    identifiers = [operation["operationId"] for operation in operations(schema).values()]
    assert len(set(identifiers)) == len(identifiers)


def shapes(part):
    """Yield all schemas below a part of the OpenAPI schema."""
    if isinstance(part, dict):
        for name, inner in part.items():
            if name in ("schema", "items") or (
                name == "additionalProperties" and inner is not True
            ):
                yield inner
            yield from (inner.values() if name == "properties" else ())
            yield from (inner if name == "anyOf" else ())
            yield from shapes(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from shapes(inner)


def test_generators_of_clients_accept_it(schema):
    """Operations are named as functions; all bodies and answers have one type, and no empty one."""
    for operation in operations(schema).values():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", operation["operationId"])
        assert len(operation.get("requestBody", {"content": "-"})["content"]) == 1
        for response in operation["responses"].values():
            (content,) = response["content"].values()
            assert "schema" in content
    written = [part for part in shapes(schema) if part is not False]
    assert len(written) > 1_000
    types = {"type", "$ref", "anyOf", "const", "enum"}
    assert [part for part in written if types.isdisjoint(part)] == []
    names = [name.lower() for name in schema["components"]["schemas"]]
    assert len(set(names)) == len(names)


def test_every_route_documents_its_answers_and_failures(schema):
    for (path, method), operation in operations(schema).items():
        expected = set(KEYS) if needs_key(path) else set()
        if needs_key(path) and path != "/metrics":
            expected |= {"429", "500", "503"}
        if "{" in path:
            expected |= {"404", "422"}
        if "requestBody" in operation:
            expected |= {"422"}
        if "requestBody" in operation or method in ("put", "delete"):
            expected |= {"400", "413"}
        assert expected <= set(operation["responses"]), (method, path)
        assert {"200", "201", "202"} & set(operation["responses"])
    for (path, _), operation in operations(schema).items():
        assert operation["summary"]
        for status, response in operation["responses"].items():
            if path in TEXTS and status == "200":
                kind = "text/csv" if path.endswith((".csv", "/export")) else "text/plain"
                assert list(response["content"]) == [kind]
                continue
            schema_ = response["content"]["application/json"]["schema"]
            shape = schema_.get("anyOf", [schema_])[0]["$ref"].rsplit("/", 1)[1]
            assert response["description"]
            if status not in ("200", "201", "202") and not path.startswith("/health"):
                assert shape == "FailureAnswer"


def test_limits_are_in_the_schema(schema):
    parameters = {
        parameter["name"]: parameter
        for parameter in operations(schema)["/search", "get"]["parameters"]
    }
    fields = [name for name in SearchRequest.model_fields if name != "vector"]  # of bodies only
    assert list(parameters) == fields
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
    assert "2 to 100 distinct" in labels["description"]
    body = schema["components"]["schemas"]["SearchRequest"]
    assert list(body["properties"]) == list(SearchRequest.model_fields)
    assert body["additionalProperties"] is False


def test_every_query_setting_is_a_parameter():
    settings = {*RankingSettings.model_fields, *ParsingSettings.model_fields}
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
