"""Rate limits: a token bucket for each client."""

import pytest

from klsa_search.errors import RateExceeded
from klsa_search.service.keys import add_key
from klsa_search.service.middleware import clients
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.middleware.clients import Rates
from tests.service.conftest import failure_of
from tests.support.application import app_of_indexes
from tests.support.client import AppClient


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def taken(limit, client, count=20):
    """How many of so many at once are let in."""
    let_in = 0
    for _ in range(count):
        try:
            limit.take(client)
        except RateExceeded:
            continue
        let_in += 1
    return let_in


def test_a_second_of_requests_may_come_at_once_and_more_as_time_goes(clock):
    limit = Rates(4, clock)
    assert taken(limit, "one") == 4
    clock.now += 0.5
    assert taken(limit, "one") == 2
    clock.now += 100
    assert taken(limit, "one") == 4
    assert limit.refused == 60 - 10


def test_a_refusal_says_when_to_retry(clock):
    limit = Rates(0.1, clock)
    assert taken(limit, "one", 1) == 1
    clock.now += 2.5
    with pytest.raises(RateExceeded) as refused:
        limit.take("one")
    assert refused.value.after == 8
    clock.now += 7.5
    limit.take("one")


def test_each_client_has_a_bucket_and_the_least_recent_is_dropped(clock, monkeypatch):
    monkeypatch.setattr(clients, "MAX_CLIENTS", 2)
    limit = Rates(1, clock)
    assert [taken(limit, name) for name in ("one", "two", "one", "three")] == [1, 1, 0, 1]
    assert taken(limit, "two") == 1, "it is forgotten, and begins again"


@pytest.fixture
def client(shared_catalog, tmp_path, clock):
    keys = Keys(tmp_path / "keys.json", {"search", "metrics"})
    app = app_of_indexes(shared_catalog, keys=keys, rates=Rates(2, clock))
    return AppClient(app, raise_server_exceptions=False)


def test_each_key_has_its_own_rate(client, tmp_path, clock):
    headers = [
        {"Authorization": f"Bearer {add_key(tmp_path / 'keys.json', name, ['search'])}"}
        for name in ("one", "two")
    ]
    for one in headers:
        for _ in range(2):
            assert client.get("/search?q=wing&index=first", headers=one).status_code == 200
        refused = client.get("/search?q=wing&index=first", headers=one)
        assert failure_of(refused, 429)["code"] == "rate_exceeded"
        assert refused.headers["retry-after"] == "1"
        assert client.get("/health", headers=one).status_code == 200
    clock.now += 1
    assert client.get("/search?q=wing&index=first", headers=headers[0]).status_code == 200


def test_without_keys_each_address_has_a_bucket(client):
    for _ in range(2):
        assert client.get("/search?q=wing&index=first").status_code == 200
    failure_of(client.get("/search?q=wing&index=first"), 429)
    assert "klsa_rate_refusals_total 1.0" in client.get("/metrics").text


def test_requests_with_bad_keys_are_limited_by_their_address(client, tmp_path, clock):
    good = {"Authorization": f"Bearer {add_key(tmp_path / 'keys.json', 'one', ['search'])}"}
    bad = {"Authorization": "Bearer nonsense"}
    statuses = [
        client.get("/search?q=wing&index=first", headers=headers).status_code
        for headers in (bad, {}, bad, {}, good)
    ]
    assert statuses == [401, 401, 429, 429, 200]
    assert client.get("/health", headers=bad).status_code == 200
    clock.now += 1
    failure_of(client.get("/search?q=wing&index=first", headers=bad), 401)
