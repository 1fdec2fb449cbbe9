"""Rebuild, refit and repair: write a new generation from stored documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from heapq import merge
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

import numpy as np

from klsa_search.analysis.tokenizers import with_trusted_tokenizer
from klsa_search.collection.model import Document
from klsa_search.core.config import Settings
from klsa_search.core.keywords import IndexSettings
from klsa_search.core.progress import Progress, open_progress
from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.indexing.build import build
from klsa_search.indexing.checks import memory_budget
from klsa_search.indexing.partitions import Division, build_divided
from klsa_search.indexing.reading import StoredCollection
from klsa_search.indexing.repartition import rebuilt, stored_documents
from klsa_search.indexing.verify import verify_deep
from klsa_search.search.engine.seeds import FIRST_LATER
from klsa_search.search.index import Index
from klsa_search.search.models import Models
from klsa_search.search.opening import open_index
from klsa_search.storage.arrays import open_array
from klsa_search.storage.checksums import verify_shared
from klsa_search.storage.current import current_build, current_generation, last_resort
from klsa_search.storage.export import live_documents
from klsa_search.storage.log import WriteLog
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import MANIFEST, index_of
from klsa_search.storage.partitions import documents_of, folders_of, terms_name
from klsa_search.storage.query_settings import current_settings
from klsa_search.storage.recovery import RecoveredRecords, repair_current

if TYPE_CHECKING:
    from klsa_search.embedding.model import Embedder


def rebuild(
    index: Index,
    *,
    embedders: Mapping[str, Embedder | str] | None = None,
    progress: Progress | bool | None = None,
    memory: int | str | None = None,
    **changes: Unpack[IndexSettings],
) -> Index:
    """Rebuild an index with other settings from its documents, and open the new generation.

    embedders  compute the vectors that documents lack, by space: see `embed`
    A generation is immutable, so each change of settings makes a new one, identical to a build with
    these settings. `index` stays open, and usable until the build after this one.

    Cost: that of `build`. Concurrent writes are replayed, as by `refit`. Raise SettingsError;
    StoreError if the index was replaced meanwhile.

    >>> bolder = rebuild(index, alpha=1.0)
    >>> bolder.settings.alpha
    1.0
    """
    models = Models.opened(embedders or {}, None)
    with open_progress(progress) as report:
        settings = with_trusted_tokenizer(changes)
        return rebuilt(index, settings, report, memory, models=models)


def refit(
    path: str | Path,
    *,
    embedders: Mapping[str, Embedder | str] | None = None,
    progress: Progress | bool | None = None,
    memory: int | str | None = None,
    **changes: Unpack[IndexSettings],
) -> Index:
    """Rebuild the index at `<home>/<name>` from its documents, with its settings, and open it.

    embedders  compute the vectors that documents lack, by space: see `embed`
    changes    settings to change
    The result is identical to a `build` of the same documents in the same order. Searches and
    writes continue meanwhile; concurrent writes are replayed. The previous generation is kept, with
    its log, for `rollback`. Cost: that of `build`. Raise IndexNotFound, IndexDamaged;
    SettingsError; StoreError during another build.

    >>> refit("index/reports")
    <Index reports generation 000002: 6 documents>
    """
    changes = cast(IndexSettings, with_trusted_tokenizer(changes))
    index = open_index(path)
    try:
        return rebuild(index, embedders=embedders, progress=progress, memory=memory, **changes)
    finally:
        index.close()


def build_like(
    index: Index,
    *,
    home: str | Path,
    name: str,
    progress: Progress | bool | None = None,
    **changes: Unpack[IndexSettings],
) -> Index:
    """Build another index of the same documents, with other settings. Cost and errors: `build`.

    An existing index of that name is replaced.

    >>> build_like(index, home=Path("index"), name="other", k1=2.0).settings.k1
    2.0
    """
    settings = {**index.settings.model_dump(), **changes}
    return build(
        stored_documents(index.snapshot(), Settings.checked(settings)),
        name=name,
        home=home,
        progress=progress,
        replace=True,
        **settings,
    )


@dataclass(frozen=True)
class Repair:
    """Result of a repair.

    index  the index after the repair, open
    fault  description of the damage; None if there was none, and nothing was changed

    >>> repair("index/reports")
    Repair(index=<Index reports generation 000001: 6 documents>, fault=None)
    """

    index: Index
    fault: str | None


def repair(
    path: str | Path, *, progress: Progress | bool | None = None, memory: int | str | None = None
) -> Repair:
    """Verify the index at `<home>/<name>` with `verify_deep`, and repair it, including all writes.

    CURRENT is rewritten if it is damaged. For other damage, a new generation is built from the
    documents and the log of the damaged one, which is kept; writes are blocked meanwhile. Only
    verified data is used: documents by their checksums in the manifest, writes by their own
    checksums. Headers of array files and offsets of documents are recovered. Raise IndexDamaged if
    something cannot be verified, such as the manifest: then nothing else is changed, and the
    message names the file and the next step. Raise IndexNotFound;
    FormatUnsupported; StoreError during another build or write; SettingsError (memory). Cost: that
    of `verify_deep`, and of `build` after damage.

    >>> repair("index/reports").fault is None
    True
    """
    path = Path(path)
    fault = repair_current(path)
    build = current_build(path)
    for folder in folders_of(build):
        # The terms are made of the partitions, which are not.
        if folder.is_dir() or folder.name != terms_name(build.name):
            fault = repair_current(folder) or fault
    verify_shared(path)
    try:
        read_manifest(build)
        verify_deep(path)
        return Repair(open_index(path), fault)
    except IndexDamaged as damage:
        fault = damage.message
    recovered = [(generation, _recovered(generation)) for generation in documents_of(build)]

    def read() -> Iterator[Document]:
        ordered = [_ordered(number, *part) for number, part in enumerate(recovered)]
        return (document for *_, document in merge(*ordered, key=itemgetter(0, 1)))

    manifest, size = _manifest_of(build), sum(records.size for _, records in recovered)
    collection, settings = StoredCollection(manifest, size, read), current_settings(build, manifest)
    division, budget = Division(len(recovered), 1), memory_budget(memory)
    with open_progress(progress) as report:
        index = build_divided(path, collection, settings, division, report, budget, replace=True)
    return Repair(index, fault)


def _manifest_of(generation: Path) -> Manifest:
    try:
        return read_manifest(generation)
    except IndexDamaged as damage:
        raise IndexDamaged(
            f"`{generation / MANIFEST}` is damaged, so nothing can be verified, and nothing was "
            f"built; {last_resort(index_of(generation))}"
        ) from damage


def _recovered(generation: Path) -> RecoveredRecords:
    """Return the documents of a damaged generation, as they were written.

    Raise IndexDamaged if the manifest or the documents have changed.
    """
    manifest = _manifest_of(generation)
    records = RecoveredRecords(generation)
    if changed := records.fault(manifest):
        raise IndexDamaged(
            f"{changed}, so a document may be altered, and nothing was built; "
            f"{last_resort(index_of(generation))}"
        )
    return records


def _read(generation: Path, records: RecoveredRecords) -> Iterator[Document]:
    # The lock is taken: no other process builds or writes.
    if current_generation(generation.parent) != generation:
        raise StoreError(
            f"`{generation.parent}` was rebuilt meanwhile; verify it, then repair it if needed"
        )
    yield from live_documents(records, WriteLog(generation))


def _ordered(
    partition: int, generation: Path, records: RecoveredRecords
) -> Iterator[tuple[int, int, Document]]:
    """Return the documents of a partition, each after what orders it among those of all.

    Those of the build come in the order of the source, then later ones. If the numbers in the
    source are damaged, only this order changes. Cost: reading the records once more.
    """
    ordinals = np.arange(records.size)
    with suppress(IndexDamaged):
        stored = open_array(generation, "ordinals")
        ordinals = stored if stored.shape == ordinals.shape else ordinals
    written = {write.id for write in WriteLog(generation).readable_rows()}
    kept = [
        ordinal
        for ordinal, document in zip(ordinals.tolist(), records.documents(), strict=True)
        if document.id not in written
    ]
    # `repeat` is endless.
    return zip(
        chain(kept, repeat(FIRST_LATER)),
        repeat(partition),
        _read(generation, records),
        strict=False,
    )
