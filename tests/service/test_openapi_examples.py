"""The examples of the HTTP API are real requests and responses, and fit the OpenAPI schema."""

import json
import re

import jsonschema_rs
import pytest

from klsa_search.service.schemas.documents import LineAnswer
from tools.openapi_examples import LINES, PAGE, examples, page

BLOCK = re.compile(r"```json\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def told():
    return examples()


def operations(schema):
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def check(schema, part, value):
    """Check a value against a part of the schema."""
    whole = {**part, "components": schema["components"]}
    jsonschema_rs.Draft202012Validator(whole).validate(value)


def test_the_page_has_every_route(schema):
    """Without asking a service: what it answers is compared by the long tests."""
    shown = PAGE.read_text(encoding="utf-8")
    missing = [route for route, _ in operations(schema) if f"`{route}`" not in shown]
    assert missing == []


@pytest.mark.slow
def test_the_page_is_what_a_service_answers(told):
    kept, new = PAGE.read_text(encoding="utf-8"), "\n\n".join(page(told)) + "\n"
    assert BLOCK.sub("", kept) == BLOCK.sub("", new), "run: python -m tools.openapi_examples"
    for one, other in zip(BLOCK.findall(kept), BLOCK.findall(new), strict=True):
        assert near(json.loads(one), json.loads(other)), other


def near(kept, found):
    """Whether they are the same, but for what rounding may do."""
    if isinstance(kept, dict) and isinstance(found, dict):
        return list(kept) == list(found) and all(near(kept[name], found[name]) for name in kept)
    if isinstance(kept, list) and isinstance(found, list):
        return len(kept) == len(found) and all(map(near, kept, found))
    if type(kept) is type(found) and isinstance(kept, int | float):
        return abs(kept - found) <= 2e-3 * max(1, abs(kept))
    return bool(kept == found)


@pytest.mark.slow
def test_every_operation_has_one_that_fits_the_schema(schema, told):
    routes = dict(operations(schema))
    assert routes.keys() == told["operations"].keys()
    for route, operation in routes.items():
        asked = told["operations"][route]
        for one in operation.get("parameters", ()):
            assert not one["required"] or one["name"] in asked["parameters"], route
            if one["name"] in asked.get("parameters", ()):
                value = asked["parameters"][one["name"]]
                listed = one["schema"].get("type") == "array"
                check(schema, one["schema"], value.split(",") if listed else value)
        bodies = operation.get("requestBody", {}).get("content", {})
        assert bool(bodies) == ("body" in asked or "lines" in asked), route
        for kind, content in bodies.items():
            if kind == LINES:  # a text, whose lines are documents
                assert content["schema"]["type"] == "string"
                content = {"schema": {"$ref": "#/components/schemas/NewDocument"}}
            for value in asked["lines"] if kind == LINES else [asked["body"]]:
                check(schema, content["schema"], value)
        for status, answer in asked["answers"].items():
            if status == LINES:
                for line in answer:
                    LineAnswer.model_validate(line)
            else:
                (content,) = operation["responses"][status]["content"].values()
                check(schema, content["schema"], answer)


@pytest.mark.slow
def test_failures_say_what_to_do(schema, told):
    """Of each status, in a sentence: the thing and the fact, and the next step after it."""
    documented = {
        status for _, operation in operations(schema) for status in operation["responses"]
    }
    assert told["failures"].keys() == documented - {"200", "201", "202"}
    failure = {"$ref": "#/components/schemas/FailureAnswer"}
    for kinds in told["failures"].values():
        for code, body in kinds.items():
            check(schema, failure, body)
            assert body["error"]["code"] == code
            assert len(body["error"]["message"].split()) > 5


def test_examples_of_the_models_fit_them(schema):
    shown = [part for part in schema["components"]["schemas"].values() if "examples" in part]
    assert shown
    for part in shown:
        for value in part["examples"]:
            check(schema, part, value)
