"""Aliases: other names of indexes, each a small file where an index would have its folder.

    klsa-search alias
    reports-2                the index, in the same index directory

So a name is either an index or an alias, and changing an alias is atomic.
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
from klsa_search.storage.names import NAME, NEW, index_path, is_built

_ALIAS: Final = re.compile(rf"klsa-search alias\n({NAME.pattern})\n")
_LOCK: Final = ".aliases.lock"
TIMEOUT: Final = 10.0
"""Seconds to wait for another process that changes an alias."""


def alias_at(path: Path) -> str | None:
    """Return the name of the index that the alias at a path refers to; None if it is no alias."""
    if not NAME.fullmatch(path.name) or not is_real(path, stat.S_IFREG):
        return None
    try:
        match = _ALIAS.fullmatch(read_regular(path, 200).decode("ascii", "replace"))
    except OSError:  # removed meanwhile, or not readable
        return None
    return match and match[1]


def followed(path: Path) -> Path:
    """Return the index folder of a path: the target of an alias, or the path itself."""
    target = alias_at(path)
    return path if target is None else path.with_name(target)


def aliases_in(home: Path) -> dict[str, str]:
    """Return the targets of all aliases in an index directory, by alias. Cost: a stat of each."""
    if not home.is_dir():
        return {}
    targets = {path.name: alias_at(path) for path in sorted(home.iterdir())}
    return {name: target for name, target in targets.items() if target is not None}


def set_alias(home: Path, name: str, target: str) -> None:
    """Point an alias at an index, atomically and durably.

    Concurrent requests get the old index or the new one. Raise IndexNotFound if there is no such
    index, SettingsError for an invalid name or one in use; IndexBusy; StoreError if the index
    directory cannot be written.
    """
    path, index = index_path(home, name), index_path(home, target)
    if alias_at(index) is not None:
        raise SettingsError(
            f"`{target}` is itself an alias of `{alias_at(index)}`; name that index", field="index"
        )
    if not is_built(index):
        raise IndexNotFound(
            f"no index `{target}` in `{home}`; build it before you set the alias `{name}`",
            field="index",
        )
    with _locked(home):
        if os.path.lexists(path) and alias_at(path) is None:
            raise SettingsError(
                f"name = {name!r}: `{path}` exists and is not an alias; choose another name",
                field="name",
            )
        fresh = home / f".{name}.{NEW}"
        fresh.unlink(missing_ok=True)  # left by a process that died
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
    """Remove an alias, not its index. Raise IndexNotFound, IndexBusy or StoreError."""
    path = index_path(home, name)
    if alias_at(path) is None:
        raise IndexNotFound(
            f"no alias `{name}` in `{home}`; list aliases with `klsa-index alias`", field="name"
        )
    with _locked(home):
        path.unlink(missing_ok=True)
        sync(home)


def _locked(home: Path) -> AbstractContextManager[None]:
    """Lock the aliases of an index directory; IndexBusy while another process does."""
    return exclusive_lock(home / _LOCK, timeout=TIMEOUT)
