"""Judgements over HTTP: write, read, export, measure."""

import pytest

from klsa_search import open_index

from .conftest import copy_home, failure_of

JUDGED = "/indexes/tiny/judgements"


@pytest.fixture
def home(tiny_home, tmp_path):
    return copy_home(tiny_home, tmp_path)


def judge(writer, q, id_, grade):
    return writer.put(JUDGED, json={"q": q, "id": id_, "grade": grade})


def test_a_hit_is_judged_and_taken_back(writer, home):
    assert writer.get(JUDGED).json() == {"index": "tiny", "queries": []}
    answer = judge(writer, "wing", "1", 1)
    assert answer.json() == {
        "index": "tiny",
        "queries": [{"number": 1, "q": "wing", "grades": {"1": 1}, "deleted": []}],
    }
    judge(writer, "wing ", "a/b c?%", 0)
    judge(writer, "ice", "3", 1)
    wing, ice = writer.get(JUDGED).json()["queries"]
    assert wing == {"number": 1, "q": "wing", "grades": {"1": 1, "a/b c?%": 0}, "deleted": []}
    assert writer.get(JUDGED, params={"q": "ice"}).json()["queries"] == [ice]
    assert open_index(home / "tiny").judgements.queries("ice")[0].grades == {"3": 1}
    answer = writer.delete(JUDGED, params={"q": "wing", "id": "a/b c?%"})
    assert answer.json()["queries"][0]["grades"] == {"1": 1}
    assert writer.delete(JUDGED, params={"q": "wing"}).json()["queries"] == []
    assert writer.delete(JUDGED, params={"q": "wing"}).status_code == 200
    assert writer.get(JUDGED).json()["queries"] == [ice]


def test_deleted_documents_are_reported(writer):
    judge(writer, "wing", "1", 1)
    assert writer.delete("/indexes/tiny/documents/1").status_code == 200
    (wing,) = writer.get(JUDGED).json()["queries"]
    assert (wing["grades"], wing["deleted"]) == ({"1": 1}, ["1"])
    assert failure_of(judge(writer, "wing", "1", 0), 404)["code"] == "document_not_found"


def test_invalid_judgements_are_explained(writer):
    for body, status, said in (
        ({"q": " ", "id": "1", "grade": 1}, 422, "0 characters"),
        ({"q": "wing", "id": "1", "grade": 101}, 422, "100"),
        ({"q": "wing", "id": "1", "grade": "1"}, 422, "grade"),
        ({"q": "wing", "id": "1"}, 422, "grade is missing"),
        ({"q": "wing", "id": "1", "grade": 1, "by": "me"}, 422, "parameter 'by'"),
        ({"q": "wing", "id": "nobody", "grade": 1}, 404, "nobody"),
    ):
        assert said in failure_of(writer.put(JUDGED, json=body), status)["message"]
    assert writer.get(JUDGED).json()["queries"] == []


@pytest.mark.parametrize("q", ["", " ", "\0"])
def test_an_invalid_query_is_named(writer, q):
    for answer in (
        writer.put(JUDGED, json={"q": q, "id": "1", "grade": 1}),
        writer.get(JUDGED, params={"q": q}),
        writer.delete(JUDGED, params={"q": q}),
    ):
        assert failure_of(answer, 422)["field"] == "q"


def test_judgements_are_exported_in_standard_formats(writer):
    judge(writer, "wing", "1", 1)
    judge(writer, "snow and ice", "3", 2)
    qrels = writer.get(f"{JUDGED}.qrels")
    assert qrels.headers["content-type"] == "text/plain; charset=utf-8"
    assert qrels.text == "1 0 1 1\n2 0 3 2\n"
    assert writer.get(f"{JUDGED}.tsv").text == "1\twing\n2\tsnow and ice\n"
    assert "x-left-out" not in qrels.headers
    judge(writer, "wing", "a/b c?%", 0)  # an id with white space
    again = writer.get(f"{JUDGED}.qrels")
    assert (again.text, again.headers["x-left-out"]) == (qrels.text, "1")


def test_rankers_are_judged_by_them(writer):
    evaluate = "/indexes/tiny/evaluate"
    asked = {"judgements": "stored", "rankers": ["bm25", "klsa"]}
    assert "has no judgements" in failure_of(writer.post(evaluate, json=asked), 422)["message"]
    judge(writer, "wing", "1", 1)
    judge(writer, "ice", "3", 1)
    judge(writer, "ice", "1", 0)
    answer = writer.post(evaluate, json=asked).json()
    assert (answer["judged"], answer["unknown"]) == (2, 0)
    first, second = answer["rankers"]
    same = {
        "queries": {"1": "wing", "2": "ice"},
        "judgements": {"1": {"1": 1}, "2": {"1": 0, "3": 1}},
    }
    assert writer.post(evaluate, json=same).json()["rankers"] == answer["rankers"]
    low, high = first["interval"]
    assert low <= first["measures"]["map"] <= high
    assert first["against_first"] is None
    low, high = second["against_first"]["interval"]
    assert low <= second["measures"]["map"] - first["measures"]["map"] <= high
    writer.delete("/indexes/tiny/documents/3")
    answer = writer.post(evaluate, json=asked).json()
    assert (answer["judged"], answer["unknown"]) == (2, 1)
    for grade in (101, 2**70, -(10**400)):
        beyond = {**same, "judgements": {"1": {"1": grade}}}
        error = failure_of(writer.post(evaluate, json=beyond), 422)
        assert (error["field"], "100" in error["message"]) == ("judgements", True), error
    assert failure_of(writer.post(evaluate, json={**same, **asked}), 422)["field"] == "queries"
    assert failure_of(writer.post(evaluate, json={"judgements": {"1": {"1": 1}}}), 422)
