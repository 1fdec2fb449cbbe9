"""Users: sign-in by name and password, and how it is attacked."""

import hashlib
import logging
from functools import partial

import pytest

from klsa_search.errors import InvalidApiKey, RateExceeded, SettingsError
from klsa_search.service import keys as passwords
from klsa_search.service.admission import Writes
from klsa_search.service.changes import ChangeNotices
from klsa_search.service.keys import add_key, change_password, read_keys, revoke_key
from klsa_search.service.middleware import auth
from klsa_search.service.middleware.auth import SIGN_IN_BURST, SIGN_IN_PAUSE, Keys, SignIn
from klsa_search.service.middleware.clients import Rates
from tests.service.conftest import failure_of
from tests.service.test_keys import ELSEWHERE
from tests.service.test_sessions import PAGE, Forgetful, call
from tests.support.application import app_of_indexes
from tests.support.client import AppClient


@pytest.fixture(autouse=True)
def _quick_hashes(monkeypatch):
    monkeypatch.setattr(passwords, "_COST", 2)


@pytest.fixture
def client(shared_catalog, file):
    keys = Keys(file, {"search", "write"}, ChangeNotices(file.parent))  # which are seen at once
    return Forgetful(app_of_indexes(shared_catalog, writes=Writes(), keys=keys))


def enter(client, name, password, **headers):
    body = {"name": name, "password": password}
    return client.post("/sign-in", json=body, headers={**PAGE, **headers})


def cookie_of(answer):
    assert answer.status_code == 200, answer.text
    return answer.headers["set-cookie"].partition(";")[0]


def test_a_user_signs_in_and_does_what_its_scopes_allow(client, file):
    password = add_key(file, "anna", ["search"], ["first"], is_user=True)
    answer = enter(client, "anna", password)
    told = {"key": "anna", "scopes": ["search"], "is_user": True, "signed_in": True}
    assert answer.json() == told
    assert answer.headers["cache-control"] == "no-store"
    cookie = cookie_of(answer)
    assert password not in cookie
    assert password not in file.read_text()
    attributes = answer.headers["set-cookie"].lower()
    assert "httponly" in attributes
    assert "samesite=strict" in attributes
    secure = enter(client, "anna", password, Origin="https://search.example:8000")
    assert "; secure" in secure.headers["set-cookie"].lower()
    assert [each["name"] for each in call(client, cookie).json()["indexes"]] == ["first"]
    assert call(client, cookie, "DELETE", "/indexes/first/documents/1").status_code == 403
    assert call(client, cookie, path="/users").status_code == 403


def test_a_password_is_not_a_key(client, file):
    password = add_key(file, "anna", ["search"], is_user=True)
    for headers in (
        {"X-API-Key": password},
        {"Authorization": f"Bearer {password}"},
        {"X-API-Key": f"klsa_{read_keys(file)[0].id}_{'A' * 43}"},
    ):
        assert client.get("/indexes", headers=headers).status_code == 401
    basic = client.get("/indexes", auth=("anna", password))
    assert basic.status_code == 401


@pytest.mark.parametrize("after", ["revoke", "add again", "expire"])
def test_sessions_end_with_the_user(client, file, after, monkeypatch):
    password = add_key(file, "anna", ["search"], is_user=True)
    cookie = cookie_of(enter(client, "anna", password))
    if after == "expire":
        monkeypatch.setattr("klsa_search.service.keys.Key.is_expired", lambda _: True)
    else:
        revoke_key(file, "anna")
        if after == "add again":
            add_key(file, "anna", ["search"], is_user=True)
    assert call(client, cookie).status_code == 401
    assert enter(client, "anna", password).status_code == 401


def test_a_user_changes_its_password(client, file, caplog):
    password = add_key(file, "anna", ["search"], ["first"], is_user=True)
    here, elsewhere = (cookie_of(enter(client, "anna", password)) for _ in range(2))
    assert call(client, here).status_code == 200

    def change(old, new):
        body = {"name": "anna", "password": old, "new_password": new}
        return client.post("/sign-in", json=body, headers={**PAGE, "Cookie": here})

    assert change("wrong", "correct horse battery").status_code == 401
    for too_short in ("12345678901", " 1234567890\t "):
        failure_of(change(password, too_short), 422)
    assert call(client, elsewhere).status_code == 200
    with caplog.at_level(logging.INFO, "klsa_search.changes"):
        renewed = change(password, "Grüße vom Kaffee")
        cookie = cookie_of(renewed)
        assert call(client, cookie, path="/session").json() == renewed.json()
    assert "user anna was replaced" in caplog.messages
    assert "Grüße" not in caplog.text
    (user,) = read_keys(file)
    assert (user.name, user.scopes, user.indexes) == ("anna", ("search",), ("first",))
    for ended in (here, elsewhere):
        assert call(client, ended).status_code == 401
    assert enter(client, "anna", password).status_code == 401
    for written in ("Grüße vom Kaffee", "Gru\u0308ße vom Kaffee "):
        assert enter(client, "anna", written).status_code == 200


def test_a_password_is_not_changed_if_the_user_was_changed_meanwhile(file):
    add_key(file, "anna", ["search"], is_user=True)
    (user,) = read_keys(file)
    changed = change_password(file, user, "correct horse battery")
    with pytest.raises(InvalidApiKey, match="sign in again"):
        change_password(file, user, "another horse battery")
    assert read_keys(file) == [changed]


def test_failures_do_not_tell_who_has_a_name(client, file):
    add_key(file, "anna", ["search"], is_user=True)
    add_key(file, "robot", ["search"])
    answers = [enter(client, name, "wrong") for name in ("anna", "nobody", "robot", "", "é\x00")]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.json()["error"]["message"] for answer in answers}) == 1
    assert not any("set-cookie" in answer.headers for answer in answers)


def test_unknown_names_take_as_long_as_known_ones(file, monkeypatch):
    """By the hashes that are computed: time itself is not judged."""
    add_key(file, "anna", ["search"], is_user=True)
    attempts, computed, scrypt = SignIn(Keys(file, ())), [], hashlib.scrypt
    monkeypatch.setattr(
        hashlib, "scrypt", lambda *given, **options: computed.append(1) or scrypt(*given, **options)
    )
    for name in ("anna", "nobody"):
        computed.clear()
        with pytest.raises(InvalidApiKey):
            attempts.check(name, "wrong")
        assert computed == [1]


def test_attempts_are_limited_by_name_and_by_address(file, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(auth, "Rates", partial(Rates, clock=lambda: now[0]))
    attempts = SignIn(Keys(file, ()))
    for number in range(SIGN_IN_BURST):
        attempts.take("anna", f"10.0.0.{number}")
    for name in ("anna", "ANNA"):
        with pytest.raises(RateExceeded, match="try again in 30 s"):
            attempts.take(name, "10.0.0.99")
    attempts.take("ben", "10.0.0.98")
    now[0] += SIGN_IN_PAUSE
    attempts.take("anna", "10.0.0.97")
    for number in range(SIGN_IN_BURST):
        attempts.take(f"name{number}", "10.0.1.1")
    with pytest.raises(RateExceeded):
        attempts.take("another", "10.0.1.1")


def test_the_right_password_does_not_pass_the_limit(client, file):
    password = add_key(file, "anna", ["search"], is_user=True)
    for _ in range(SIGN_IN_BURST):
        enter(client, "anna", "wrong")
    error = failure_of(enter(client, "anna", password), 429)
    assert error["code"] == "rate_exceeded"


def test_pages_of_other_origins_cannot_sign_in(client, file):
    """Else a victim would search in the name of an attacker."""
    password = add_key(file, "anna", ["search"], is_user=True)
    for headers in ELSEWHERE:
        answer = enter(client, "anna", password, **headers)
        assert answer.status_code == 422, headers
        assert "set-cookie" not in answer.headers


def test_forms_cannot_sign_in(client, file):
    password = add_key(file, "anna", ["search"], is_user=True)
    content = f'{{"name": "anna", "password": "{password}"}}'
    sent = {**PAGE, "Content-Type": "text/plain"}
    answer = client.post("/sign-in", content=content, headers=sent)
    assert answer.status_code in (415, 422)
    assert "set-cookie" not in answer.headers


def test_signing_in_gives_a_new_session(client, file):
    """A cookie that somebody planted before is not the session after."""
    password = add_key(file, "anna", ["search"], is_user=True)
    planted = cookie_of(enter(client, "anna", password))
    other = add_key(file, "ben", ["search"], is_user=True)
    renewed = cookie_of(enter(client, "ben", other, Cookie=planted))
    assert renewed != planted
    assert call(client, renewed, path="/session").json()["key"] == "ben"


def test_the_audit_log_names_the_user(client, file, caplog):
    password = add_key(file, "anna", ["search", "write"], is_user=True)
    with caplog.at_level(logging.INFO, "klsa_search.changes"):
        cookie = cookie_of(enter(client, "anna", password))
        enter(client, "anna", "wrong")
        call(client, cookie, "DELETE", "/indexes/first/documents/1")
    logged = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert [(each["path"], each["status"], each["key"]) for each in logged] == [
        ("/sign-in", 200, "anna"),
        ("/sign-in", 401, None),
        ("/indexes/first/documents/1", 200, "anna"),
    ]
    assert password not in caplog.text


def test_an_administrator_adds_and_removes_users(client, file):
    chief = add_key(file, "chief", ["search", "write", "metrics", "users"], is_user=True)
    add_key(file, "robot", ["search"])
    cookie = cookie_of(enter(client, "chief", chief))

    def ask(method, path="/users", **content):
        return client.request(method, path, headers={**PAGE, "Cookie": cookie}, **content)

    added = ask("POST", json={"name": "anna", "scopes": ["search"]})
    assert added.status_code == 201
    assert added.headers["cache-control"] == "no-store"
    anna = cookie_of(enter(client, "anna", added.json()["password"]))
    assert [each["name"] for each in ask("GET").json()["users"]] == ["anna", "chief"]
    again = failure_of(ask("POST", json={"name": "anna", "scopes": ["search"]}), 422)
    assert str(file.parent) not in again["message"]
    failure_of(ask("DELETE", "/users/robot"), 422)
    assert len(read_keys(file)) == 3
    assert ask("DELETE", "/users/anna").status_code == 200
    assert call(client, anna).status_code == 401


def test_invalid_users_are_refused(client, file):
    key = add_key(file, "chief", ["users"])
    for body in (
        {"name": "an na", "scopes": ["search"]},
        {"name": "anna", "scopes": []},
        {"name": "anna", "scopes": ["root"]},
        {"name": "anna", "scopes": ["search"], "password": "chosen"},
    ):
        failure_of(client.post("/users", json=body, headers={"X-API-Key": key}), 422)
    assert len(read_keys(file)) == 1


def test_a_key_of_some_indexes_manages_no_users(client, file):
    key = add_key(file, "chief", ["users"], ["first"])
    body = {"name": "anna", "scopes": ["search"]}
    failure_of(client.post("/users", json=body, headers={"X-API-Key": key}), 403)


@pytest.mark.parametrize("writes", [None, Writes()], ids=["read-only", "writable"])
def test_without_keys_a_request_for_users_is_told_which_key_it_needs(shared_catalog, file, writes):
    keys = Keys(file, {"search", "metrics"})
    client = AppClient(app_of_indexes(shared_catalog, writes=writes, keys=keys))
    error = failure_of(client.get("/users"), 403)
    assert error["code"] == "insufficient_scope"
    assert "klsa-keys add NAME --scope users" in error["message"]
    assert "--writable" not in error["message"]


def test_users_are_listed_at_once_if_the_file_is_elsewhere(shared_catalog, file):
    headers = {"X-API-Key": add_key(file, "chief", ["users"])}
    client = AppClient(app_of_indexes(shared_catalog, keys=Keys(file, ())))
    for name in ("anna", "ben"):
        body = {"name": name, "scopes": ["search"]}
        assert client.post("/users", json=body, headers=headers).status_code == 201
    listed = client.get("/users", headers=headers).json()["users"]
    assert [each["name"] for each in listed] == ["anna", "ben"]
    left = client.delete("/users/anna", headers=headers).json()["users"]
    assert [each["name"] for each in left] == ["ben"]


def test_names_are_taken_once(file):
    add_key(file, "anna", ["search"], is_user=True)
    with pytest.raises(SettingsError, match="already has a key or user 'anna'"):
        add_key(file, "anna", ["search"])


def test_passwords_are_random_and_salted():
    made = {passwords.new_password() for _ in range(100)}
    assert len(made) == 100
    one = made.pop()
    assert len(one) == 23
    assert passwords.hashed(one) != passwords.hashed(one)
    assert passwords.is_password(f" {one}\n", passwords.hashed(one))
    assert not passwords.is_password(one[:-1], passwords.hashed(one))
