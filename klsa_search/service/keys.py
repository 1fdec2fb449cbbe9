"""API keys and users: their scopes and indexes, in a file that contains no secret.

A key has 256 random bits and is printed once. The file has its SHA-256: that many keys cannot be
tried, so a slow hash (scrypt) would delay every request and add no security. The first characters
of a key are its ID, and reveal nothing of the rest.

A user is a key without a token: it has a password, which only begins a session, so its hash is
slow. The service chooses the first one, so it cannot be guessed; browsers remember it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Annotated, Final, Literal

from filelock import FileLock
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from klsa_search.errors import InvalidApiKey, SettingsError
from klsa_search.service.changes import ChangeNotices
from klsa_search.storage.files import read_regular, replace_file

_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"  # none that looks like another
_GROUPS, _GROUP = 4, 5  # groups of a password, and their letters: 99 random bits
_COST, _BLOCK, _REPEATS = 2**15, 8, 3
"""Parameters n, r and p of scrypt: 32 MiB and about 0.2 s, as OWASP recommends."""

_MEMORY: Final = 2**26  # bytes that scrypt may use, more than twice what it needs


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


Scope = Literal["search", "write", "metrics", "users"]

NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""Pattern of the names of keys, which appear in logs."""

FILE: Final = ".keys.json"  # name of the key file in the index directory
_USE_SECONDS: Final = 60.0


class Key(BaseModel):
    """One key or user as stored; `indexes` None means all.

    sha256    of the key; None for a user
    password  hash of that of a user; None for a key
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    id: Annotated[str, Field(pattern="^[0-9a-f]{8}$")]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    password: str | None = None
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    indexes: tuple[str, ...] | None = None
    created: AwareDatetime
    expires: AwareDatetime | None = None

    @property
    def is_user(self) -> bool:
        """Whether it is a user, who signs in by name and password."""
        return self.password is not None

    def is_expired(self) -> bool:
        """Return whether the key has expired."""
        return self.expires is not None and self.expires <= datetime.now(UTC)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    keys: list[Key] = []


def read_keys(path: Path) -> list[Key]:
    """Return the keys of a file in the order of creation.

    SettingsError for an invalid file; FileNotFoundError and other OSError.
    """
    try:
        return _File.model_validate_json(read_regular(path)).keys
    except ValidationError as wrong:
        fault = wrong.errors()[0]
        location = ".".join(map(str, fault["loc"])) or "it"
        raise SettingsError(
            f"cannot read API keys from `{path}` ({location}: {fault['msg']}); "
            "correct the file, or move it away and create new keys with "
            "`klsa-keys add`",
            field="keys",
        ) from None


def add_key(
    path: Path,
    name: str,
    scopes: Sequence[Scope],
    indexes: Sequence[str] | None = None,
    *,
    lifetime: timedelta | None = None,
    is_user: bool = False,
) -> str:
    """Create a key and return it, or a user and return its password.

    It cannot be read again. SettingsError for an invalid name, or one that is taken.
    """
    if not re.fullmatch(NAME, name):
        raise SettingsError(
            f"name = {name!r} is not a name of a key or user: use 1 to 64 letters, digits, '.', "
            "'_' or '-', beginning with a letter or digit",
            field="name",
        )
    identity, now = secrets.token_hex(4), datetime.now(UTC).replace(microsecond=0)
    secret = new_password() if is_user else f"klsa_{identity}_{secrets.token_urlsafe(32)}"
    key = Key(
        name=name,
        id=identity,
        sha256=None if is_user else digest_of(secret).hex(),
        password=hashed(secret) if is_user else None,
        scopes=tuple(sorted(set(scopes))),
        indexes=None if indexes is None else tuple(sorted(set(indexes))),
        created=now,
        expires=now + lifetime if lifetime else None,
    )
    with _changing(path) as keys:
        if any(other.name == name for other in keys):
            raise SettingsError(
                f"`{path}` already has a key or user {name!r}; choose another name, or revoke "
                "that one first (klsa-keys revoke)",
                field="name",
            )
        keys.append(key)
    return secret


def change_password(path: Path, user: Key, password: str) -> Key:
    """Replace the password of a user, and return the user with a new ID, which ends sessions.

    InvalidApiKey if the user was removed or changed meanwhile. Cost: 0.2 s.
    """
    update = {"id": secrets.token_hex(4), "password": hashed(password)}
    changed = user.model_copy(update=update)
    with _changing(path) as keys:
        if user not in keys:
            raise InvalidApiKey(f"user {user.name!r} was changed or removed; sign in again")
        (KeyUses(path).folder / user.id).unlink(missing_ok=True)
        keys[keys.index(user)] = changed
    return changed


def revoke_key(path: Path, name: str, *, is_user: bool | None = None) -> None:
    """Remove a key or user; SettingsError if there is none of that name.

    is_user  whether it must be a user, or must not be; by default either
    """
    with _changing(path) as keys:
        eligible = [key for key in keys if is_user in (None, key.is_user)]
        removed = [key for key in eligible if key.name == name]
        if not removed:
            kind = "user" if is_user else "key"
            choices = ", ".join(key.name for key in eligible) or "none"
            raise SettingsError(f"`{path}` has no {kind} {name!r}; it has: {choices}", field="name")
        for key in removed:
            (KeyUses(path).folder / key.id).unlink(missing_ok=True)
            keys.remove(key)


@lru_cache(1024)
def digest_of(token: str) -> bytes:
    """Return the SHA-256 of a token. OpenSSL takes 2 to 20 µs: as long as a tenth of a search."""
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


class KeyUses:
    """Times at which keys were used last, as those of files in a folder beside the key file.

    All processes of a service note them, each at most once a minute for a key.
    """

    def __init__(self, path: Path) -> None:
        self.folder = path.with_name(f"{path.name}.used")
        self._noted: dict[str, float] = {}  # in seconds of `monotonic`, by ID

    def note(self, key: Key) -> None:
        """Note that a key is used now. Cost: 0.2 µs, or 20 once a minute."""
        now = monotonic()
        if now - self._noted.get(key.id, -_USE_SECONDS) >= _USE_SECONDS:
            self._noted[key.id] = now
            with suppress(OSError):  # a folder that is read-only
                self.folder.mkdir(mode=0o700, exist_ok=True)
                (self.folder / key.id).touch(mode=0o600)

    def last(self, key: Key) -> datetime | None:
        """Return when a key was used last, to the minute; None if it was not."""
        try:
            seconds = (self.folder / key.id).stat().st_mtime
        except FileNotFoundError:
            return None
        return datetime.fromtimestamp(seconds, UTC).replace(second=0, microsecond=0)


@contextmanager
def _changing(path: Path) -> Iterator[list[Key]]:
    """Yield the keys to change, then replace the file atomically, unless the block fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock"), timeout=10):
        try:
            keys = read_keys(path)
        except FileNotFoundError:
            keys = []
        yield keys
        replace_file(path, _File(keys=keys).model_dump_json(indent=1) + "\n", mode=0o600)
    ChangeNotices(path.parent).announce_to_services(path.name)
