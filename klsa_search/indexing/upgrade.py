"""Upgrade an index from an older format to the current one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from klsa_search.indexing.build import build
from klsa_search.indexing.stored import Stored
from klsa_search.progress import Progress
from klsa_search.search.index import Index
from klsa_search.store.current import current_generation
from klsa_search.store.former import former_documents, former_settings
from klsa_search.store.manifest import FORMAT_VERSION, read_manifest


def upgrade(
    path: str | Path, *, progress: Progress | bool | None = None, memory: int | str | None = None
) -> Index:
    """Upgrade the index at `<home>/<name>` to the current format, with its settings, and open it.

    A new generation is built from the stored documents, and the old one is kept; an index of the
    current format is only opened. Cost: that of `build`. IndexNotFound; FormatUnsupported for
    formats older than 3; IndexDamaged if the stored documents are; SettingsError (memory).

    >>> upgrade("index/reports")
    <Index reports generation 000001: 6 documents>
    """
    path = Path(path)
    generation = current_generation(path)
    manifest = read_manifest(generation, former=True)
    if manifest.format_version == FORMAT_VERSION:
        return Index(generation)
    return build(
        Stored(
            manifest, manifest.counts.documents, partial(former_documents, generation, manifest)
        ),
        name=path.name,
        home=path.parent,
        progress=progress,
        memory=memory,
        replace=True,
        **former_settings(manifest),
    )
