"""Aliases of an index directory: other names of its indexes, rows of the catalogue.

A name is either an index or an alias. If a process that began before an alias was set builds an
index of that name, the index has the name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from klsa_search.errors import IndexNotFound, SettingsError
from klsa_search.storage.catalog import Catalog, change_catalog, read_catalog
from klsa_search.storage.names import index_path, is_built


def alias_at(path: Path) -> str | None:
    """Return the name of the index that the alias at a path refers to; None if it is no alias."""
    return aliases_in(path.parent).get(path.name)


def followed(path: Path) -> Path:
    """Return the index folder of a path: the target of an alias, or the path itself."""
    target = None if os.path.lexists(path) else alias_at(path)
    return path if target is None else path.with_name(target)


def aliases_in(home: Path) -> dict[str, str]:
    """Return the targets of all aliases in an index directory, by alias, in alphabetical order.

    Raise IndexDamaged, IndexBusy or StoreError. Cost: 0.3 ms.
    """
    with read_catalog(home) as catalog:
        return _stored(catalog)


def _stored(catalog: Catalog) -> dict[str, str]:
    """Return the targets of all aliases: see `aliases_in`."""
    home = catalog.file.parent
    aliases = sorted(catalog.rows("aliases"))
    return {name: target for name, target in aliases if not os.path.lexists(home / name)}


def set_alias(home: Path, name: str, target: str) -> None:
    """Point an alias at an index, atomically and durably.

    Concurrent requests get the old index or the new one. Raise IndexNotFound if there is no such
    index, SettingsError for an invalid name or one in use; IndexBusy; StoreError if the index
    directory cannot be written.
    """
    path, index = index_path(home, name), index_path(home, target)
    with change_catalog(home) as catalog:
        aliases = _stored(catalog)
        if target in aliases:
            raise SettingsError(
                f"`{target}` is itself an alias of `{aliases[target]}`; name that index",
                field="index",
            )
        if not is_built(index):
            raise IndexNotFound(
                f"no index `{target}`; build it before you set the alias `{name}`", field="index"
            )
        if os.path.lexists(path):
            raise SettingsError(
                f"name = {name!r} is not an alias: an index or file has it; choose another",
                field="name",
            )
        catalog.insert("aliases", [(name, target)])


def delete_alias(home: Path, name: str) -> None:
    """Delete an alias, not its index. Raise IndexNotFound, IndexBusy or StoreError."""
    index_path(home, name)
    if name not in aliases_in(home):
        raise IndexNotFound(
            f"no alias `{name}`; list aliases with `klsa-index alias` or GET /aliases", field="name"
        )
    with change_catalog(home) as catalog:
        catalog.delete("aliases", "name = ?", [name])


def replace_aliases(home: Path, aliases: Mapping[str, str]) -> None:
    """Replace all aliases of an index directory, unless they are equal. Errors: `set_alias`."""
    with read_catalog(home) as catalog:
        if dict(catalog.rows("aliases")) == aliases:
            return
    with change_catalog(home) as catalog:
        catalog.delete("aliases", "1", [])
        catalog.insert("aliases", aliases.items())
