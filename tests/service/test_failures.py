import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klsa_search.search import Index
from klsa_search.service.requests import SearchRequest

from .conftest import build_tiny


def failure_of(response, status):
    """The error of an answer, after a look at its shape."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert list(response.json()) == ["error"]
    error = response.json()["error"]
    assert list(error) == ["code", "message", "field"]
    assert error["code"]
    assert error["message"]
    return error


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", -0.1),
        ("alpha", 1.01),
        ("alpha", "NaN"),
        ("alpha", "inf"),
        ("alpha", ""),
        ("alpha", "half"),
        ("k", 0),
        ("k", -1),
        ("k", 10_001),
        ("k", "1.5"),
        ("k", "9" * 5000),
        ("z", 0),
        ("z", 10**9),
        ("dimensions", 0),
        ("dimensions", 4),
        ("ranker", "tfidf"),
        ("q", "x" * 10_001),
        ("index", "x" * 101),
    ],
)
def test_parameter_outside_its_limits_is_named(client, field, value):
    error = failure_of(client.get("/search", params={"q": "wing", field: value}), 422)
    assert (error["code"], error["field"]) == ("bad_query", field)
    assert error["message"].startswith(f"{field} = ")
    assert len(error["message"]) < 250


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", 2),
        ("alpha", "0.5"),
        ("alpha", True),
        ("k", "10"),
        ("k", 1.5),
        ("k", [1]),
        ("q", None),
        ("q", {"match": "wing"}),
        ("q", "half a pair: \ud83d"),
        ("index", "\udc00"),
        ("ranker", ["klsa"]),
    ],
)
def test_json_parameter_of_another_kind_is_named(client, field, value):
    body = json.dumps({"q": "wing", field: value})
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    error = failure_of(response, 422)
    assert (error["code"], error["field"]) == ("bad_query", field)


def test_json_nan_is_named(client):
    body = '{"q": "wing", "alpha": NaN}'
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    assert failure_of(response, 422)["field"] == "alpha"


@pytest.mark.parametrize("method", ["get", "post"])
def test_unknown_parameter_is_refused_with_the_known_ones(client, method):
    asked = {"q": "wing", "alhpa": 1}
    given = {"params": asked} if method == "get" else {"json": asked}
    error = failure_of(getattr(client, method)("/search", **given), 422)
    assert error["field"] == "alhpa"
    assert "q, index, k, ranker, alpha, z, sharpness" in error["message"]


def test_unknown_parameter_of_a_document_is_refused(client):
    error = failure_of(client.get("/documents/1", params={"idx": "tiny"}), 422)
    assert error["field"] == "idx"
    assert error["message"].endswith(": index")


@pytest.mark.parametrize("name", ["\ud800", "q\x00", "{name}"])
def test_unknown_parameter_of_any_name_is_refused(client, name):
    body = json.dumps({"q": "wing", name: 1})
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    assert failure_of(response, 422)["field"] == name.encode(errors="backslashreplace").decode()


@pytest.mark.parametrize("method", ["get", "post"])
def test_missing_query_is_named(client, method):
    given = {} if method == "get" else {"json": {}}
    error = failure_of(getattr(client, method)("/search", **given), 422)
    assert (error["code"], error["field"]) == ("bad_query", "q")


@pytest.mark.parametrize("body", ["{", "", "{'q': 1}", '{"q": "wing"} x', "[" * 100_000, b"\xff{}"])
def test_broken_json(client, body):
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    if not body:
        assert failure_of(response, 422)["field"] is None
    else:
        assert failure_of(response, 400)["code"] == "bad_json"


@pytest.mark.parametrize("body", ["[]", '"wing"', "3", "null"])
def test_json_that_is_no_object(client, body):
    response = client.post("/search", content=body, headers={"Content-Type": "application/json"})
    error = failure_of(response, 422)
    assert error["field"] is None
    assert "JSON object" in error["message"]


def test_body_that_does_not_say_it_is_json(client):
    response = client.post("/search", content='{"q": "wing"}', headers={"Content-Type": "text/x"})
    assert "Content-Type: application/json" in failure_of(response, 422)["message"]


@pytest.mark.parametrize("announced", [True, False])
def test_body_too_long(client, announced):
    body = json.dumps({"q": "x" * 2**20}).encode()
    content = body if announced else iter([body[:1000], body[1000:]])
    response = client.post("/search", content=content, headers={"Content-Type": "application/json"})
    assert failure_of(response, 413)["message"] == "the body is too long: shorten the query"


def test_no_such_index(client):
    for path in ("/search?q=wing&index=nope", "/documents/1?index=nope", "/indexes/nope"):
        error = failure_of(client.get(path), 404)
        assert error["code"] == "index_not_found"
        assert "nope" in error["message"]
    assert "tiny" in failure_of(client.get("/search?q=wing&index=nope"), 404)["message"]


def test_no_such_document(client):
    for path in ("/documents/nope", "/documents/%00", "/documents/..%2F..%2Fetc", "/documents/"):
        assert failure_of(client.get(path), 404)["code"] == "document_not_found"


def test_no_such_path(client):
    for path in ("/nope", "/search/", "/indexes/", "/indexes/a/b"):
        assert failure_of(client.get(path), 404)["code"] == "not_found"


def test_wrong_method_names_the_right_one(client):
    response = client.delete("/health")
    error = failure_of(response, 405)
    assert error["code"] == "method_not_allowed"
    assert "GET" in error["message"]
    assert "GET" in response.headers["allow"]


def test_several_indexes_and_no_choice(client_of, home):
    error = failure_of(client_of(home).get("/search?q=wing"), 422)
    assert error["field"] == "index"
    assert "first, second" in error["message"]


def test_slip_of_the_service_tells_no_secrets(client, monkeypatch, caplog):
    def search(*_, **__):
        raise RuntimeError("secret")

    monkeypatch.setattr(Index, "search", search)
    response = client.get("/search?q=wing", headers={"X-Request-ID": "mine"})
    error = failure_of(response, 500)
    assert error["code"] == "internal"
    assert "mine" in error["message"]
    assert response.headers["x-request-id"] == "mine"
    assert "secret" not in response.text
    assert "Traceback" not in response.text
    assert "mine" in caplog.text
    assert "secret" in caplog.text


def test_request_id_is_echoed_or_made(client):
    for path, status in (("/health", 200), ("/nope", 404), ("/search", 422)):
        response = client.get(path, headers={"X-Request-ID": "abc-1"})
        assert (response.status_code, response.headers["x-request-id"]) == (status, "abc-1")
    made = [client.get("/health").headers["x-request-id"] for _ in range(2)]
    assert made[0] != made[1]
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in made)


@pytest.mark.parametrize("name", ["a b", "x" * 129, "é", ""])
def test_request_id_that_is_not_plain_is_replaced(client, name):
    response = client.get("/health", headers={"X-Request-ID": name.encode("latin-1")})
    assert re.fullmatch("[0-9a-f]{32}", response.headers["x-request-id"])


numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([0, 1, 10, 0.5, 10_000]))
values = st.one_of(st.text(max_size=30), numbers, st.sampled_from(["klsa", "bm25", "lsi", "tiny"]))
names = st.sampled_from(sorted(SearchRequest.model_fields))
questions = st.dictionaries(st.one_of(names, st.text(max_size=5)), values, max_size=7)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), values),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
bodies = st.one_of(
    st.dictionaries(st.one_of(names, st.text(max_size=5)), json_values, max_size=7), json_values
)
fuzz = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def check(response):
    assert response.status_code in (200, 400, 404, 422), response.text
    json.loads(response.text, parse_constant=pytest.fail)
    if response.status_code != 200:
        failure_of(response, response.status_code)


@fuzz
@given(asked=questions)
def test_any_parameters_get_a_proper_answer(client, asked):
    check(client.get("/search", params={"q": "wing", **asked}))


@fuzz
@given(body=bodies)
def test_any_json_gets_a_proper_answer(client, body):
    if isinstance(body, dict):
        body = {"q": "wing", **body}
    check(
        client.post(
            "/search", content=json.dumps(body), headers={"Content-Type": "application/json"}
        )
    )


@fuzz
@given(name=st.text(max_size=20))
def test_any_document_id_gets_a_proper_answer(client, name):
    check(client.get("/documents/" + "".join(f"%{byte:02X}" for byte in name.encode())))


def test_home_without_an_index(client_of, tmp_path):
    client = client_of(tmp_path)
    for path in ("/search?q=wing", "/documents/1"):
        error = failure_of(client.get(path), 503)
        assert "klsa-index build" in error["message"]
    assert client.get("/indexes").json() == {"indexes": []}
    health = client.get("/health")
    assert (health.status_code, health.json()["ok"]) == (503, False)


def test_damaged_index_does_not_keep_the_others_from_being_served(client_of, home):
    (home / "first" / "000001" / "manifest.json").write_text("{")
    client = client_of(home)
    first, second = client.get("/indexes").json()["indexes"]
    assert (first["ok"], first["generation"], first["documents"]) == (False, None, None)
    assert "manifest.json" in first["error"]
    assert second["ok"] is True
    assert client.get("/health").status_code == 200
    assert client.get("/indexes/first").json()["settings"] is None
    assert failure_of(client.get("/search?q=wing&index=first"), 503)["field"] == "index"
    assert client.get("/search?q=wing&index=second").status_code == 200


def test_only_index_is_damaged(client_of, tmp_path):
    build_tiny(tmp_path)
    (tmp_path / "tiny" / "CURRENT").write_text("000009\n")
    client = client_of(tmp_path)
    assert client.get("/health").status_code == 503
    assert failure_of(client.get("/search?q=wing"), 503)["code"] == "index_unusable"
