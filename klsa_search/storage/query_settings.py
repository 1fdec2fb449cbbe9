"""Query settings of a build that were changed after it, rows of the catalogue.

Settings that only queries use may change. The changes belong to the build, like the log of writes:
a refit makes the next one with them, and a rollback returns to those of the earlier one.
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


def current_settings(generation: Path, manifest: Manifest) -> Settings:
    """Return the settings of a generation: of its build, with later changes; IndexDamaged."""
    with read_entry(generation.parent) as entry:
        return stored_settings(entry, generation.name, manifest.checked_settings())


def current_manifest(generation: Path) -> Manifest:
    """Return the manifest of a generation, with its current settings; errors: `read_manifest`."""
    manifest = read_manifest(generation)
    settings = current_settings(generation, manifest)
    return manifest.model_copy(update={"settings": settings.model_dump(mode="json")})


def replace_settings(generation: Path, built: Settings, settings: Settings) -> None:
    """Replace the changed query settings of a generation by those that differ from its build's.

    built  settings of the build
    The caller has the lock of the log, so that no refit begins to use the earlier ones.
    """
    old, new = built.model_dump(mode="json"), settings.model_dump(mode="json")
    changes = {name: new[name] for name in sorted(QUERY_SETTINGS) if new[name] != old[name]}
    write_settings(generation, changes)


def write_settings(generation: Path, changes: Mapping[str, Any]) -> None:
    """Replace the changed settings of a generation; none removes them, if there are any."""
    path = generation.parent
    with read_entry(path) as entry:
        if not changes and entry.id is None:
            return
    with change_entry(path) as entry:
        entry.delete("settings", "build = ?", [generation.name])
        if changes:
            row = generation.name, json.dumps(changes, ensure_ascii=False)
            entry.insert("settings", [row])
