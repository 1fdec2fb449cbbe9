"""Scopes: every route, as the application has it, against every kind of key."""

import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from klsa_search.service import Catalog, create_app
from klsa_search.service.admission import Admission
from klsa_search.service.app import ROUTERS
from klsa_search.service.middleware.access import Keys, needs_key
from klsa_search.service.middleware.door import Door
from klsa_search.service.middleware.keys import add_key, revoke_key
from klsa_search.service.serving import Requires
from klsa_search.service.watching import Watch
from klsa_search.service.writing import Writes
from tools.scopes_page import parts, scopes_of, table

ROUTES = [route for router in ROUTERS for route in router.routes]
OPERATIONS = [(method, route) for route in ROUTES for method in sorted(route.methods)]
NAMES = [f"{method} {route.path}" for method, route in OPERATIONS]
BODIES = {
    "/aliases/{name}": {"index": "first"},
    "/search": {"q": "wing", "index": "first"},
    "/search/batch": {"searches": [{"q": "wing", "index": "first"}]},
    "/indexes/{name}/search": {"q": "wing"},
    "/indexes/{name}/analyze": {"text": "wing"},
    "/indexes/{name}/map": {"ids": ["1"]},
    "/indexes/{name}/classify": {"labels": {"1": "a", "3": "b"}},
    "/indexes/{name}/evaluate": {"queries": {"1": "wing"}, "judgements": {"1": {"1": 1}}},
    "/indexes/{name}/judgements": {"q": "wing", "id": "1", "grade": 1},
    "/indexes/{name}/synonyms": {"synonyms": {"wing": ["foil"]}},
}
QUERIES = {
    "/search": "?q=wing&index=first",
    "/documents/{id:whole}": "?index=first",
    "/indexes/{name}/explain/{id:whole}": "?q=wing",
    "/indexes/{name}/judgements": "?q=wing",
    "/indexes/{name}/suggest": "?q=w",
    "/suggest": "?q=w&index=first",
    "/v1/{name}/search": "?query=wing",
}
SCOPES = ("search", "write", "metrics")


@pytest.fixture(scope="module")
def home(two_home, tmp_path_factory):
    """Keys of each scope, for all indexes and for one; one that was revoked; and a service."""
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    tokens = {scope: add_key(file, scope, [scope]) for scope in SCOPES}
    tokens["all"] = add_key(file, "all", list(SCOPES))
    tokens["one"] = add_key(file, "one", list(SCOPES), ["first"])
    tokens["revoked"] = add_key(file, "revoked", list(SCOPES))
    revoke_key(file, "revoked")
    with Catalog(two_home, interval=0) as catalog:
        # No request gets further than its pool: only who may ask is of interest.
        pools = [Admission(running=1), Admission(running=1), Writes()]
        for pool in pools:
            pool.refuse()
        admission, heavy, writes = pools
        writes.place = nullcontext
        refits = SimpleNamespace(last=dict, watch=Watch("refits", dict, 1))
        app = create_app(
            catalog,
            admission=admission,
            heavy=heavy,
            writes=writes,
            keys=Keys(file, ()),
            refits=refits,
        )
        app.user_middleware[:] = [each for each in app.user_middleware if each.cls is not Door]
        yield TestClient(app, raise_server_exceptions=False), tokens


def ask(home, method, route, key, index="first"):
    client, tokens = home
    path = re.sub(r"\{name\}", index, route.path)
    path = re.sub(r"\{[^}]*\}", "1", path)
    headers = {"Authorization": f"Bearer {tokens[key]}"} if key else {}
    if method in ("GET", "DELETE"):
        query = QUERIES.get(route.path, "").replace("first", index)
        return client.request(method, path + query, headers=headers)
    return client.request(method, path, headers=headers, json=BODIES.get(route.path, {}))


def is_too_narrow(answer):
    return "insufficient_scope" in answer.headers.get("www-authenticate", "")


@pytest.mark.parametrize(("method", "route"), OPERATIONS, ids=NAMES)
def test_a_route_is_for_keys_of_the_scopes_that_it_declares(home, method, route):
    scopes = scopes_of(route)
    for scope in SCOPES:
        refused = is_too_narrow(ask(home, method, route, scope))
        assert refused == bool(scopes and scope not in scopes), scope
    assert not is_too_narrow(ask(home, method, route, "all"))


@pytest.mark.parametrize(("method", "route"), OPERATIONS, ids=NAMES)
def test_a_route_needs_a_key_that_counts_unless_it_is_open(home, method, route):
    is_closed = bool(scopes_of(route))
    assert needs_key(route.path) == is_closed
    for key in (None, "revoked"):
        assert (ask(home, method, route, key).status_code == 401) == is_closed


OF_ONE_INDEX = [each for each in OPERATIONS if "{name}" in each[1].path]


@pytest.mark.parametrize(
    ("method", "route"),
    OF_ONE_INDEX,
    ids=[f"{method} {route.path}" for method, route in OF_ONE_INDEX],
)
def test_a_key_of_one_index_reaches_no_other_by_any_route(home, method, route):
    answer = ask(home, method, route, "one", index="second")
    assert is_too_narrow(answer) or answer.status_code == 404, answer.text
    answer = ask(home, method, route, "one")
    if "/aliases/" not in route.path:  # which a key of one index never changes
        assert not is_too_narrow(answer)


def test_every_route_declares_its_scopes_once():
    assert all(isinstance(route, APIRoute) for route in ROUTES)
    for route in ROUTES:
        declared = [d for d in route.dependencies if isinstance(d.dependency, Requires)]
        assert len(declared) == 1, route.path


def test_an_undeclared_route_would_be_noticed():
    with pytest.raises(AssertionError, match="/indexes"):
        scopes_of(APIRoute("/indexes", lambda: None))


def test_the_table_of_the_guide_is_that_of_the_routes():
    assert parts()[1] == table(), "write it by: python -m tools.scopes_page"
