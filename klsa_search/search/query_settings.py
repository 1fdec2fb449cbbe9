"""Change settings that only queries use, without a refit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klsa_search.core.config import QUERY_SETTINGS, Settings
from klsa_search.errors import SettingsError
from klsa_search.search.rankers import ranker_of
from klsa_search.storage.current import current_generation
from klsa_search.storage.generations import writing
from klsa_search.storage.manifest import read_manifest
from klsa_search.storage.partitions import is_partitioned, read_partitions, require_index
from klsa_search.storage.query_settings import read_settings, replace_settings


def needing_refit(built: Settings, chosen: Settings) -> list[str]:
    """Return the names of the settings that need another build.

    built   settings of the build
    chosen  settings wanted now
    """
    names = [
        name
        for name in type(built).model_fields
        if name not in QUERY_SETTINGS and getattr(chosen, name) != getattr(built, name)
    ]
    if ranker_of(chosen.ranker).uses_lsi != ranker_of(built.ranker).uses_lsi:
        names.append("ranker")  # a build stores what it reads
    return names


def refuse_refit(built: Settings, chosen: Settings) -> None:
    """Raise SettingsError if a setting needs another build."""
    if names := needing_refit(built, chosen):
        raise SettingsError(
            f"{names[0]} = {getattr(chosen, names[0])!r} needs another build; change it with "
            "`klsa-index refit`, or `refit` of klsa_search.indexing",
            field=names[0],
        )


def change_settings(path: Path, changes: Mapping[str, Any] | None) -> Settings:
    """Change query settings of the index at a path, and return its settings.

    changes  by name; None returns to the settings of the build
    Raise SettingsError for an invalid setting, or one that needs a refit; IndexNotFound,
    IndexDamaged, IndexBusy, StoreError.
    """
    require_index(path)
    with writing(path):
        if is_partitioned(path):
            partitions = read_partitions(path)
            build, manifest = partitions.generation, partitions.manifest
        else:
            generation = current_generation(path)
            build, manifest = generation.name, read_manifest(generation)
        chosen = built = manifest.checked_settings()
        if changes is not None:
            chosen = Settings.checked(read_settings(path, build, built).model_dump() | {**changes})
            refuse_refit(built, chosen)
        replace_settings(path, build, built, chosen)
    return chosen
