"""Aliases: other names of indexes in a home, each a small file in the place an index would have.

    klsa-search alias
    reports-2                the index of the same home

So a name is that of an index or of an alias, never of both, and pointing it elsewhere is one step.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from klsa_search.errors import IndexBusy, IndexNotFound, SettingsError
from klsa_search.storage.files import is_real, read_regular, sync, write_fresh
from klsa_search.storage.locks import exclusive_lock
from klsa_search.storage.names import CURRENT, NAME, NEW, index_path

_ALIAS: Final = re.compile(rf"klsa-search alias\n({NAME.pattern})\n")
_LOCK: Final = ".aliases.lock"
_PATIENCE: Final = 10.0
"""Seconds to wait for another process that changes an alias."""


def alias_at(path: Path) -> str | None:
    """Name of the index that the alias at a path stands for; None where there is none."""
    if not NAME.fullmatch(path.name) or not is_real(path, stat.S_IFREG):
        return None
    try:
        found = _ALIAS.fullmatch(read_regular(path, 200).decode("ascii", "replace"))
    except OSError:  # it went just now, or is not for us to read
        return None
    return found and found[1]


def followed(path: Path) -> Path:
    """Folder of the index that is meant by a path: that of an alias, or itself."""
    target = alias_at(path)
    return path if target is None else path.with_name(target)


def aliases_in(home: Path) -> dict[str, str]:
    """Names of the indexes that the aliases of a home stand for, by alias. Cost: a look at each."""
    if not home.is_dir():
        return {}
    found = {path.name: alias_at(path) for path in sorted(home.iterdir())}
    return {name: target for name, target in found.items() if target is not None}


def set_alias(home: Path, name: str, target: str) -> None:
    """Have a name stand for an index from now on, in one step, durably.

    Requests by it get the old index or the new one. IndexNotFound where the home
    has no such index, SettingsError for a name that is taken, or none; IndexBusy; StoreError where
    the home cannot be written to.
    """
    path, index = index_path(home, name), index_path(home, target)
    if alias_at(index) is not None:
        raise SettingsError(
            f"`{target}` is itself an alias of `{alias_at(index)}`; name that index", field="index"
        )
    if not os.path.lexists(index / CURRENT):
        raise IndexNotFound(
            f"no index `{target}` in `{home}`; build it before you set the alias `{name}`",
            field="index",
        )
    with _changing(home):
        if os.path.lexists(path) and alias_at(path) is None:
            raise SettingsError(
                f"name = {name!r}: `{path}` exists and is not an alias; choose another name",
                field="name",
            )
        fresh = home / f".{name}.{NEW}"
        fresh.unlink(missing_ok=True)  # of a process that died
        write_fresh(fresh, f"klsa-search alias\n{target}\n")
        try:
            os.replace(fresh, path)
        except IsADirectoryError:
            fresh.unlink()
            raise IndexBusy(
                f"`{path}` is being built by another process; choose another name"
            ) from None
        sync(home)


def remove_alias(home: Path, name: str) -> None:
    """Remove an alias; the index it stands for stays. IndexNotFound where there is none;
    IndexBusy, StoreError.
    """
    path = index_path(home, name)
    if alias_at(path) is None:
        raise IndexNotFound(
            f"no alias `{name}` in `{home}`; list aliases with `klsa-index alias`", field="name"
        )
    with _changing(home):
        path.unlink(missing_ok=True)
        sync(home)


def _changing(home: Path) -> AbstractContextManager[None]:
    """Hold the lock of the aliases of a home; IndexBusy, naming who, while another does."""
    return exclusive_lock(home / _LOCK, patience=_PATIENCE)
