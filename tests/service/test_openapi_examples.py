"""What the OpenAPI schema shows is what is asked and answered."""

import json

import jsonschema_rs
import pytest
from starlette.testclient import TestClient

from klsa_search.service.app import create_app
from klsa_search.service.catalog import Catalog
from klsa_search.service.schema import EXAMPLES
from tools.openapi_examples import REQUESTS, examples, in_lines

KEPT = json.loads(EXAMPLES.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    with Catalog(tmp_path_factory.mktemp("none")) as catalog:
        return TestClient(create_app(catalog)).get("/openapi.json").json()


def operations(schema):
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def shown(content):
    """The examples of a body, of a request or an answer."""
    many = [each["value"] for each in content.get("examples", {}).values()]
    return many or [content["example"]]


def check(schema, part, value):
    """Check a value against a part of the schema."""
    whole = {**part, "components": schema["components"]}
    jsonschema_rs.Draft202012Validator(whole).validate(value)


def test_they_are_what_a_service_answers():
    """Where this fails, `python -m tools.openapi_examples` writes them anew."""
    told = json.loads(json.dumps(examples()))
    assert KEPT["operations"].keys() == told["operations"].keys()
    for route, found in told["operations"].items():
        assert near(KEPT["operations"][route], found), route
    assert KEPT["failures"] == told["failures"]


def near(kept, found):
    """Whether they are the same, but for what rounding may do."""
    if isinstance(kept, dict) and isinstance(found, dict):
        return list(kept) == list(found) and all(near(kept[name], found[name]) for name in kept)
    if isinstance(kept, list) and isinstance(found, list):
        return len(kept) == len(found) and all(map(near, kept, found))
    if type(kept) is type(found) and isinstance(kept, int | float):
        return abs(kept - found) <= 2e-3 * max(1, abs(kept))
    return bool(kept == found)


def test_every_operation_has_them(schema):
    routes = dict(operations(schema))
    assert routes.keys() == REQUESTS.keys()
    for route, operation in routes.items():
        if "requestBody" in operation:
            for content in operation["requestBody"]["content"].values():
                assert shown(content), route
        named = [one for one in operation.get("parameters", ()) if "example" in one]
        required = {one["name"] for one in operation.get("parameters", ()) if one["required"]}
        assert required <= {one["name"] for one in named}, route
        assert named or not operation.get("parameters"), route
        for status, response in operation["responses"].items():
            for content in response["content"].values():
                assert shown(content), (route, status)


def test_they_fit_the_schema(schema):
    for _, operation in operations(schema):
        for one in operation.get("parameters", ()):
            if "example" in one:
                value = one["example"]
                listed = one["schema"].get("type") == "array"
                check(schema, one["schema"], value.split(",") if listed else value)
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for kind, content in (pair for body in bodies for pair in body.get("content", {}).items()):
            for value in shown(content):
                lines = kind == "application/x-ndjson"
                for each in map(json.loads, value.splitlines()) if lines else [value]:
                    check(schema, content.get("schema", {}), each)


def test_failures_say_what_to_do(schema):
    """Of each status, in a sentence: the thing and the fact, and the next step after it."""
    documented = {
        status for _, operation in operations(schema) for status in operation["responses"]
    }
    assert KEPT["failures"].keys() == documented - {"200", "202"}
    for kinds in KEPT["failures"].values():
        for code, told in kinds.items():
            assert told["error"]["code"] == code
            assert len(told["error"]["message"].split()) > 5


def test_lines_are_written_as_they_are_sent(schema):
    content = schema["paths"]["/indexes/{name}/documents"]["post"]["requestBody"]["content"]
    lines = REQUESTS["POST /indexes/{name}/documents"]["lines"]
    assert shown(content["application/x-ndjson"]) == [in_lines(lines)]
