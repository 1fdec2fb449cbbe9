"""Tokens signed by the service: JSON Web Tokens (HS256) with a secret in the index directory.

All workers of an index directory share the secret, so each accepts the tokens of the others. It is
read for every token: if the file is removed or cut short, all tokens are invalid at once, and the
next token makes a new secret.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import jwt
from filelock import FileLock

from klsa_search.errors import InvalidApiKey, StoreError
from klsa_search.storage.files import read_regular, replace_file, writable

Use = Literal["session", "tenant"]
"""What a token is for; a token for one use is invalid for the other."""

FILE: Final = ".secret"
"""Name of the file with the secret."""

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
        """Return a token with these claims; everyone who has it can read them.

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
