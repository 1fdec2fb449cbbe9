"""Settings that only queries use, changed since the build: rows of the catalogue.

Like the log of writes, they belong to a build: a refit makes the next one with them, and a rollback
returns to those of the earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klsa_search.core.config import QUERY_SETTINGS, Settings
from klsa_search.storage.catalog_entry import Entry, change_entry, read_entry
from klsa_search.storage.manifest import Manifest, read_manifest


def stored_settings(entry: Entry, build: str, built: Settings) -> Settings:
    """Return the settings of a build of an index, with later changes; IndexDamaged.

    build  name of its generation, or of the build of all partitions
    """
    changes: dict[str, str] = dict(entry.rows("settings"))
    if build not in changes:
        return built
    return Settings.checked(built.model_dump() | json.loads(changes[build]))


def read_settings(path: Path, build: str, built: Settings) -> Settings:
    """Return the settings of a build of the index at a path: see `stored_settings`."""
    with read_entry(path) as entry:
        return stored_settings(entry, build, built)


def current_settings(generation: Path, manifest: Manifest) -> Settings:
    """Return the settings of a generation: of its build, with later changes; IndexDamaged."""
    return read_settings(generation.parent, generation.name, manifest.checked_settings())


def current_manifest(generation: Path) -> Manifest:
    """Return the manifest of a generation, with its current settings; errors: `read_manifest`."""
    manifest = read_manifest(generation)
    settings = current_settings(generation, manifest)
    return manifest.model_copy(update={"settings": settings.model_dump(mode="json")})


def changes_of(built: Settings, settings: Settings) -> dict[str, Any]:
    """Return the query settings that differ from those of a build, as JSON."""
    old, new = built.model_dump(mode="json"), settings.model_dump(mode="json")
    return {name: new[name] for name in sorted(QUERY_SETTINGS) if new[name] != old[name]}


def replace_settings(path: Path, build: str, built: Settings, settings: Settings) -> None:
    """Replace the changed settings of a build of the index at a path.

    built  settings of the build
    The caller has the lock of the log, so that no refit begins to use the earlier ones.
    """
    if changes := changes_of(built, settings):
        with change_entry(path) as entry:
            store_settings(entry, build, changes)
    else:
        forget_settings(path, build)


def forget_settings(path: Path, build: str) -> None:
    """Remove the changed settings of a build, if there are any."""
    with read_entry(path) as entry:
        if not entry.is_known:
            return
    with change_entry(path) as entry:
        store_settings(entry, build, {})


def store_settings(entry: Entry, build: str, changes: Mapping[str, Any]) -> None:
    """Replace the changed settings of a build; none removes them."""
    entry.delete("settings", "build = ?", [build])
    if changes:
        entry.insert("settings", [(build, json.dumps(changes, ensure_ascii=False))])
