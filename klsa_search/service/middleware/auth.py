"""Authentication by API key or tenant token, and the access of a request: scopes and indexes."""

from __future__ import annotations

import logging
import os
from base64 import b64decode
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Final

from klsa_search.errors import (
    InsufficientScope,
    InvalidApiKey,
    RateExceeded,
    SettingsError,
    WritingRefused,
)
from klsa_search.search.filters.masks import FilterLike
from klsa_search.service.changes import ChangeNotices
from klsa_search.service.keys import Key, KeyUses, digest_of, is_password, read_keys
from klsa_search.service.middleware.clients import ALWAYS, Rates
from klsa_search.service.page_files import PREFIX
from klsa_search.service.request_log import CHANGES
from klsa_search.service.signing import (
    Signer,
    TenantClaims,
    is_cross_origin,
    is_tenant_token,
    key_of_session,
    read_tenant_token,
)

API_KEY_HEADER: Final = "X-API-Key"
"""Header for clients that cannot set `Authorization`, for example behind a proxy that uses it."""

_log = logging.getLogger(__name__)

_PUBLIC = (ALWAYS - {"/metrics"}) | {"/docs", "/openapi.json", "/sign-in"}
_FILES = (PREFIX, "/static-offline-docs/")
"""Paths that need no key: they reveal neither content nor names of indexes."""

CHECK_SECONDS: Final = 1.0
"""Seconds after which a change of the key file counts, unless `klsa-keys` announced it."""


def is_file(path: str) -> bool:
    """Return whether a path is that of a file of the search page or of /docs."""
    return path.startswith(_FILES)


def needs_key(path: str) -> bool:
    """Return whether a path needs an API key if the service has keys."""
    return path not in _PUBLIC and not is_file(path)


@dataclass(frozen=True, slots=True)
class Access:
    """Scopes of a request, its indexes (None: all), and the name of its key.

    key_id      ID of the key, if the request has the key itself: only then it may begin a session
    expires     time at which the key expires
    by_session  whether it has a session in the place of the key
    is_user     whether the key is a user
    filters     of a tenant token, by index or alias: only documents that match them are visible
    """

    scopes: frozenset[str]
    indexes: frozenset[str] | None = None
    key: str | None = None
    key_id: str | None = None
    expires: datetime | None = None
    by_session: bool = False
    is_user: bool = False
    filters: Mapping[str, FilterLike] | None = None

    @classmethod
    def of_tenant(cls, key: Key, claims: TenantClaims) -> Access:
        """Return the access of a tenant token: searches, by at most the indexes of its key."""
        indexes = frozenset(claims.filters)
        if key.indexes is not None:
            indexes &= frozenset(key.indexes)
        scopes = frozenset({"search"}).intersection(key.scopes)
        return cls(scopes, indexes, key.name, filters=claims.filters)

    @classmethod
    def of_key(cls, key: Key) -> Access:
        """Return the access of a key."""
        indexes = None if key.indexes is None else frozenset(key.indexes)
        scopes = frozenset(key.scopes)
        return cls(scopes, indexes, key.name, key.id, key.expires, is_user=key.is_user)

    @property
    def client(self) -> str | None:
        """Return the client that a rate limit counts; None for its address.

        Tenant tokens of one key are in the hands of many clients.
        """
        return None if self.key is None or self.filters is not None else f"key {self.key}"

    def sees(self, index: str) -> bool:
        """Return whether the request may know of an index."""
        return bool(self.scopes) and (self.indexes is None or index in self.indexes)

    def require(self, scope: str, index: str | None = None) -> None:
        """Raise InsufficientScope unless the key allows it, WritingRefused for writes without."""
        if scope not in self.scopes:
            if self.key is None and scope == "write":
                raise WritingRefused(
                    "writes need an API key; create one on the machine of the "
                    f"service (klsa-keys add NAME --scope {scope}), or start "
                    "klsa-serve with --writable if everyone who can reach it may "
                    "write"
                )
            if self.key is None:
                raise InsufficientScope(
                    f"this request needs an API key with the scope `{scope}`; create one on the "
                    f"machine of the service (klsa-keys add NAME --scope {scope}), after which "
                    "every request needs a key",
                    scope=scope,
                )
            raise InsufficientScope(
                f"{self._holder} lacks the scope `{scope}`; use a key with "
                f"it (klsa-keys add NAME --scope {scope})",
                scope=scope,
            )
        if index is not None and not self.sees(index):
            raise InsufficientScope(
                f"{self._holder} is not valid for index {index!r}; use another",
                scope=scope,
                field="index",
            )

    @property
    def _holder(self) -> str:
        """What has the access, as messages name it; tenants do not learn the name of the key."""
        return "the tenant token" if self.filters is not None else f"API key {self.key!r}"

    def require_all(self, scope: str) -> None:
        """Raise InsufficientScope unless the key allows it for every index: see `require`."""
        self.require(scope)
        if self.indexes is not None:
            raise InsufficientScope(
                f"{self._holder} is restricted to some indexes; use a key for all", scope=scope
            )


NO_ACCESS = Access(frozenset())


class Keys:
    """The API keys of a file, which is checked for changes once in `CHECK_SECONDS`.

    changes  those of the index directory, if the file is in it: `klsa-keys` announces its own,
             which count at once
    path     path of the file; no key is needed while it does not exist
    keyless  scopes of all requests while no key is needed
    Once the file existed a key is needed, even if the file is removed. SettingsError or OSError
    if it cannot be read.
    """

    def __init__(
        self, path: Path, keyless: Collection[str], changes: ChangeNotices | None = None
    ) -> None:
        self.path = path
        self._changes, self._version = changes, b""
        self._file = os.fspath(path)  # twice as fast as a Path
        self.keyless = Access(frozenset(keyless))
        self._stamp: tuple[int, ...] | None = None
        self._keys: dict[str, Key] | None = None
        self._by_digest: dict[bytes, tuple[Key, Access]] = {}
        self._logged: str | None = None
        self._next_check = 0.0  # in seconds of `monotonic`
        self._uses = KeyUses(path)
        self._reload()

    @property
    def needed(self) -> bool:
        """Whether a key is needed."""
        return self._keys is not None

    def user(self, name: str) -> Key | None:
        """Return the user of a name, or None."""
        users = (key for key in (self.by_id() or {}).values() if key.is_user)
        return next((user for user in users if user.name == name), None)

    def by_id(self) -> Mapping[str, Key] | None:
        """Return the keys and users by ID, or None if no key is needed; SettingsError."""
        self._check_if_due()
        return self._keys

    def access(self, token: str) -> Access:
        """Return the access of a key that is sent, and note its use; InvalidApiKey.

        It is looked up by its SHA-256, so the time that takes tells nothing of the keys.
        """
        key, access = self._by_digest.get(digest_of(token), (None, NO_ACCESS))
        self.used(key)
        return access

    def used(self, key: Key | None) -> Key:
        """Return a key, and note its use; InvalidApiKey if there is none, or if it has expired."""
        if key is None:
            raise InvalidApiKey("invalid or revoked API key; create one with `klsa-keys add NAME`")
        if key.is_expired():
            raise InvalidApiKey(
                f"API key {key.name!r} has expired; create one with `klsa-keys add NAME`"
            )
        self._uses.note(key)
        return key

    def _check_if_due(self) -> None:
        """Read the file if a change of it was announced, or if a second has passed."""
        version = b"" if self._changes is None else self._changes.version(self.path.name)
        if (now := monotonic()) < self._next_check and version == self._version:
            return
        try:
            self._reload()
        except (SettingsError, OSError) as failure:
            self._stamp = None  # read it again, changed or not
            if str(failure) != self._logged:
                self._logged = str(failure)
                _log.error("%s", failure)
            raise SettingsError("the key file of the service cannot be read; see its log") from None
        self._next_check, self._version = now + CHECK_SECONDS, version

    def _reload(self) -> None:
        try:
            status = os.stat(self._file)
        except FileNotFoundError:
            self._stamp = None
            self._keys = None if self._keys is None else {}
            self._by_digest = {}
            return
        stamp = status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
        if stamp != self._stamp:
            self._keys = self._keys or {}  # from now on a key is needed, even if reading fails
            before, self._keys = self._keys, {key.id: key for key in read_keys(self.path)}
            self._by_digest = {
                bytes.fromhex(key.sha256): (key, Access.of_key(key))
                for key in self._keys.values()
                if key.sha256 is not None
            }
            if self._stamp is not None:
                _log_changes(before, self._keys)
            self._stamp, self._logged = stamp, None


def _log_changes(before: Mapping[str, Key], now: Mapping[str, Key]) -> None:
    """Log which keys and users were added, replaced and revoked, to the audit log."""
    new, old = (
        {key.name: key for id_, key in keys.items() if id_ not in without}
        for keys, without in ((now, before), (before, now))
    )
    for name, key in (new | old).items():
        change = (
            "replaced" if name in old and name in new else "added" if name in new else "revoked"
        )
        CHANGES.info("%s %s was %s", "user" if key.is_user else "API key", name, change)


def _token(headers: Mapping[str, str]) -> str | None:
    """Return the key that a request sends as `Authorization: Bearer`, else as `X-API-Key`.

    Blank, which is not a key, for another scheme than Basic; None if it sends nothing.
    """
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    key = headers.get(API_KEY_HEADER.lower())
    return "" if key is None and scheme and scheme.lower() != "basic" else key


def _password(headers: Mapping[str, str]) -> str | None:
    """Return the password of `Authorization: Basic`, blank if it is invalid; None without it.

    Browsers keep these credentials and add them to requests of other sites, where they are invalid.
    """
    scheme, _, encoded = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() != "basic":
        return None
    if is_cross_origin(headers):
        return ""
    try:
        decoded = b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        return ""
    return decoded.partition(":")[2]


def access_of(keys: Keys, signer: Signer, headers: Mapping[str, str], method: str) -> Access:
    """Return the access of a request, by the key, tenant token or session that it sends.

    headers  by lower-case name: see `_token`
    InvalidApiKey for an unknown or revoked key, SettingsError if the file cannot be read,
    StoreError if a token or session cannot be verified.
    """
    by_id = keys.by_id()
    if by_id is None:
        return keys.keyless
    token = _token(headers)
    if token is not None and is_tenant_token(token):
        claims = read_tenant_token(signer, token)
        return Access.of_tenant(keys.used(by_id.get(claims.key)), claims)
    if token is None:
        key = by_id.get(key_of_session(signer, headers, method) or "")
        if key is not None:
            return replace(Access.of_key(keys.used(key)), key_id=None, by_session=True)
        token = _password(headers)
        if token is None:
            raise InvalidApiKey("API key required; send `Authorization: Bearer KEY`", sent=False)
    return keys.access(token)


SIGN_IN_BURST: Final = 10
SIGN_IN_PAUSE: Final = 30.0
"""Attempts that may follow each other, by a name and by an address, and seconds for each later."""


class SignIn:
    """Checks names and passwords; for use by one event loop, but for `check`."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._attempts = Rates(1 / SIGN_IN_PAUSE, burst=SIGN_IN_BURST)

    def take(self, name: str, address: str) -> None:
        """Count an attempt; RateExceeded if there were too many with a name, or of an address.

        Names are counted whether or not somebody has them.
        """
        wait = max(
            self._attempts.wait(f"address {address}"), self._attempts.wait(f"name {name.lower()}")
        )
        if wait:
            raise RateExceeded(
                f"too many attempts to sign in; try again in {ceil(wait)} s", after=ceil(wait)
            )

    def check(self, name: str, password: str) -> Key:
        """Return the user; InvalidApiKey, which does not say what is wrong. Cost: 0.2 s."""
        user = self._keys.user(name)
        if not is_password(password, None if user is None else user.password):
            user = None
        if user is None or user.is_expired():
            raise InvalidApiKey("wrong name or password; ask the person who added you for another")
        return user
