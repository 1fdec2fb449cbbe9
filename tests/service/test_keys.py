"""API keys: authentication, scopes, and what responses do not disclose."""

import stat
from base64 import b64encode
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from klsa_search.errors import SettingsError
from klsa_search.service.admission import Writes
from klsa_search.service.analytics.recorder import Recorder
from klsa_search.service.application import create_app
from klsa_search.service.keys import add_key, read_keys, revoke_key
from klsa_search.service.middleware import auth
from klsa_search.service.middleware.auth import Keys, needs_key
from klsa_search.service.middleware.guard import Guard
from klsa_search.service.settings import ServiceSettings
from tests.service.conftest import bearing, failure_of
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

SEARCH = "/search?q=wing&index=first"
LAMP = {"id": "lamp", "text": "A lamp."}


@pytest.fixture
def client(shared_catalog, file):
    """A service of two indexes that reads the file of keys."""
    keys = Keys(file, {"search", "write"})
    recorder = Recorder(file.parent, days=90, min_searches=1)
    app = app_of_indexes(shared_catalog, writes=Writes(), keys=keys, recorder=recorder)
    yield AppClient(app, raise_server_exceptions=False)
    recorder.close()


def test_a_read_only_service_does_not_ask_for_a_key_that_would_not_help(shared_catalog, file):
    client = AppClient(app_of_indexes(shared_catalog, keys=Keys(file, {"search"})))
    for method, path in (
        ("PUT", "/indexes/first/documents/lamp"),
        ("PUT", "/aliases/other"),
        ("POST", "/indexes/first/refit"),
        ("GET", "/jobs"),
    ):
        message = failure_of(client.request(method, path, json=LAMP), 403)["message"]
        assert "the service is read-only" in message
        assert "klsa-keys" not in message


def basic(token, user="any"):
    return {"Authorization": "Basic " + b64encode(f"{user}:{token}".encode()).decode()}


def put(client, token, index="first"):
    return client.put(f"/indexes/{index}/documents/lamp", json=LAMP, headers=bearing(token))


def test_without_a_file_no_key_is_needed(client):
    assert client.get(SEARCH).status_code == 200
    assert client.put("/indexes/first/documents/lamp", json=LAMP).status_code == 200


def test_a_key_counts_from_the_moment_it_is_made_to_that_of_its_revoking(client, file):
    token = add_key(file, "web", ["search"])
    assert client.get(SEARCH).status_code == 401
    assert client.get(SEARCH, headers=bearing(token)).status_code == 200
    assert client.get(SEARCH, headers={"X-API-Key": token}).status_code == 200
    revoke_key(file, "web")
    assert client.get(SEARCH, headers=bearing(token)).status_code == 401
    file.unlink()  # which would be a way to open the service for all
    assert client.get(SEARCH).status_code == 401


def test_a_request_without_a_key_is_told_how_to_send_one(client, file):
    add_key(file, "web", ["search"])
    answer = client.get(SEARCH)
    error = failure_of(answer, 401)
    assert error["code"] == "invalid_api_key"
    assert "Authorization: Bearer" in error["message"]
    assert answer.headers["www-authenticate"] == 'Bearer realm="klsa-search"'


def test_a_key_is_the_password_of_any_user(client, file):
    token = add_key(file, "web", ["search"])
    for user in ("any", "", "Zoë"):
        assert client.get(SEARCH, headers=basic(token, user)).status_code == 200
    for wrong in ("", "nonsense", f"x:{token}", token[:-1]):
        assert failure_of(client.get(SEARCH, headers=basic(wrong)), 401)
    for wrong in (f"Basic {token}", "Basic", "Basic !", b"Basic \xff", "Basic /w=="):
        assert failure_of(client.get(SEARCH, headers={"Authorization": wrong}), 401)


def test_a_proxy_may_use_basic_for_itself(client, file):
    headers = basic("secret of the proxy") | {"X-API-Key": add_key(file, "web", ["search"])}
    assert client.get(SEARCH, headers=headers).status_code == 200


ELSEWHERE = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://testserver:9000"},
    {"Origin": "http://testserver:9000"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://["},
]
"""What browsers send with requests of other origins, the last two of none."""


def test_basic_credentials_that_a_browser_keeps_are_not_for_other_origins(client, file):
    token = add_key(file, "web", ["search"])
    for headers in ELSEWHERE:
        assert client.get(SEARCH, headers=headers | basic(token)).status_code == 401
        assert client.get(SEARCH, headers=headers | bearing(token)).status_code == 200
    for site in ("same-origin", "none"):
        headers = {"Sec-Fetch-Site": site, "Origin": "http://testserver"}
        assert client.get(SEARCH, headers=headers | basic(token)).status_code == 200


def test_a_browser_asks_for_a_key_only_where_it_opens_a_page(client, file):
    add_key(file, "web", ["search"])
    for accept, asks in (
        ("text/html,*/*;q=0.8", True),
        ("*/*", False),
        ("application/json", False),
    ):
        answer = client.get(SEARCH, headers={"Accept": accept})
        assert ("Basic realm" in answer.headers["www-authenticate"]) == asks
        assert 'Bearer realm="klsa-search"' in answer.headers["www-authenticate"]


def wrong_keys(token):
    yield "nonsense"
    yield token[:-1]
    yield token + "a"
    yield token[:14] + ("b" if token[14] == "a" else "a") + token[15:]
    yield "klsa_00000000_" + token[14:]
    yield token.upper()
    yield ""


def test_wrong_keys_are_refused_alike(client, file):
    token = add_key(file, "web", ["search"])
    told = set()
    for wrong in wrong_keys(token):
        answer = client.get(SEARCH, headers=bearing(wrong))
        told.add(failure_of(answer, 401)["message"])
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        assert client.get(SEARCH, headers={"X-API-Key": wrong}).status_code == 401
    both = {"Authorization": "Bearer wrong", "X-API-Key": token}
    assert client.get(SEARCH, headers=both).status_code == 401
    for header in (token, f"Basic {token}", "Bearer", b"Bearer \xff\xfe"):
        assert client.get(SEARCH, headers={"Authorization": header}).status_code == 401
    assert len(told) == 1
    assert client.get(SEARCH, headers={"Authorization": f"bearer  {token}"}).status_code == 200


def test_an_expired_key_is_refused(client, file):
    token = add_key(file, "old", ["search"], lifetime=timedelta(seconds=-1))
    assert "expired" in failure_of(client.get(SEARCH, headers=bearing(token)), 401)["message"]


def test_a_key_does_what_its_scopes_say(client, file):
    reader, writer = add_key(file, "reader", ["search"]), add_key(file, "writer", ["write"])
    answer = put(client, reader)
    assert failure_of(answer, 403)["code"] == "insufficient_scope"
    assert 'error="insufficient_scope", scope="write"' in answer.headers["www-authenticate"]
    assert (
        failure_of(client.get(SEARCH, headers=bearing(writer)), 403)["code"] == "insufficient_scope"
    )
    assert put(client, writer).status_code == 200


def test_a_key_learns_nothing_outside_of_its_scope(client, file):
    headers = bearing(add_key(file, "one", ["search"], ["first", "gone"]))
    assert [each["name"] for each in client.get("/indexes", headers=headers).json()["indexes"]] == [
        "first"
    ]
    assert client.get("/indexes/second", headers=headers).status_code == 404
    told = [
        client.get("/search?q=wing", headers=headers),  # the only one it is for
        client.get("/search?q=wing&index=gone", headers=headers),
        client.get("/health", headers=headers),
        client.get("/health"),
        client.get("/health", headers=bearing("nonsense")),
    ]
    assert [each.status_code for each in told] == [200, 404, 200, 200, 200]
    assert not any("second" in each.text for each in told)
    assert all("first" not in each.text for each in told[3:])


def test_several_indexes_have_to_be_chosen_from(client, file):
    headers = bearing(add_key(file, "two", ["search"], ["first", "second"]))
    error = failure_of(client.get("/search?q=wing", headers=headers), 422)
    assert (error["field"], "first, second" in error["message"]) == ("index", True)


def test_every_route_needs_a_key_unless_it_reveals_nothing(client, file, schema):
    add_key(file, "web", ["search"])
    for path in ("/", "/health", "/health/live", "/health/ready", "/docs"):
        assert client.get(path).status_code == 200
    assert not needs_key("/openapi.json")
    closed = {
        path for path, ways in schema["paths"].items() if "security" in next(iter(ways.values()))
    }
    assert closed == {path for path in schema["paths"] if needs_key(path)}
    assert "/indexes" in closed  # one of them is asked: the guard knows their paths alone
    for path in ("/indexes", "/nothing", "/healthy", "/health%2f..%2findexes"):
        assert client.get(path).status_code == 401
    assert client.get("/static-offline-docs%2f..%2findexes").status_code == 404


def test_an_unreadable_file_of_keys_refuses_all(client, file, caplog):
    token = add_key(file, "web", ["search"])
    assert client.get(SEARCH, headers=bearing(token)).status_code == 200
    kept = file.read_text()
    file.write_text(kept[:-10])
    for _ in range(2):
        error = failure_of(client.get(SEARCH, headers=bearing(token)), 500)
        assert str(file) not in error["message"]
    assert len(caplog.records) == 1
    assert str(file) in caplog.text
    file.write_text(kept)
    assert client.get(SEARCH, headers=bearing(token)).status_code == 200
    with pytest.raises(SettingsError, match="correct the file"):
        file.write_text("{}}")
        Keys(file, ())


def test_the_file_holds_no_key_and_is_its_owners(file):
    tokens = [add_key(file, name, ["search"]) for name in ("one", "two")]
    text = file.read_text()
    assert not any(token[14:] in text for token in tokens)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [key.name for key in read_keys(file)] == ["one", "two"]


@pytest.mark.parametrize("name", ["one", "", "a b", "a\n", "x" * 65, '"', "-a"])
def test_names_are_plain_and_taken_once(file, name):
    add_key(file, "one", ["search"])
    with pytest.raises(SettingsError) as wrong:
        add_key(file, name, ["search"])
    assert wrong.value.field == "name"
    assert [key.name for key in read_keys(file)] == ["one"]


def test_only_what_is_there_can_be_revoked(file):
    with pytest.raises(SettingsError, match="has no key 'web'"):
        revoke_key(file, "web")


def test_an_application_without_its_middleware_refuses_all(client, file):
    """As if a middleware before it had answered in its place."""
    client.app.user_middleware[:] = [
        each for each in client.app.user_middleware if each.cls is not Guard
    ]
    assert client.get(SEARCH).status_code == 500


def test_changes_by_klsa_keys_count_at_once(home, monkeypatch):
    monkeypatch.setattr(auth, "CHECK_SECONDS", 3600.0)
    file = home / ".keys.json"
    key = add_key(file, "first", ["search"])
    with TestClient(create_app(ServiceSettings(home=home)), base_url="http://localhost") as client:
        for number in range(5):
            other = add_key(file, f"key{number}", ["search"])
            for token in (key, other):
                headers = {"X-API-Key": token}
                assert client.get("/search?q=wing&index=first", headers=headers).is_success
            revoke_key(file, f"key{number}")
            answer = client.get("/search?q=wing&index=first", headers={"X-API-Key": other})
            assert answer.status_code == 401
