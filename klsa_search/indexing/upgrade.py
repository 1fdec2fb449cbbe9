"""Carry an index of a former format over to the present one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klsa_search.collection import Document, Judgement, Problems, Query
from klsa_search.indexing.build import build
from klsa_search.progress import Progress
from klsa_search.search import Index
from klsa_search.store import Manifest, current_generation, read_manifest
from klsa_search.store.former import former_documents, former_settings
from klsa_search.store.manifest import FORMAT_VERSION


class _Former:
    """The documents of an index of a former format as the collection they once were."""

    format = "index"
    root = None

    def __init__(self, generation: Path, manifest: Manifest) -> None:
        self._generation, self._manifest = generation, manifest
        self.name = manifest.source
        self.address = manifest.source_path
        self.problems = Problems(manifest.counts.skipped)

    def __len__(self) -> int:
        return self._manifest.counts.documents

    def documents(self) -> Iterator[Document]:
        return former_documents(self._generation, self._manifest)

    def queries(self) -> list[Query]:
        return []

    def judgements(self) -> list[Judgement]:
        return []


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
        _Former(generation, manifest),
        name=path.name,
        home=path.parent,
        progress=progress,
        memory=memory,
        replace=True,
        **former_settings(manifest),
    )
