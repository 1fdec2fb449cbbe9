"""Carry an index of a former format over to the present one."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from klsa_search.indexing.build import build
from klsa_search.indexing.stored import Stored
from klsa_search.progress import Progress
from klsa_search.search import Index
from klsa_search.store import current_generation, read_manifest
from klsa_search.store.former import former_documents, former_settings
from klsa_search.store.manifest import FORMAT_VERSION


def upgrade(
    path: str | Path, *, progress: Progress | bool | None = None, memory: int | str | None = None
) -> Index:
    """Carry the index at `<home>/<name>` over to the present format, with its settings; open it.

    It is built from the documents it holds, beside the old generation, which stays as after any
    build; one of the present format is opened as it is. Cost: that of `build`.
    IndexNotFound; FormatUnsupported for formats older than 3; IndexDamaged where the
    documents are not what was indexed, whatever the other files are; SettingsError (memory).

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
