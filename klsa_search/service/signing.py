"""Tokens signed by the service: JSON Web Tokens (HS256) with a secret in the index directory.

All workers of an index directory share the secret, so each accepts the tokens of the others. It is
read for every token: if the file is removed or cut short, all tokens are invalid at once, and the
next token makes a new secret. Nothing else is stored: a token names the key it was created with by
its ID, so that revoking the key ends its tokens.

The search page keeps one in a cookie, as its session. That counts only in requests of the page: a
browser adds cookies and cached Basic credentials by itself, whichever page sends the request, but
it also sets `Sec-Fetch-Site` and `Origin`, which no page can change.

A tenant token has the filter of each index that it is for. The service signs it, because it has
only hashes of keys.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import jwt
from filelock import FileLock
from pydantic import BaseModel, ValidationError
from starlette.requests import Request, cookie_parser
from starlette.responses import Response

from klsa_search.errors import InvalidApiKey, QueryError, StoreError
from klsa_search.search.filters.masks import FilterLike, filter_of
from klsa_search.search.filters.parser import truth_of
from klsa_search.storage.files import read_regular, replace_file, writable

Use = Literal["session", "tenant"]
"""What a token is for; a token for one use is invalid for the other."""

FILE: Final = ".secret"  # name of the file with the secret
_ALGORITHM: Final = "HS256"
_SHORTEST: Final = 32
"""Characters of a secret, at least: a shorter one was cut, or could be guessed."""
_NAMES: Final = {"session": "session", "tenant": "tenant token"}


class Signer:
    """Signs and verifies the tokens of an index directory.

    home  the index directory
    """

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    def sign(self, use: Use, claims: Mapping[str, Any], expires: datetime) -> str:
        """Return a token with these claims. Anyone with the token can read them.

        The secret is created if there is none. StoreError if it cannot be read or written.
        """
        with writable(self._path):
            secret = self._read() or self._create()
        content = {**claims, "aud": use, "exp": expires}
        return jwt.encode(content, secret, algorithm=_ALGORITHM)

    def verify(self, use: Use, token: str) -> dict[str, Any]:
        """Return the claims of a token, with `aud` (its use) and `exp` (Unix time).

        InvalidApiKey for a token that has expired, is for another use or was not signed here;
        StoreError if the secret cannot be read.
        """
        secret = self._read()
        try:
            if secret is None:
                raise jwt.InvalidTokenError
            return jwt.decode(
                token,
                secret,
                algorithms=[_ALGORITHM],
                audience=use,
                options={"require": ["exp", "aud"], "strict_aud": True},
            )
        except jwt.ExpiredSignatureError:
            raise InvalidApiKey(f"the {_NAMES[use]} has expired; create a new one") from None
        except jwt.InvalidTokenError:
            raise InvalidApiKey(f"invalid {_NAMES[use]}; create a new one") from None

    def fault(self) -> str | None:
        """Return why the secret cannot be read, for operators; None if it can, or is missing."""
        try:
            self._read()
        except StoreError as error:
            return error.message
        return None

    def _read(self) -> str | None:
        """Return the secret; None if there is none yet, or only a part of one."""
        try:
            secret = read_regular(self._path, 2**10).decode("ascii", "replace").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(
                f"cannot read the secret of sessions and tenant tokens, `{self._path.name}` in the "
                f"index directory: {error.strerror}; make the user of the service its owner, or "
                "delete it to end all sessions and tokens"
            ) from error
        return secret if len(secret) >= _SHORTEST else None

    def _create(self) -> str:
        """Write a secret, unless another process has just done so, and return it."""
        with FileLock(self._path.with_name(f"{FILE}.lock"), timeout=10):
            if (existing := self._read()) is not None:
                return existing
            secret = secrets.token_hex(32)
            replace_file(self._path, secret + "\n", mode=0o600)
            return secret


COOKIE: Final = "klsa_session"
"""Name of the cookie, before the port: browsers share cookies between the ports of a host."""

SESSION_LIFETIME: Final = timedelta(days=14)  # lifetime of a session, or less if the key expires


PAGE_HEADER: Final = "X-Requested-With"
"""Header of each request of the search page, with any value. A page of another origin may send it
only if CORS allows it, which it never does.
"""


def key_of_session(signer: Signer, headers: Mapping[str, str], method: str) -> str | None:
    """Return the ID of the key of the session of a request, or None.

    Cost: 0.1 ms if the request has a session.
    """
    if PAGE_HEADER.lower() not in headers:
        return None
    cookie = cookie_parser(headers.get("cookie", "")).get(_name(headers))
    if cookie is None or not is_from_page(headers, method):
        return None
    try:
        key_id: str = signer.verify("session", cookie)["sub"]
    except InvalidApiKey:
        return None
    return key_id


def begin_session(
    signer: Signer, request: Request, response: Response, key_id: str, expires: datetime | None
) -> None:
    """Set the cookie of a new session; it ends when the key expires, if that is earlier.

    QueryError unless the page of this host sent the request. Cost: 1 ms.
    """
    refuse_other_pages(request)
    end = datetime.now(UTC) + SESSION_LIFETIME
    if expires is not None:
        end = min(end, expires)
    token = signer.sign("session", {"sub": key_id}, end)
    _set(request, response, token, end - datetime.now(UTC))


def refuse_other_pages(request: Request) -> None:
    """Raise QueryError unless the page of this host sent a request."""
    headers = request.headers
    if not is_from_page(headers, request.method):
        raise QueryError(
            f"cannot sign in: the request for host {headers.get('host')!r} is not from its "
            f"search page (Origin: {headers.get('origin')!r}); let a proxy pass on the Host "
            "header with its port, or send the API key with each request"
        )


def end_session(request: Request, response: Response) -> None:
    """Remove the cookie."""
    _set(request, response, "", timedelta(0))


def _set(request: Request, response: Response, value: str, age: timedelta) -> None:
    # Behind a proxy only the origin says whether the browser uses TLS. Without a path, the cookie
    # is for the folder of /session, with the prefix that a proxy adds.
    origin = request.headers.get("origin", "")
    response.set_cookie(
        _name(request.headers),
        value,
        max_age=int(age.total_seconds()),
        path=None,
        secure=request.scope["scheme"] == "https" or origin.startswith("https://"),
        httponly=True,
        samesite="strict",
    )


def _name(headers: Mapping[str, str]) -> str:
    port = headers.get("host", "").rpartition("]")[2].rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isascii() and port.isdigit() else COOKIE


def is_cross_origin(headers: Mapping[str, str]) -> bool:
    """Return whether a page of another origin sent the request; programs send neither header.

    Sec-Fetch-Site is missing without TLS, except on localhost; then Origin must name the host.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and _host_of(origin) != headers.get("host", "").lower()


def is_from_page(headers: Mapping[str, str], method: str) -> bool:
    """Return whether the search page of this host certainly sent the request.

    Browsers send an Origin with each request that may change something, and no Origin with a GET
    of the same origin.
    """
    proven = "sec-fetch-site" in headers or "origin" in headers or method in ("GET", "HEAD")
    return PAGE_HEADER.lower() in headers and proven and not is_cross_origin(headers)


def _host_of(origin: str) -> str | None:
    """Return host and port of an origin, as `Host` has them; None if it has none, as `null`."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


MAX_TENANT_LIFETIME: Final = timedelta(days=1)
"""Lifetime of a token, at most: until it ends, only revoking its key does."""

MAX_LENGTH: Final = 8_000  # characters of a token: proxies refuse longer headers


class TenantClaims(BaseModel):
    """Content of a token: ID of the key, and filters by index, as text or JSON."""

    key: str
    filters: dict[str, str | dict[str, Any]]


def new_tenant_token(
    signer: Signer, key_id: str, filters: Mapping[str, FilterLike], expires: datetime
) -> str:
    """Return a token. Anyone with the token can read its filters.

    QueryError for an invalid filter, one that matches every document whatever it contains, or if
    they are too long.
    """
    for name, filter_ in filters.items():
        if isinstance(filter_, str) and not filter_.strip():
            raise QueryError(
                f"the filter of index `{name}` is blank; give a filter", field="filters"
            )
        try:
            matches_all = truth_of(filter_of(filter_))
        except QueryError as error:
            raise QueryError(f"index `{name}`: {error.message}", field="filters") from None
        if matches_all:
            raise QueryError(
                f"the filter of index `{name}` matches every document, as a list in it is "
                "empty; give a filter that names the tenant, or send an API key instead",
                field="filters",
            )
    token = signer.sign("tenant", {"key": key_id, "filters": filters}, expires)
    if len(token) > MAX_LENGTH:
        raise QueryError(
            f"the token would have {len(token):,} characters, more than {MAX_LENGTH:,}; "
            "shorten the filters",
            field="filters",
        )
    return token


def read_tenant_token(signer: Signer, token: str) -> TenantClaims:
    """Return the content of a token; InvalidApiKey if it is not valid, or no longer."""
    try:
        return TenantClaims.model_validate(signer.verify("tenant", token))
    except ValidationError:
        raise InvalidApiKey("invalid tenant token; create a new one") from None


def is_tenant_token(token: str) -> bool:
    """Return whether a token has the form of a tenant token, which that of a key never has."""
    return token.count(".") == 2
