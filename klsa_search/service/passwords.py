"""Passwords of people: random ones, and their hashes by scrypt (RFC 7914).

The service chooses the first password of a person, so it cannot be guessed; browsers remember it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
from typing import Final

_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"
"""None that looks like another."""

_GROUPS: Final = 4
_GROUP: Final = 5
"""Letters in a group: 4 groups of 5 have 99 random bits."""

_COST: Final = 2**15
_BLOCK: Final = 8
_REPEATS: Final = 3
"""Parameters n, r and p of scrypt: 32 MiB and about 0.2 s, as OWASP recommends."""

_MEMORY: Final = 2**26
"""Bytes that scrypt may use, more than twice what it needs."""


def new_password() -> str:
    """Return a random password, such as `k7wnq-c4hzb-m9xte-2rfvd`."""
    groups = ("".join(secrets.choice(_LETTERS) for _ in range(_GROUP)) for _ in range(_GROUPS))
    return "-".join(groups)


def hashed(password: str) -> str:
    """Return the salted hash of a password, in hexadecimal digits. Cost: 0.2 s."""
    salt = secrets.token_bytes(16)
    return f"{salt.hex()}${_scrypt(password, salt).hex()}"


def is_password(password: str, hash_: str | None) -> bool:
    """Return whether a password has this hash. Cost: 0.2 s.

    Without a hash, because nobody has the name, it is False and takes as long: the time of an
    answer must not tell which names exist.
    """
    salt, _, digest = (hash_ or f"{'0' * 32}$").partition("$")
    matches = hmac.compare_digest(_scrypt(password, bytes.fromhex(salt)).hex(), digest)
    return matches and hash_ is not None


def _scrypt(password: str, salt: bytes) -> bytes:
    # Keyboards differ in how they write é.
    written = unicodedata.normalize("NFKC", password.strip())
    return hashlib.scrypt(
        written.encode("utf-8", "surrogatepass"),
        salt=salt,
        n=_COST,
        r=_BLOCK,
        p=_REPEATS,
        maxmem=_MEMORY,
        dklen=32,
    )
