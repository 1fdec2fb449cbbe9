"""Keys: who may ask what, in a file that holds no secret.

A key is 256 random bits, told once. What is kept of it is its SHA-256: nobody can try so many keys,
so that a hash made to be slow (scrypt) would hold up every request and protect nothing more. The
first characters of a key find its row, and say nothing of the rest.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal

from filelock import FileLock
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from klsa_search.errors import SettingsError
from klsa_search.storage.files import read_regular, sync, write_fresh

Scope = Literal["search", "write", "metrics"]

NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""What a key may be called: it stands in logs."""

_TOKEN = re.compile(r"klsa_(?P<id>[0-9a-f]{8})_[A-Za-z0-9_-]{43}")
_NOTHING = bytes(32)
"""Compared with where there is no such row, so that it takes as long."""


class Key(BaseModel):
    """One key as it is kept; `indexes` None stands for all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    id: Annotated[str, Field(pattern="^[0-9a-f]{8}$")]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    scopes: Annotated[tuple[Scope, ...], Field(min_length=1)]
    indexes: tuple[str, ...] | None = None
    created: AwareDatetime
    expires: AwareDatetime | None = None

    def is_over(self) -> bool:
        """Whether it counts no more."""
        return self.expires is not None and self.expires <= datetime.now(UTC)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    keys: list[Key] = []


def read_keys(path: Path) -> list[Key]:
    """The keys of a file, in the order they were made; SettingsError for what is no such file.

    FileNotFoundError and other OSError.
    """
    try:
        return _File.model_validate_json(read_regular(path)).keys
    except ValidationError as wrong:
        fault = wrong.errors()[0]
        place = ".".join(map(str, fault["loc"])) or "it"
        raise SettingsError(
            f"cannot read API keys from `{path}` ({place}: {fault['msg']}); "
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
    lasts: timedelta | None = None,
) -> str:
    """Make a key and return it: it cannot be had again.

    SettingsError for a name that is taken, or none.
    """
    if not re.fullmatch(NAME, name):
        raise SettingsError(
            f"name = {name!r} is not a key name: use 1 to 64 letters, digits, '.', "
            "'_' or '-', beginning with a letter or digit",
            field="name",
        )
    identity = secrets.token_hex(4)
    token = f"klsa_{identity}_{secrets.token_urlsafe(32)}"
    now = datetime.now(UTC).replace(microsecond=0)
    key = Key(
        name=name,
        id=identity,
        sha256=sha256(token.encode()).hexdigest(),
        scopes=tuple(sorted(set(scopes))),
        indexes=None if indexes is None else tuple(sorted(set(indexes))),
        created=now,
        expires=now + lasts if lasts else None,
    )

    def added(keys: list[Key]) -> list[Key]:
        if any(each.name == name for each in keys):
            raise SettingsError(
                f"`{path}` already has a key {name!r}; choose another name, or "
                "revoke that key first (klsa-keys revoke)",
                field="name",
            )
        return [*keys, key]

    _change(path, added)
    return token


def revoke_key(path: Path, name: str) -> None:
    """Have a key count no more; SettingsError where there is none of that name."""

    def left(keys: list[Key]) -> list[Key]:
        kept = [each for each in keys if each.name != name]
        if len(kept) == len(keys):
            known = ", ".join(each.name for each in keys) or "none"
            raise SettingsError(
                f"`{path}` has no key {name!r}; its keys are: {known}", field="name"
            )
        return kept

    _change(path, left)


def found(keys: dict[str, Key], token: str) -> Key | None:
    """The key that this is, by its identity, once the whole proved right; in constant time."""
    parts = _TOKEN.fullmatch(token)
    key = keys.get(parts["id"]) if parts else None
    kept = bytes.fromhex(key.sha256) if key else _NOTHING
    given = sha256(token.encode("utf-8", "surrogateescape")).digest()
    return key if hmac.compare_digest(given, kept) else None


def _change(path: Path, change: Callable[[list[Key]], list[Key]]) -> None:
    """Put another file in the place of that one: whoever reads finds the old or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock"), timeout=10):
        try:
            keys = read_keys(path)
        except FileNotFoundError:
            keys = []
        text = _File(keys=change(keys)).model_dump_json(indent=1) + "\n"
        fresh = path.with_name(f"{path.name}.klsa-new")
        with suppress(FileNotFoundError):
            fresh.unlink()  # of a process that died
        write_fresh(fresh, text, mode=0o600)
        os.replace(fresh, path)
        sync(path.parent)
