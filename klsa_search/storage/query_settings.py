"""Settings that only queries use, changed since the build, in the file SETTINGS of a generation.

    sha256 5a0c...
    {"alpha": 0.5, "page_title": "Manuals"}

The first line is the checksum of the rest. Like the log of writes, they belong to a generation: a
refit builds the next one with them, and a rollback returns to those of the earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klsa_search.core.config import QUERY_SETTINGS, Settings
from klsa_search.errors import IndexDamaged, SettingsError
from klsa_search.storage.checked_file import read_checked, replace_checked
from klsa_search.storage.files import is_exhausted, sync
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import SETTINGS


def current_settings(generation: Path, manifest: Manifest) -> Settings:
    """Return the settings of a generation: of its build, with later changes; IndexDamaged."""
    built = manifest.checked_settings()
    try:
        changes = json.loads(read_checked(generation / SETTINGS))
        if not isinstance(changes, dict) or not changes.keys() <= QUERY_SETTINGS:
            raise ValueError("it has other settings than those of queries")
        return with_changes(built, changes)
    except FileNotFoundError:
        return built
    except (OSError, ValueError, RecursionError, SettingsError) as error:
        if is_exhausted(error):
            raise
        raise IndexDamaged(
            f"cannot read `{generation / SETTINGS}` ({error}); return to the settings of the "
            f"build with `klsa-index settings {generation.parent.name} --reset`, then set them "
            "again"
        ) from error


def current_manifest(generation: Path) -> Manifest:
    """Return the manifest of a generation, with its current settings; errors: `read_manifest`."""
    manifest = read_manifest(generation)
    settings = current_settings(generation, manifest)
    return manifest.model_copy(update={"settings": settings.model_dump(mode="json")})


def changes_of(built: Settings, settings: Settings) -> dict[str, Any]:
    """Return the query settings that differ from those of a build, as JSON."""
    old, new = built.model_dump(mode="json"), settings.model_dump(mode="json")
    return {name: new[name] for name in sorted(QUERY_SETTINGS) if new[name] != old[name]}


def with_changes(built: Settings, changes: Mapping[str, Any]) -> Settings:
    """Return the settings of a build with changes; SettingsError."""
    return Settings.checked({**built.model_dump(), **changes})


def replace_settings(generation: Path, built: Settings, settings: Settings) -> None:
    """Replace the changed settings of a generation atomically and durably.

    built  settings of its build; if none differs, the file is removed
    The caller has the lock of the log. StoreError if something else is in the place of the file.
    """
    changes = changes_of(built, settings)
    content = json.dumps(changes, ensure_ascii=False, indent=1) + "\n" if changes else None
    replace_checked(generation / SETTINGS, content)
    sync(generation)


def copy_settings(generation: Path, manifest: Manifest, target: Path) -> None:
    """Copy the changed settings of a generation to a folder; IndexDamaged."""
    replace_settings(target, manifest.checked_settings(), current_settings(generation, manifest))
