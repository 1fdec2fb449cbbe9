"""Sign-in of the search page: the cookie, and what it is not valid for."""

from datetime import UTC, datetime, timedelta

import pytest

from klsa_search.service.admission import Writes
from klsa_search.service.keys import add_key, revoke_key
from klsa_search.service.middleware.auth import Keys
from klsa_search.service.open_indexes import OpenIndexes
from klsa_search.service.signing import PAGE_HEADER, Signer
from tests.service.conftest import failure_of
from tests.service.test_keys import ELSEWHERE
from tests.support.application import app_of_indexes
from tests.support.client import AppClient

HOST = "search.example:8000"
PAGE = {PAGE_HEADER: "klsa", "Host": HOST, "Origin": f"http://{HOST}"}
"""What the page sends with a request that is not a GET."""
SITE = "same-origin"
CALLS = [("GET", "/indexes"), ("POST", "/search"), ("DELETE", "/indexes/first/documents/1")]


@pytest.fixture
def service(home, file):
    """A service of two indexes, and origins that may send requests; clients keep no cookies."""
    with OpenIndexes(home, interval=0) as open_indexes:
        keys = Keys(file, {"search", "write"})
        yield app_of_indexes(
            open_indexes, writes=Writes(), keys=keys, origins=["https://friend.example"]
        )


@pytest.fixture
def client(service):
    return Forgetful(service)


class Forgetful(AppClient):
    """A client that sends the cookies that a test gives it only."""

    def request(self, *args, **kwargs):
        self.cookies.clear()
        return super().request(*args, **kwargs)


def sign_in(client, token, **headers):
    """Return the cookie of a new session, as `name=value`, and its attributes."""
    answer = client.post("/session", headers={**PAGE, "X-API-Key": token, **headers})
    assert answer.status_code == 200, answer.text
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    return cookie, {each.lower() for each in attributes}


def call(client, cookie, method="GET", path="/indexes", **headers):
    content = {"json": {"q": "wing", "index": "first"}} if method == "POST" else {}
    return client.request(method, path, headers={**PAGE, "Cookie": cookie, **headers}, **content)


def test_a_key_is_sent_once(client, file):
    token = add_key(file, "web", ["search", "write"])
    cookie, attributes = sign_in(client, token)
    assert token not in cookie
    assert attributes == {"httponly", "max-age=1209600", "samesite=strict"} or (
        attributes == {"httponly", "max-age=1209599", "samesite=strict"}
    )
    for method, path in CALLS:
        answer = call(client, cookie, method, path)
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
    told = call(client, cookie, path="/session").json()
    assert told == {
        "key": "web",
        "scopes": ["search", "write"],
        "is_user": False,
        "signed_in": True,
    }
    answer = call(client, cookie, "DELETE", "/session")
    assert answer.json()["signed_in"] is False
    assert answer.headers["set-cookie"].startswith(cookie.partition("=")[0] + '=""; ')
    assert "max-age=0" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_a_request_that_is_not_of_the_page_has_no_session(client, file, method, path):
    cookie, _ = sign_in(client, add_key(file, "web", ["search", "write"]))
    assert call(client, cookie, method, path, **{"Sec-Fetch-Site": SITE}).status_code == 200
    forged = [{**PAGE, **each} for each in ELSEWHERE]
    forged.append({**PAGE, "Origin": "https://friend.example"})  # CORS or not
    forged.append({name: value for name, value in PAGE.items() if name != PAGE_HEADER})
    if method != "GET":  # browsers send no Origin with a GET
        forged.append({name: value for name, value in PAGE.items() if name != "Origin"})
    for headers in forged:
        content = {"json": {"q": "wing", "index": "first"}} if method == "POST" else {}
        answer = client.request(method, path, headers={**headers, "Cookie": cookie}, **content)
        assert failure_of(answer, 401), headers


def test_cors_never_allows_the_header_of_the_page_or_cookies(client, file):
    add_key(file, "web", ["search"])
    asked = {
        "Origin": "https://friend.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": PAGE_HEADER,
    }
    assert client.options("/search", headers=asked).status_code == 400
    answer = client.get("/indexes", headers={**PAGE, "Origin": "https://friend.example"})
    assert "access-control-allow-credentials" not in answer.headers


def test_only_the_page_signs_in_and_only_with_a_key(client, file):
    token = add_key(file, "web", ["search"])
    cookie, _ = sign_in(client, token)
    for headers in (*ELSEWHERE, {"Origin": ""}):
        answer = client.post("/session", headers={**PAGE, "X-API-Key": token, **headers})
        assert "set-cookie" not in answer.headers
        assert "let a proxy pass on the Host header" in failure_of(answer, 422)["message"]
    assert failure_of(client.post("/session", headers={**PAGE, "X-API-Key": "no"}), 401)
    renewed = client.post("/session", headers={**PAGE, "Cookie": cookie})
    assert failure_of(renewed, 422)
    assert "set-cookie" not in renewed.headers


def test_a_session_ends_with_its_key(client, file):
    cookie, _ = sign_in(client, add_key(file, "web", ["search"]))
    assert call(client, cookie).status_code == 200
    revoke_key(file, "web")
    assert failure_of(call(client, cookie), 401)
    add_key(file, "web", ["search"])  # another key of the same name
    assert failure_of(call(client, cookie), 401)
    token = add_key(file, "brief", ["search"], lifetime=timedelta(hours=1))
    cookie, attributes = sign_in(client, token)
    assert {"max-age=3599", "max-age=3600", "max-age=3598"} & attributes


def test_a_session_has_the_scopes_and_indexes_of_its_key(client, file):
    cookie, _ = sign_in(client, add_key(file, "web", ["search"], ["first"]))
    assert [each["name"] for each in call(client, cookie).json()["indexes"]] == ["first"]
    assert failure_of(call(client, cookie, *CALLS[2]), 403)
    assert call(client, cookie, path="/indexes/second").status_code == 404


def test_a_token_signed_elsewhere_is_not_a_session(client, file, home, tmp_path):
    token = add_key(file, "web", ["search"])
    cookie, _ = sign_in(client, token)
    name, value = cookie.split("=", 1)
    head, body, signature = value.split(".")
    soon, key_id = datetime.now(UTC) + timedelta(days=1), token[5:13]
    (tmp_path / "other").mkdir()
    wrong = [
        "", "x", token, f"{head}.{body}.", f"{head}.{body}.{signature[:-2]}AA",
        Signer(tmp_path / "other").sign("session", {"sub": key_id}, soon),
        Signer(home).sign("tenant", {"sub": key_id}, soon),
        Signer(home).sign("session", {"sub": key_id}, soon - timedelta(days=2)),
        Signer(home).sign("session", {"sub": "00000000"}, soon),
    ]  # fmt: skip
    for each in wrong:
        assert failure_of(call(client, f"{name}={each}"), 401), each
    assert call(client, f"{name}={Signer(home).sign('session', {'sub': key_id}, soon)}").is_success


def test_signing_in_replaces_a_planted_cookie(client, file):
    planted, _ = sign_in(client, add_key(file, "attacker", ["search"]))
    token = add_key(file, "web", ["search"])
    cookie, _ = sign_in(client, token, Cookie=planted)
    assert call(client, cookie, path="/session").json()["key"] == "web"


def test_ports_of_a_host_have_sessions_of_their_own(client, file):
    token = add_key(file, "web", ["search"])
    names = {
        sign_in(client, token, Host=host, Origin=f"http://{host}")[0].partition("=")[0]
        for host in ("localhost", "localhost:8000", "localhost:9000", "[::1]:8001", "[::1]")
    }
    assert names == {"klsa_session"} | {f"klsa_session_{port}" for port in (8000, 9000, 8001)}


@pytest.mark.parametrize(
    ("host", "origin", "secure"),
    [
        ("search.example", "https://search.example", True),
        ("search.example", "http://search.example", False),
    ],
)
def test_the_cookie_is_for_tls_if_the_browser_uses_it(client, file, host, origin, secure):
    _, attributes = sign_in(client, add_key(file, "web", ["search"]), Host=host, Origin=origin)
    assert ("secure" in attributes) == secure


def test_a_proxy_may_drop_the_port_of_the_host_if_the_browser_vouches(client, file):
    token = add_key(file, "web", ["search"])
    behind = {"Host": "search.example", "Origin": "https://search.example:8443"}
    cookie, _ = sign_in(client, token, **behind, **{"Sec-Fetch-Site": SITE})
    assert call(client, cookie, *CALLS[1], **behind, **{"Sec-Fetch-Site": SITE}).status_code == 200


def test_a_key_that_is_sent_goes_before_the_session_and_that_before_basic(client, file):
    cookie, _ = sign_in(client, add_key(file, "web", ["search"]))
    other = add_key(file, "other", ["search"])
    for sent in ({"X-API-Key": other}, {"Authorization": f"Bearer {other}"}):
        assert call(client, cookie, path="/session", **sent).json()["key"] == "other"
    assert failure_of(call(client, cookie, **{"X-API-Key": "wrong"}), 401)
    proxied = {"Authorization": "Basic cHJveHk6c2VjcmV0"}
    assert call(client, cookie, path="/session", **proxied).json()["key"] == "web"


def test_without_keys_there_is_nothing_to_sign_in_to(client, home):
    for method in ("GET", "POST"):
        told = {"key": None, "scopes": ["search", "write"], "is_user": False, "signed_in": False}
        assert client.request(method, "/session", headers=PAGE).json() == told
    assert client.delete("/session", headers=PAGE).status_code == 200
    assert not (home / ".secret").exists()


def test_a_secret_that_cannot_be_read_is_a_fault_that_keys_do_not_notice(client, file, monkeypatch):
    token = add_key(file, "web", ["search"])
    cookie, _ = sign_in(client, token)
    assert client.get("/health").json()["faults"] == []

    def refuse(path, limit):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("klsa_search.service.signing.read_regular", refuse)
    failed = call(client, cookie)
    assert failed.status_code == 503
    assert "cannot read the secret" in failed.json()["error"]["message"]
    assert call(client, cookie, **{"X-API-Key": token}).status_code == 200
    (fault,) = client.get("/health", headers={"X-API-Key": token}).json()["faults"]
    assert "cannot read the secret" in fault


@pytest.mark.parametrize("host", ["[", "[localhost]", "[127.0.0.1]", "a]", "localhost:x"])
def test_a_host_that_is_not_valid_has_no_session(client, file, host):
    token = add_key(file, "web", ["search"])
    cookie, _ = sign_in(client, token)
    answer = call(client, cookie, Host=host, Origin=f"http://{host}")
    assert failure_of(answer, 401)["code"] == "invalid_api_key"
    signed_out = client.delete("/session", headers={"Host": host, "X-API-Key": token})
    assert signed_out.status_code == 200
