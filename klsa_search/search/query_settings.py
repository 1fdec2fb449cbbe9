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
from klsa_search.storage.query_settings import current_settings, replace_settings


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
    names += [
        name
        for name in ("coverage", "latent")
        if getattr(chosen, name) and not getattr(built, name)
    ]
    if ranker_of(chosen.ranker).uses_lsi != ranker_of(built.ranker).uses_lsi:
        names.append("ranker")  # it decides on the form of D
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
    current_generation(path)
    with writing(path):
        generation = current_generation(path)
        manifest = read_manifest(generation)
        chosen = built = manifest.checked_settings()
        if changes is not None:
            now = current_settings(generation, manifest)
            chosen = Settings.checked({**now.model_dump(), **changes})
            refuse_refit(built, chosen)
        replace_settings(generation, built, chosen)
    return chosen
