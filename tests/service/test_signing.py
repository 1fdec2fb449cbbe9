"""Signed tokens: their secret, their use and their expiry."""

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import jwt
import pytest

from klsa_search.errors import InvalidApiKey, StoreError
from klsa_search.service.signing import FILE, Signer

CLAIMS = {"key": "0123abcd", "filters": {"shop": 'tenant = "a"'}}


def later(**duration):
    return datetime.now(UTC) + timedelta(**duration)


def test_claims_come_back_from_a_token_of_any_process_of_the_directory(tmp_path):
    token = Signer(tmp_path).sign("tenant", CLAIMS, later(hours=1))
    claims = Signer(tmp_path).verify("tenant", token)
    assert {name: claims[name] for name in CLAIMS} == CLAIMS


def test_a_token_is_valid_for_its_use_only(tmp_path):
    signer = Signer(tmp_path)
    for use, other in (("tenant", "session"), ("session", "tenant")):
        token = signer.sign(use, {**CLAIMS, "aud": other}, later(hours=1))
        signer.verify(use, token)
        with pytest.raises(InvalidApiKey, match="invalid"):
            signer.verify(other, token)


def test_an_expired_token_is_refused(tmp_path):
    token = Signer(tmp_path).sign("session", CLAIMS, later(seconds=-1))
    with pytest.raises(InvalidApiKey, match="the session has expired"):
        Signer(tmp_path).verify("session", token)


def test_tokens_that_the_secret_did_not_sign_are_refused(tmp_path):
    signer = Signer(tmp_path)
    content = {**CLAIMS, "aud": "tenant", "exp": later(hours=1)}
    token = signer.sign("tenant", CLAIMS, later(hours=1))
    secret = (tmp_path / FILE).read_text().strip()
    head, _, signature = token.split(".")
    other_body = jwt.encode(content | {"key": "x"}, "x" * 64).split(".")[1]
    forged = [
        jwt.encode(content, "x" * 64, algorithm="HS256"),
        jwt.encode(content, secret, algorithm="HS512"),
        jwt.encode(content, None, algorithm="none"),
        jwt.encode({**CLAIMS, "aud": "tenant"}, secret, algorithm="HS256"),  # never expires
        jwt.encode({**CLAIMS, "exp": later(hours=1)}, secret, algorithm="HS256"),  # for any use
        jwt.encode(content | {"aud": ["tenant", "session"]}, secret, algorithm="HS256"),
        f"{head}.{other_body}.{signature}",
        token[:-1],
        "",
        "klsa_0123abcd_" + "x" * 43,
    ]
    for each in forged:
        with pytest.raises(InvalidApiKey, match="invalid tenant token"):
            signer.verify("tenant", each)


def test_without_the_secret_all_tokens_are_invalid_and_none_is_created(tmp_path):
    signer = Signer(tmp_path)
    token = signer.sign("tenant", CLAIMS, later(hours=1))
    (tmp_path / FILE).unlink()
    with pytest.raises(InvalidApiKey):
        signer.verify("tenant", token)
    assert not (tmp_path / FILE).exists()


def test_the_secret_is_readable_by_its_owner_only_and_the_same_for_simultaneous_signers(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        tokens = list(
            pool.map(lambda _: Signer(tmp_path).sign("tenant", CLAIMS, later(hours=1)), range(16))
        )
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert len((tmp_path / FILE).read_text().strip()) == 64
    for token in tokens:
        Signer(tmp_path).verify("tenant", token)


@pytest.mark.parametrize("content", ["", "\n", "0123abcd"])
def test_a_secret_that_was_cut_short_is_replaced(tmp_path, content):
    signer = Signer(tmp_path)
    token = signer.sign("tenant", CLAIMS, later(hours=1))
    (tmp_path / FILE).write_text(content)
    with pytest.raises(InvalidApiKey, match="invalid tenant token"):
        signer.verify("tenant", token)
    signer.verify("tenant", signer.sign("tenant", CLAIMS, later(hours=1)))
    assert len((tmp_path / FILE).read_text().strip()) == 64


def test_a_secret_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    signer = Signer(tmp_path)
    token = signer.sign("tenant", CLAIMS, later(hours=1))
    assert signer.fault() is None

    def refuse(path, limit):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("klsa_search.service.signing.read_regular", refuse)
    for use in (
        lambda: signer.verify("tenant", token),
        lambda: signer.sign("tenant", CLAIMS, later(hours=1)),
    ):
        with pytest.raises(StoreError, match=r"cannot read the secret.*Permission denied"):
            use()
    assert "Permission denied" in signer.fault()
    assert str(tmp_path) not in signer.fault()


def test_a_directory_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", str(tmp_path / FILE))

    monkeypatch.setattr("klsa_search.service.signing.replace_file", refuse)
    with pytest.raises(StoreError, match="cannot use"):
        Signer(tmp_path).sign("tenant", CLAIMS, later(hours=1))
