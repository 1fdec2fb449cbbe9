"""Tenant tokens: how they are created, what they are valid for, and when they end."""

from datetime import UTC, datetime, timedelta

import jwt
import pytest

from klsa_search.service.admission import Writes
from klsa_search.service.keys import add_key, read_keys, revoke_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.middleware.clients import Rates
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.signing import Signer
from tests.service.conftest import bearing, failure_of
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

OLD = "year = 1950"  # filter that only the document `a/b c?%` of each index matches


@pytest.fixture
def client(home, file):
    with OpenIndexes(home, interval=0) as open_indexes:
        app = app_of_indexes(open_indexes, writes=Writes(), keys=Keys(file, {"search", "write"}))
        yield AppClient(app, raise_server_exceptions=False)


def create(client, key, filters, **body):
    return client.post("/tenant-tokens", json={"filters": filters, **body}, headers=bearing(key))


def token_of(client, file, filters, name="shop", **options):
    key = add_key(file, name, ["search"], **options)
    answer = create(client, key, filters)
    assert answer.status_code == 201, answer.text
    return answer.json()["token"]


def found(client, token, **body):
    answer = client.post("/search", json={"q": "wing", **body}, headers=bearing(token))
    return [hit["id"] for hit in answer.json()["hits"]] if answer.is_success else answer.status_code


@pytest.mark.parametrize("filter_", [OLD, {"field": "year", "=": 1950}])
def test_a_token_finds_only_the_documents_of_its_filter(client, file, filter_):
    token = token_of(client, file, {"first": filter_})
    assert found(client, token) == ["a/b c?%"]
    assert found(client, token, filter="NOT year = 1950") == []
    assert found(client, token, index="second") == 403
    sent = client.get("/search?q=wing", headers={"X-API-Key": token}).json()
    assert sent["total"] == 1
    assert client.get("/documents/1", headers=bearing(token)).status_code == 404


def test_the_answer_says_when_the_token_expires_and_is_not_cached(client, file):
    key = add_key(file, "shop", ["search"])
    answer = create(client, key, {"first": OLD}, expires_in=60)
    left = datetime.fromisoformat(answer.json()["expires"]) - datetime.now(UTC)
    assert timedelta(seconds=50) < left <= timedelta(seconds=60)
    assert answer.headers["cache-control"] == "no-store"
    for seconds in (0, 86_401):
        failure_of(create(client, key, {"first": OLD}, expires_in=seconds), 422)


def test_a_token_ends_with_its_key(client, file):
    token = token_of(client, file, {"first": OLD})
    revoke_key(file, "shop")
    assert found(client, token) == 401
    add_key(file, "shop", ["search"])  # of the same name
    assert found(client, token) == 401


def test_a_token_ends_when_it_expires(client, file, home):
    add_key(file, "shop", ["search"])
    (key,) = read_keys(file)
    claims = {"key": key.id, "filters": {"first": OLD}}
    late = Signer(home).sign("tenant", claims, datetime.now(UTC) - timedelta(seconds=1))
    answer = client.get("/search?q=wing", headers=bearing(late))
    assert "expired" in failure_of(answer, 401)["message"]
    for use in ("tenant", "session"):
        token = Signer(home).sign(use, claims, datetime.now(UTC) + timedelta(hours=1))
        assert found(client, token) == (["a/b c?%"] if use == "tenant" else 401)


def test_a_changed_token_is_refused(client, file, home):
    token = token_of(client, file, {"first": OLD})
    claims = jwt.decode(token, options={"verify_signature": False})
    claims["filters"] = {"first": "year > 0"}
    secret = (home / ".secret").read_text().strip()
    assert found(client, jwt.encode(claims, "x" * 64)) == 401
    assert found(client, jwt.encode(claims, None, algorithm="none")) == 401
    for broken in ({"filters": 1}, {"filters": {"first": 1}}, {"key": 1}, {"filters": None}):
        assert found(client, jwt.encode(claims | broken, secret)) == 401
    del claims["filters"]
    assert found(client, jwt.encode(claims, secret)) == 401


def test_a_token_allows_no_more_than_searches(client, file):
    key = add_key(file, "all", ["search", "write", "metrics"])
    token = create(client, key, {"first": OLD}).json()["token"]
    headers = bearing(token)
    assert create(client, token, {"first": OLD}).status_code == 403
    page = {"X-Klsa-Page": "1", "Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/session", headers=headers | page).status_code == 403
    assert client.get("/metrics", headers=headers).status_code == 403
    lamp = {"id": "lamp", "text": "A lamp."}
    assert (
        client.put("/indexes/first/documents/lamp", json=lamp, headers=headers).status_code == 403
    )
    error = failure_of(client.get("/indexes", headers=headers), 403)
    assert error["code"] == "insufficient_scope"
    assert "it can search" in error["message"]
    assert client.get("/health", headers=headers).json()["indexes"] == []


def test_a_token_has_no_more_indexes_than_its_key(client, file):
    key = add_key(file, "one", ["search"], ["first"])
    failure_of(create(client, key, {"second": OLD}), 403)
    token = create(client, key, {"first": OLD}).json()["token"]
    assert found(client, token, index="first") == ["a/b c?%"]
    answer = client.post("/indexes/second/search", json={"q": "wing"}, headers=bearing(token))
    assert "one" not in failure_of(answer, 403)["message"]  # the name of the key


def test_only_a_key_that_can_search_creates_tokens(client, file):
    failure_of(create(client, "none", {"first": OLD}), 422)  # no key is needed yet
    key = add_key(file, "writer", ["write"])
    failure_of(create(client, key, {"first": OLD}), 403)
    failure_of(client.post("/tenant-tokens", json={"filters": {"first": OLD}}), 401)


def test_an_invalid_filter_is_refused_when_the_token_is_created(client, file):
    key = add_key(file, "shop", ["search"])
    long = "year IN [" + ", ".join(map(str, range(10_000, 10_900))) + "]"
    within = {"or": [{"field": "year", "=": 1950}, {"and": [{"and": []}]}]}
    unfit = [
        None, "", "  ", "year =", {"or": 1}, "colour = red", {"and": []}, {"not": {"or": []}},
        "year NOT IN []", within,
    ]  # fmt: skip
    for filters in ({}, {"first": long, "second": OLD}, *({"first": each} for each in unfit)):
        error = failure_of(create(client, key, filters), 422)
        assert error["field"].startswith("filters"), filters
    failure_of(create(client, key, {"none": OLD}), 404)


def test_a_filter_for_an_alias_and_one_for_its_index_both_apply(client, file):
    key = add_key(file, "all", ["search", "write"])
    for name in ("live", "other"):
        put = client.put(f"/aliases/{name}", json={"index": "first"}, headers=bearing(key))
        assert put.is_success
    token = create(client, key, {"live": OLD}).json()["token"]
    assert found(client, token, index="live") == ["a/b c?%"]
    assert found(client, token, index="first") == 403
    assert found(client, token, index="other") == 403
    both = create(client, key, {"live": OLD, "first": "NOT year = 1950"}).json()["token"]
    assert found(client, both, index="live") == []
    assert found(client, both, index="first") == ["1"]
    assert found(client, both, index="other") == ["1"]
    client.put("/aliases/live", json={"index": "second"}, headers=bearing(key))
    assert found(client, token, index="live") == ["a/b c?%"]  # of the other index


def test_later_writes_are_filtered_too(client, file):
    token = token_of(client, file, {"first": OLD})
    key = bearing(add_key(file, "writer", ["write"]))
    assert found(client, token) == ["a/b c?%"]
    for id_, year in (("new", 1950), ("hidden", 1951)):
        document = {"id": id_, "text": "A wing.", "year": year}
        client.put(f"/indexes/first/documents/{id_}", json=document, headers=key)
    assert sorted(found(client, token)) == ["a/b c?%", "new"]
    client.patch("/indexes/first/documents/new", json={"year": 1960}, headers=key)
    assert found(client, token) == ["a/b c?%"]


def test_the_clients_of_a_key_have_a_rate_limit_each(home, file):
    with OpenIndexes(home, interval=0) as open_indexes:
        app = app_of_indexes(open_indexes, keys=Keys(file, ()), rates=Rates(1, lambda: 0.0))
        key = add_key(file, "shop", ["search"])
        one, two = (AppClient(app, client=(f"10.0.0.{n}", 1)) for n in (1, 2))
        token = create(one, key, {"first": OLD}).json()["token"]
        statuses = [
            client.get("/search?q=wing", headers=bearing(token)).status_code
            for client in (one, two, one)
        ]
        assert statuses == [200, 200, 429]
