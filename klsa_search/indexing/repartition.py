"""Build an index again, in as many partitions or another number of them.

    split(path, 4)       an index with one partition, or another number of them, gets four
    refit(path)          an index is built again with as many (`rewrite.refit`)

The new build is made of the stored documents, with a training of its own, while searches and writes
continue. Then writers wait while later writes are replayed, and the index uses the new build, in
one step. The one before is kept for `rollback`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
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
from klsa_search.indexing.partitions import Division, build_divided, refuse_unpartitioned
from klsa_search.indexing.reading import StoredCollection
from klsa_search.indexing.replay import refuse_rebuilt, replayed
from klsa_search.search.index import Index
from klsa_search.search.models import NO_MODELS, Models
from klsa_search.search.opening import open_index
from klsa_search.storage.columns.declared import forms_of


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
        if partitions == 1 == len(index.partitions):
            raise SettingsError(
                f"partitions = 1: index `{index.name}` has one already; rebuild it with "
                f"`klsa-index refit {index.name}`",
                field="partitions",
            )
        return rebuilt(index, settings, report, memory, partitions=partitions, workers=workers)


def rebuilt(
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
    """Build an open index again with other settings: see `split` and `rewrite.rebuild`.

    partitions  their number, by default that of the index
    models      of which embedders compute the vectors that documents lack
    replaced    spaces whose vectors are computed again if they are by another model
    """
    path, before = index.path.parent, index.snapshot()  # without concurrent writes
    count = len(before.partitions) if partitions is None else partitions
    settings = Settings.checked({**before.settings.model_dump(), **changes})
    collection = stored_documents(before, settings)
    budget = memory_budget(memory)
    refuse_rebuilt(before)
    if count != 1:
        refuse_unpartitioned(count, settings)
    replay = partial(replayed, before, settings, replaced)
    with ExitStack() as computing:
        if models.embedders:
            computing.enter_context(
                with_computed_vectors(
                    before, collection, models.embedders, settings, report, replaced
                )
            )
        workers = min(count, workers or processors())
        if memory is None:
            budget //= workers
        division = Division(count, workers)
        return build_divided(
            path, collection, settings, division, report, budget, replace=True, replay=replay
        )


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
