"""Build an index in partitions again, or divide an index into another number of partitions.

    split(path, 4)       an index with one partition, or another number of them, gets four
    refit(path)          an index in partitions is built again with as many (`rewrite.refit`)

The new build is made of the stored documents, with a training of its own, while searches and writes
continue. Then writers wait while later writes are replayed, and the index uses the new build, in
one step. The one before is kept for `rollback`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from klsa_search.analysis.tokenizers import with_trusted_tokenizer
from klsa_search.core.build_settings import FieldSettings
from klsa_search.core.config import Settings
from klsa_search.core.keywords import IndexSettings
from klsa_search.core.parallel import processors
from klsa_search.core.progress import Progress, open_progress
from klsa_search.errors import SettingsError
from klsa_search.indexing.checks import memory_budget
from klsa_search.indexing.computed_vectors import with_computed_vectors
from klsa_search.indexing.generation_builder import build_generation
from klsa_search.indexing.partitions import build_set, refuse_unpartitioned
from klsa_search.indexing.reading import StoredCollection
from klsa_search.indexing.replay import refuse_rebuilt, replayed
from klsa_search.search.index import Index
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.opening import open_index
from klsa_search.search.parts.opening import open_reader
from klsa_search.storage.columns.declared import forms_of
from klsa_search.storage.current import current_generation
from klsa_search.storage.generations import index_lock
from klsa_search.storage.maintenance import use_partitions
from klsa_search.storage.partitions import retire_partitions


def split(
    path: str | Path,
    partitions: int,
    *,
    workers: int | None = None,
    progress: Progress | bool | None = None,
    memory: int | str | None = None,
    **changes: Unpack[IndexSettings],
) -> Index:
    """Divide the index at `<home>/<name>` into partitions, and open it.

    partitions  their number; 1 makes an index without partitions
    workers     build so many partitions at the same time, by default one for each processor;
                `memory` is the limit of each
    changes     settings to change
    The documents are those that are stored. Searches and writes continue meanwhile; concurrent
    writes are replayed. The index before is kept for `rollback`. An index that other processes have
    open must be opened again if it had one partition, or gets one. Cost: that of `build`. Raise
    SettingsError, IndexNotFound, IndexDamaged; StoreError during another build.

    >>> split("index/reports", 2)
    <Index reports generation 000002: 6 documents in 2 partitions>
    """
    settings = with_trusted_tokenizer(changes)
    with open_index(path) as index, open_progress(progress) as report:
        return repartition(index, partitions, settings, report, memory, workers)


def repartition(
    index: Index,
    partitions: int,
    changes: Mapping[str, Any],
    report: Progress,
    memory: int | str | None,
    workers: int | None = None,
    *,
    models: Models = NO_MODELS,
    replaced: Collection[str] = (),
) -> Index:
    """Build an open index again in so many partitions, with other settings: see `split`.

    models, replaced  as of `rewrite.rebuilt`
    """
    path, before = index.path.parent, index.snapshot()
    settings = Settings.checked({**before.settings.model_dump(), **changes})
    collection = stored_documents(before, settings)
    budget = memory_budget(memory)
    if partitions == 1:
        if len(before.partitions) == 1:
            raise SettingsError(
                f"partitions = 1: index `{before.name}` has one already; rebuild it with "
                f"`klsa-index refit {before.name}`",
                field="partitions",
            )
        replay = partial(_in_one, before, settings)
        return build_generation(
            path, collection, settings, report, budget, replace=True, replay=replay
        )
    refuse_unpartitioned(partitions, settings)
    at_once = min(partitions, workers or processors())
    if memory is None:
        budget //= at_once
    with ExitStack() as stack:
        if models.embedders:
            computing = with_computed_vectors(
                before, collection, models.embedders, settings, report, replaced
            )
            stack.enter_context(computing)
        stack.enter_context(index_lock(path, allow_writes=True))
        refuse_rebuilt(before)
        partition_set = build_set(path, collection, settings, partitions, at_once, report, budget)
        built = partition_set.manifest.checked_settings()
        targets = [current_generation(path / name) for name in partition_set.folders]
        with replayed(before, built, partition_set.generation, targets, replaced):
            use_partitions(path, partition_set)
    return Index(open_reader(path))


@contextmanager
def _in_one(before: Index, settings: Settings, generation: Path) -> Iterator[None]:
    """Replay writes to partitions in a generation, which takes their place."""
    with replayed(before, settings, generation.name, [generation]):
        yield
        retire_partitions(generation.parent)


def stored_documents(before: Index, settings: FieldSettings | None = None) -> StoredCollection:
    """Return the documents of a snapshot of an index as a collection.

    settings  of the index that is built of them; if they read dates or numbers in another way, the
              types of keyword fields are detected again
    """
    parts = before.partitions
    types = {name: field.type for part in parts for name, field in part.fields.items()}
    if settings is not None and forms_of(settings) != forms_of(before.settings):
        types = {name: kind for name, kind in types.items() if kind != "keyword"}
    return StoredCollection(before.manifest, len(before), before.live_documents, types)
