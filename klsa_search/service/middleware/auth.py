"""Access: what the request at hand may ask for, by the key that it brings."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from klsa_search.errors import (
    InsufficientScope,
    InvalidApiKey,
    KlsaError,
    SettingsError,
    WritingRefused,
)
from klsa_search.service.keys import Key, found, read_keys
from klsa_search.service.middleware.limits import ALWAYS
from klsa_search.service.schemas.errors import explained

_log = logging.getLogger(__name__)

_OPEN = (ALWAYS - {"/metrics"}) | {"/docs", "/openapi.json"}
_SCRIPTS = "/static-offline-docs/"
"""Paths that need no key: they tell nothing of what the indexes hold, nor of their names."""


def needs_key(path: str) -> bool:
    """Whether a path is for those with a key alone, where there are keys."""
    return path not in _OPEN and not path.startswith(_SCRIPTS)


@dataclass(frozen=True, slots=True)
class Access:
    """What may be asked for: these scopes, in these indexes or in all (None), by the key named."""

    scopes: frozenset[str]
    indexes: frozenset[str] | None = None
    key: str | None = None

    @classmethod
    def by(cls, key: Key) -> Access:
        """What a key allows."""
        indexes = None if key.indexes is None else frozenset(key.indexes)
        return cls(frozenset(key.scopes), indexes, key.name)

    def sees(self, index: str) -> bool:
        """Whether it may know of an index."""
        return bool(self.scopes) and (self.indexes is None or index in self.indexes)

    def require(self, scope: str, index: str | None = None) -> None:
        """Raise InsufficientScope unless the key allows it, WritingRefused without keys."""
        if scope not in self.scopes:
            if self.key is None:
                raise WritingRefused(
                    "writes need an API key; create one on the machine of the "
                    "service (klsa-keys add NAME --scope write), or start "
                    "klsa-serve with --writable if everyone who can reach it may "
                    "write"
                )
            raise InsufficientScope(
                f"API key {self.key!r} lacks the scope `{scope}`; use a key with "
                f"it (klsa-keys add NAME --scope {scope})",
                scope=scope,
            )
        if index is not None and not self.sees(index):
            raise InsufficientScope(
                f"API key {self.key!r} is not valid for index {index!r}; use another key",
                scope=scope,
                field="index",
            )

    def require_all(self, scope: str) -> None:
        """InsufficientScope unless that may be done, and to every index. See `require`."""
        self.require(scope)
        if self.indexes is not None:
            raise InsufficientScope(
                f"API key {self.key!r} is restricted to some indexes; use a key for all",
                scope=scope,
            )


EVERYTHING = Access(frozenset({"search", "write", "metrics"}))
NOTHING = Access(frozenset())


class Keys:
    """The keys of a file, as it is now: it is looked at with every request.

    path     of the file; without it, nobody needs a key
    anybody  what may be done then
    Once there was a file a key is needed, whatever becomes of the file. SettingsError or OSError
    where there is one that cannot be read.
    """

    def __init__(self, path: Path, anybody: Collection[str]) -> None:
        self._path = path
        self._file = os.fspath(path)  # half the time of a Path
        self._anybody = Access(frozenset(anybody))
        self._mark: tuple[int, ...] | None = None
        self._keys: dict[str, Key] | None = None
        self._told: str | None = None
        self._look()

    @property
    def needed(self) -> bool:
        """Whether a key is needed."""
        return self._keys is not None

    def access(self, authorization: str | None) -> Access:
        """What a request with such a header may do.

        InvalidApiKey for an unknown or revoked key, SettingsError if the file cannot be read.
        """
        try:
            self._look()
        except (SettingsError, OSError) as failure:
            self._mark = None  # whatever it becomes is looked at
            if str(failure) != self._told:
                self._told = str(failure)
                _log.error("%s", failure)
            raise SettingsError("the key file of the service cannot be read; see its log") from None
        if self._keys is None:
            return self._anybody
        if authorization is None:
            raise InvalidApiKey("API key required; send `Authorization: Bearer KEY`", sent=False)
        scheme, _, token = authorization.strip().partition(" ")
        key = found(self._keys, token.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            raise InvalidApiKey("invalid or revoked API key; create one with `klsa-keys add NAME`")
        if key.is_over():
            raise InvalidApiKey(
                f"API key {key.name!r} has expired; create one with `klsa-keys add NAME`"
            )
        return Access.by(key)

    def _look(self) -> None:
        try:
            status = os.stat(self._file)
        except FileNotFoundError:
            self._mark = None
            self._keys = None if self._keys is None else {}
            return
        mark = status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
        if mark != self._mark:
            self._keys = self._keys or {}  # from now on one is needed, even if this fails
            self._keys = {key.id: key for key in read_keys(self._path)}
            self._mark, self._told = mark, None


class Gate:
    """ASGI middleware that lets nobody in without a key that counts, and notes what it allows."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http":
            try:
                access = self._keys.access(Headers(scope=scope).get("authorization"))
            except KlsaError as refused:
                if needs_key(scope["path"]):
                    await explained(refused)(scope, receive, send)
                    return
                access = NOTHING
            scope.setdefault("state", {})["access"] = access
        await self._app(scope, receive, send)
