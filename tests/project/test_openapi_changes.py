"""The HTTP API is compatible with the last release, except for announced changes."""

import copy
import json

import pytest

from tools.openapi_changes import (
    RELEASED,
    announced,
    changes,
    is_announced,
    present,
    without_words,
)

SEARCH = "GET /search"


@pytest.fixture(scope="module")
def released():
    return json.loads(RELEASED.read_text(encoding="utf-8"))


def test_every_incompatible_change_is_announced(released):
    """Where this fails, a line under `### Breaking` in CHANGELOG.md has to name what changed."""
    names = announced()
    for name, what in changes(released, without_words(present())):
        assert is_announced(name, names), f"{' '.join(name)} {what}"


def parameter(schema, name):
    asked = schema["paths"]["/search"]["get"]["parameters"]
    return next(each for each in asked if each["name"] == name)


def parts(schema):
    return schema["components"]["schemas"]


def remove_path(schema):
    del schema["paths"]["/suggest"]


def remove_parameter(schema):
    asked = schema["paths"]["/search"]["get"]["parameters"]
    asked.remove(parameter(schema, "explain"))


def narrow_parameter(schema):
    parameter(schema, "k")["schema"]["maximum"] = 999


def require_parameter(schema):
    parameter(schema, "k")["required"] = True


def remove_choice(schema):
    chosen = parts(schema)["SearchBody"]["properties"]["ranker"]["anyOf"][0]["enum"]
    chosen.remove("lsi")


def remove_field(schema):
    del parts(schema)["FoundAnswer"]["properties"]["score"]


def change_type(schema):
    parts(schema)["FoundAnswer"]["properties"]["score"] = {"type": "string"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (remove_path, [(("GET /suggest",), "is gone")]),
        (remove_parameter, [((SEARCH, "explain"), "is gone")]),
        (narrow_parameter, [((SEARCH, "k"), "has maximum 999")]),
        (require_parameter, [((SEARCH, "k"), "is required")]),
    ],
)
def test_an_incompatible_change_is_found(released, change, expected):
    changed = copy.deepcopy(released)
    change(changed)
    assert list(changes(released, changed)) == expected


@pytest.mark.parametrize(
    ("change", "last", "what"),
    [
        (remove_choice, "ranker", "does not accept lsi"),
        (remove_field, "score", "is gone"),
        (change_type, "score", "may be string"),
    ],
)
def test_an_incompatible_change_of_a_shared_part_is_found_wherever_it_is_used(
    released, change, last, what
):
    changed = copy.deepcopy(released)
    change(changed)
    found = list(changes(released, changed))
    assert {(name[-1], said) for name, said in found} == {(last, what)}
    assert {"POST /search", "POST /indexes/{name}/search"} <= {name[0] for name, _ in found}


def test_what_is_added_or_widened_is_compatible(released):
    changed = copy.deepcopy(released)
    parameter(changed, "k")["schema"]["maximum"] = 10_000
    changed["paths"]["/more"] = changed["paths"]["/search"]
    parts(changed)["FoundAnswer"]["properties"]["more"] = {"type": "string"}
    parts(changed)["SearchBody"]["properties"]["more"] = {"type": "string"}
    assert list(changes(released, changed)) == []


def test_a_change_is_announced_by_path_parameter_or_field():
    name = ("GET /search", "200", "hits", "[]", "score")
    assert is_announced(name, {"score"})
    assert is_announced(name, {"hits"})
    assert is_announced(name, {"/search"})
    assert not is_announced(name, {"scores", "/suggest"})
