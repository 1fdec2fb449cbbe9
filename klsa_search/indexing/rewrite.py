"""Build an index again from its documents: with other settings, partitions, vectors; or repair it.

    refit(path)                  an index is built again
    refit(path, partitions=4)    and gets four partitions
    embed(path, ...)             an index gets vectors of its documents

The new build has statistics of its own, and is made while searches and writes continue. Then
writers wait while later writes are replayed, and the index uses the new build, in one step. The one
before is kept for `rollback`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from klsa_search.analysis.tokenizers import with_trusted_tokenizer
from klsa_search.collection.model import Document
from klsa_search.core.build_settings import FieldSettings
from klsa_search.core.config import IndexSettings, Settings
from klsa_search.core.parallel import processors
from klsa_search.core.progress import Progress, open_progress
from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.indexing.build import build
from klsa_search.indexing.checks import memory_budget
from klsa_search.indexing.computed_vectors import documents_without_vectors, with_computed_vectors
from klsa_search.indexing.partitions import (
    Division,
    build_divided,
    number_of_workers,
    refuse_unpartitioned,
)
from klsa_search.indexing.reading import StoredCollection
from klsa_search.indexing.replay import refuse_rebuilt, replayed
from klsa_search.indexing.verify import verify_deep
from klsa_search.search.engine.snapshot import FIRST_LATER
from klsa_search.search.index import Index, open_index
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.storage.arrays import open_array
from klsa_search.storage.columns.declared import forms_of
from klsa_search.storage.current import current_build, current_generation, last_resort
from klsa_search.storage.maintenance import verify_shared
from klsa_search.storage.manifest import Manifest, current_settings, read_manifest
from klsa_search.storage.names import MANIFEST, index_of
from klsa_search.storage.partitions import documents_of, folders_of
from klsa_search.storage.repair import RecoveredRecords, live_documents, repair_current
from klsa_search.storage.write_log import WriteLog

if TYPE_CHECKING:
    from klsa_search.embedding.model import Embedder
    from klsa_search.embedding.opening import EmbeddingFunction


def refit(
    index: Index | str | Path,
    *,
    embedders: Mapping[str, Embedder | str] | None = None,
    partitions: int | None = None,
    workers: int | None = None,
    progress: Progress | bool | None = None,
    memory: int | str | None = None,
    **changes: Unpack[IndexSettings],
) -> Index:
    """Rebuild an index from its stored documents, and open the new generation.

    index       its folder; or the index, which stays open, and usable until the build after this
    embedders   compute the vectors that documents lack, by space: see `embed`
    partitions  divide the documents into so many; by default as many as before, 1 for none
    workers     build this many partitions at the same time, by default one for each processor;
                `memory` is the limit of each
    changes     settings to change
    The result is identical to a `build` of the same documents in the same order. Searches and
    writes continue meanwhile; concurrent writes are replayed. The previous generation is kept, with
    its log, for `rollback`. Cost: that of `build`. Raise IndexNotFound, IndexDamaged;
    SettingsError; StoreError during another build, or if the index was replaced meanwhile.

    >>> refit("index/reports")
    <Index reports generation 000002: 6 documents>
    >>> refit("index/reports", alpha=1.0).settings.alpha
    1.0
    """
    settings, models = with_trusted_tokenizer(changes), Models.opened(embedders or {}, None)
    opened = nullcontext(index) if isinstance(index, Index) else open_index(index)
    with opened as before, open_progress(progress) as report:
        return _rebuilt(
            before, settings, report, memory, partitions=partitions, workers=workers, models=models
        )


@dataclass(frozen=True)
class EmbedResult:
    """Result of `embed`.

    index      the index, open
    documents  number of documents whose vectors were computed; if 0, nothing was changed

    >>> from klsa_search.indexing import embed
    >>> result: EmbedResult = embed(
    ...     "index/reports", space="one", embedder=lambda texts, _: [[1.0]] * 6
    ... )
    >>> result.documents, result.index.generation
    (6, '000002')
    """

    index: Index
    documents: int


def embed(
    path: str | Path,
    *,
    space: str,
    embedder: Embedder | EmbeddingFunction | str,
    replace: bool = False,
    progress: Progress | bool | None = None,
    memory: int | str | None = None,
) -> EmbedResult:
    """Compute the vectors that documents of the index in the folder `path` lack, and rebuild it.

    space     name of the vectors, such as `minilm`
    embedder  as for `klsa_search.embedding.open_embedder`; the index records its fingerprint
    replace   compute all vectors again if they are by another model, which is refused otherwise
    A document has one vector, or one for each of its passages. Searches and writes continue
    meanwhile. If the call is interrupted, another one continues where it was: vectors are stored in
    the folder of the index until the new generation has them. Cost: that of the embedder, and of
    `build`. SettingsError for another model; EmbedderFailed, with nothing changed; IndexBusy; other
    errors as for `refit`.

    >>> def counts(texts, kind):
    ...     return np.array([[text.count("coolant") + 0.1, text.count("road")] for text in texts])
    >>> embed("index/reports", space="counts", embedder=counts).documents
    6
    >>> index = klsa.open_index("index/reports", embedders={"counts": counts})
    >>> [hit.id for hit in index.search("a road", k=2)]
    ['tyre', 'copy']
    """
    from klsa_search.embedding.opening import open_embedder

    checked = open_embedder(embedder, threads=processors())
    replaced = (space,) if replace else ()
    index = open_index(path)
    lacking = documents_without_vectors(index, space, checked, replaced)
    if not lacking:
        return EmbedResult(index, 0)
    with index, open_progress(progress) as report:
        models = Models({space: checked})
        built = _rebuilt(index, {}, report, memory, models=models, replaced=replaced)
        return EmbedResult(built, lacking)


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
        _stored_documents(index.snapshot(), Settings.checked(settings)),
        name=name,
        home=home,
        progress=progress,
        replace=True,
        **settings,
    )


def _rebuilt(
    index: Index,
    changes: Mapping[str, Any],
    report: Progress,
    memory: int | str | None,
    *,
    partitions: int | None = None,
    workers: int | None = None,
    models: Models = NO_MODELS,
    replaced: Collection[str] = (),
) -> Index:
    """Build an open index again with other settings: see `refit`.

    models    of which embedders compute the vectors that documents lack
    replaced  spaces whose vectors are computed again if they are by another model
    """
    path, before = index.path.parent, index.snapshot()  # without concurrent writes
    count = len(before.partitions) if partitions is None else partitions
    settings = Settings.checked({**before.settings.model_dump(), **changes})
    collection = _stored_documents(before, settings)
    budget = memory_budget(memory)
    refuse_rebuilt(before)
    if count != 1:
        refuse_unpartitioned(count, settings)
    replay = partial(replayed, before, settings, replaced)
    workers = number_of_workers(count, workers)
    if memory is None:
        budget //= workers
    division = Division(count, workers)
    computing: AbstractContextManager[None] = nullcontext()
    if models.embedders:
        computing = with_computed_vectors(
            before, collection, models.embedders, settings, report, replaced
        )
    with computing:
        return build_divided(
            path, collection, settings, division, report, budget, replace=True, replay=replay
        )


def _stored_documents(before: Index, settings: FieldSettings) -> StoredCollection:
    """Return the documents of a snapshot of an index as a collection.

    settings  of the index that is built of them; if they read dates or numbers in another way, the
              types of keyword fields are detected again
    """
    parts = before.partitions
    types = {name: field.type for part in parts for name, field in part.fields.items()}
    if forms_of(settings) != forms_of(before.settings):
        types = {name: kind for name, kind in types.items() if kind != "keyword"}
    return StoredCollection(before.manifest, len(before), before.live_documents, types)


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
    """Verify the index in the folder `path` by `verify_deep`, and repair it with all its writes.

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
    folders = folders_of(build)
    for folder in folders:
        # The terms, which are last, are made of the partitions, which are not.
        if folder.is_dir() or folder != folders[-1]:
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
