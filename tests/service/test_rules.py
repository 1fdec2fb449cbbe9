"""Rules over HTTP: set, list, search, explain, remove, scopes."""

import pytest

from .conftest import failure_of

PATH = "/indexes/first/rules"
RULE = {
    "id": "ice",
    "when": {"query_is": "wing"},
    "then": {"pin": [{"id": "3", "position": 1}, {"id": "gone", "position": 2}]},
}
BOOST = {
    "id": "old",
    "when": {"query_contains": "wings"},
    "then": {"boost": [{"filter": "year < 1960", "factor": 2.5}]},
}


def search(writer, **options):
    answer = writer.post("/search", json={"q": "wing", "index": "first", **options})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_list_of_rules_is_refused_with_the_form_of_the_body(writer):
    error = failure_of(writer.put(PATH, json=[RULE]), 422)
    assert error["message"] == 'the body: a list was sent; send an object: {"rules": ...}'


def test_a_rule_has_the_id_of_the_path(writer):
    then = {"hide": ["3"]}
    assert writer.put(f"{PATH}/q", json={"then": then}).json()["rules"] == 1
    assert writer.get(PATH).json()["rules"] == [{"id": "q", "then": then}]
    error = failure_of(writer.put(f"{PATH}/q", json={"id": "p", "then": then}), 422)
    assert error["field"] == "id"
    failure_of(writer.put(f"{PATH}/q q", json={"then": then}), 422)
    writer.delete(PATH)


def test_rules_are_set_searched_by_and_removed(writer):
    assert writer.get(PATH).json() == {"index": "first", "rules": [], "warnings": []}
    before = search(writer)
    assert "rules" not in before
    done = writer.put(PATH, json={"rules": [RULE]})
    warnings = ["rule 'ice': the index has no document 'gone'"]
    assert (done.status_code, done.json()) == (
        200,
        {"index": "first", "rules": 1, "warnings": warnings},
    )
    assert writer.put(f"{PATH}/old", json=BOOST).json()["rules"] == 2
    assert writer.get(PATH).json() == {
        "index": "first",
        "rules": [RULE, BOOST],
        "warnings": warnings,
    }
    assert writer.get(f"{PATH}/old").json() == BOOST

    found = search(writer, explain=True)
    assert (found["hits"][0]["id"], found["rules"]) == ("3", ["ice", "old"])
    assert found["total"] == before["total"] + 1
    effects = {hit["id"]: hit["explanation"]["rules"] for hit in found["hits"]}
    assert effects["3"] == [
        {"rule": "ice", "action": "pin", "value": 0.0, "position": 1, "factor": None}
    ]
    (boost,) = effects["a/b c?%"]
    scores = {hit["id"]: hit["score"] for hit in before["hits"]}
    assert boost["factor"] == 2.5
    assert boost["value"] == pytest.approx(1.5 * scores["a/b c?%"], rel=1e-4)
    assert search(writer, rules=False)["hits"] == before["hits"]
    both = writer.post(
        "/multi-search",
        json={
            "queries": [{"q": "wing", "index": "first", "rules": rules} for rules in (True, False)]
        },
    ).json()["results"]
    assert [each.get("rules") for each in both] == [["ice", "old"], None]

    assert writer.delete(f"{PATH}/ice").json()["rules"] == 1
    assert failure_of(writer.delete(f"{PATH}/ice"), 404)["code"] == "rule_not_found"
    assert failure_of(writer.get(f"{PATH}/ice"), 404)["code"] == "rule_not_found"
    assert writer.delete(PATH).json()["rules"] == 0
    assert search(writer)["hits"] == before["hits"]


def test_a_filter_with_a_long_number_fails_no_search(writer):
    then = {"boost": [{"filter": "year > " + "9" * 4400, "factor": 2}]}
    assert writer.put(f"{PATH}/long", json={"then": then}).json()["warnings"] == []
    assert search(writer)["rules"] == ["long"]
    assert search(writer, filter="year < " + "9" * 5000)["total"] == 1
    writer.delete(PATH)


def test_invalid_rules_are_refused(writer):
    for wrong, said in [
        ({**RULE, "then": {}}, "rule 'ice': then: nothing to do"),
        ({**RULE, "when": {"from": "soon"}}, "rule 'ice': when.from"),
        ({**BOOST, "then": {"boost": [{"filter": "year <", "factor": 2}]}}, "rule 'old'"),
    ]:
        for path, body in ((PATH, {"rules": [wrong]}), (f"{PATH}/{wrong['id']}", wrong)):
            error = failure_of(writer.put(path, json=body), 422)
            assert (error["field"], said in error["message"]) == ("rules", True), error
    assert failure_of(writer.put(f"{PATH}/other", json=RULE), 422)["field"] == "id"
    assert writer.put("/indexes/none/rules", json={"rules": [RULE]}).status_code == 404
    assert writer.get(PATH).json()["rules"] == []
