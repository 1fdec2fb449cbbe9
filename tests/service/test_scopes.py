"""Scopes: what each route declares, and one request for each combination of scopes.

That a route is checked at all follows from its declaration, which `Route` enforces.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from klsa_search.service.admission import Admission, Writes
from klsa_search.service.application import ROUTERS
from klsa_search.service.background import PeriodicTask
from klsa_search.service.dependencies import Route
from klsa_search.service.job_ledger import JobHistory
from klsa_search.service.keys import add_key, revoke_key
from klsa_search.service.middleware.auth import Keys, needs_key
from klsa_search.service.middleware.bodies import RequestBody
from klsa_search.service.open_indexes import OpenIndexes
from tests.support.application import app_of_indexes
from tests.support.client import AppClient
from tests.support.endpoints import ENDPOINTS
from tools.scopes_page import parts, table

ROUTES = [route for router in ROUTERS for route in router.routes]
BY_NAME = {
    f"{method} {route.path.replace(':whole', '')}": route
    for route in ROUTES
    for method in route.methods
    if route.include_in_schema  # not an API of others
}
SCOPES = ("search", "write", "metrics", "users")
EXAMPLES = {BY_NAME[str(endpoint)].scopes: endpoint for endpoint in ENDPOINTS}
"""An endpoint for each combination of scopes that a route declares."""


class NoPlaces(Admission):
    """Admits nothing."""

    def check(self):
        raise self._refusal("full", "it admits nothing")


class NoWrites(NoPlaces, Writes):
    """Admits no write."""


@pytest.fixture(scope="module")
def home(two_home, tmp_path_factory):
    """Keys of each scope, for all indexes and for one; one that was revoked; and a service."""
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    tokens = {scope: add_key(file, scope, [scope]) for scope in SCOPES}
    tokens["all"] = add_key(file, "all", list(SCOPES))
    tokens["one"] = add_key(file, "one", list(SCOPES), ["first"])
    tokens["revoked"] = add_key(file, "revoked", list(SCOPES))
    revoke_key(file, "revoked")
    with OpenIndexes(two_home, interval=0) as open_indexes:
        # No request gets further than its pool: only who may ask is of interest.
        admission, heavy, writes = NoPlaces(running=1), NoPlaces(running=1), NoWrites()
        writes.slot = nullcontext
        jobs = SimpleNamespace(history=JobHistory, watch=PeriodicTask("refits", dict, 1))
        app = app_of_indexes(
            open_indexes,
            admission=admission,
            heavy=heavy,
            writes=writes,
            keys=Keys(file, ()),
            jobs=jobs,
        )
        app.user_middleware[0].kwargs["admission"] = Admission()  # the guard lets all pass
        yield AppClient(app, raise_server_exceptions=False), tokens


def ask(home, endpoint, key, index="first"):
    client, tokens = home
    asked = endpoint.request(index)
    headers = {"Authorization": f"Bearer {tokens[key]}"} if key else {}
    return client.request(**asked | {"headers": asked.get("headers", {}) | headers})


def is_too_narrow(answer):
    return "insufficient_scope" in answer.headers.get("www-authenticate", "")


def test_the_table_of_endpoints_has_every_route():
    assert set(map(str, ENDPOINTS)) == BY_NAME.keys(), (
        "add an example to REQUESTS of tools/openapi_examples.py, or remove one"
    )


@pytest.mark.parametrize(("scopes", "endpoint"), EXAMPLES.items(), ids=str)
def test_a_route_admits_keys_of_the_scopes_that_it_declares(home, scopes, endpoint):
    for key in (None, "revoked"):
        assert (ask(home, endpoint, key).status_code == 401) == bool(scopes)
    for scope in SCOPES:
        refused = is_too_narrow(ask(home, endpoint, scope))
        assert refused == bool(scopes and scope not in scopes), scope
    assert not is_too_narrow(ask(home, endpoint, "all"))


def test_a_path_needs_a_key_if_its_routes_declare_scopes():
    for endpoint in ENDPOINTS:
        assert needs_key(endpoint.path) == bool(BY_NAME[str(endpoint)].scopes), endpoint


def test_a_key_of_one_index_reaches_no_other_by_any_route(home):
    """No declaration says so: each route names its index to the service."""
    for endpoint in ENDPOINTS:
        if not endpoint.names_index and "{name}" not in endpoint.path:
            continue
        answer = ask(home, endpoint, "one", index="second")
        assert is_too_narrow(answer) or answer.status_code == 404, (endpoint, answer.text)
        # Which a key of one index never changes.
        if not endpoint.path.startswith(("/aliases/", "/users/")):
            assert not is_too_narrow(ask(home, endpoint, "one")), endpoint


def test_every_route_declares_its_scopes():
    assert all(isinstance(route, Route) for route in ROUTES)


@pytest.fixture
def unread(monkeypatch):
    async def read(_):
        raise AssertionError("the body was read")

    monkeypatch.setattr(RequestBody, "__call__", read)


@pytest.mark.usefixtures("unread")
def test_no_body_is_read_without_the_scope(home):
    """Not even one that is not JSON, or of an unknown encoding, is looked at."""
    client, tokens = home
    for endpoint in ENDPOINTS:
        scopes = BY_NAME[str(endpoint)].scopes
        if endpoint.method in ("POST", "PUT", "PATCH") and scopes:
            asked = endpoint.request("first") | {"content": b"{"}
            for lacking in {*SCOPES} - {*scopes}:
                headers = {"Authorization": f"Bearer {tokens[lacking]}"}
                headers |= {"Content-Type": "application/json", "Content-Encoding": "br"}
                answer = client.request(**asked | {"headers": headers})
                assert is_too_narrow(answer), (endpoint, lacking, answer.text)


@pytest.mark.usefixtures("unread")
def test_no_large_body_is_read_for_an_index_that_the_key_is_not_for(home):
    large = [each for each in ENDPOINTS if BY_NAME[str(each)].body_limit.size not in (2**20, 2**22)]
    assert len(large) > 5
    for endpoint in large:
        assert is_too_narrow(ask(home, endpoint, "one", index="second")), endpoint


def test_the_table_of_the_guide_is_that_of_the_routes():
    assert parts()[1] == table(), "write it by: python -m tools.scopes_page"
