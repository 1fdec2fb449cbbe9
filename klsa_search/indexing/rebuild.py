"""Rebuild an index from its stored documents, with its settings or others."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Unpack, cast

from klsa_search.analysis.tokenizers import trusting
from klsa_search.bars import reporting
from klsa_search.config import Settings
from klsa_search.errors import StoreError
from klsa_search.indexing.budget import memory_budget
from klsa_search.indexing.build import build, build_generation
from klsa_search.indexing.carrying import carried
from klsa_search.indexing.stored import Stored
from klsa_search.keywords import IndexSettings
from klsa_search.progress import Progress
from klsa_search.search.index import Index
from klsa_search.search.opening import open_index
from klsa_search.store.current import current_generation


def rebuild(
    index: Index,
    *,
    progress: Progress | bool | None = None,
    memory: int | str | None = None,
    **changes: Unpack[IndexSettings],
) -> Index:
    """Rebuild an index with other settings from its documents, and open the new generation.

    A generation is immutable, so each change of settings makes a new one, identical to a build with
    these settings. `index` stays open, and usable until the build after this one.

    Cost: that of `build`. Concurrent writes are replayed, as by `refit`. SettingsError; StoreError
    if the index was replaced meanwhile.

    >>> bolder = rebuild(index, alpha=1.0)
    >>> bolder.settings.alpha
    1.0
    """
    folder = index.path.parent
    if current_generation(folder) != index.path:
        raise StoreError(
            f"`{folder}` was rebuilt after generation {index.generation} was "
            "opened; open it again and start over"
        )
    held = index.snapshot()  # what others write to it meanwhile is not in it
    with reporting(progress) as report:
        return build_generation(
            folder,
            _stored(held),
            Settings.checked({**index.settings.model_dump(), **trusting(changes)}),
            report,
            memory_budget(memory),
            replace=True,
            carrying=partial(carried, held),
        )


def refit(
    path: str | Path,
    *,
    progress: Progress | bool | None = None,
    memory: int | str | None = None,
    **changes: Unpack[IndexSettings],
) -> Index:
    """Rebuild the index at `<home>/<name>` from its documents, with its settings, and open it.

    changes  settings to change
    The result is identical to a `build` of the same documents in the same order. Searches and
    writes continue meanwhile; concurrent writes are replayed. The previous generation is kept, with
    its log, for `rollback`. Cost: that of `build`. IndexNotFound, IndexDamaged; SettingsError;
    StoreError during another build.

    >>> refit("index/reports")
    <Index reports generation 000002: 6 documents>
    """
    changes = cast(IndexSettings, trusting(changes))
    index = open_index(path)
    try:
        return rebuild(index, progress=progress, memory=memory, **changes)
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
    return build(_stored(index), name=name, home=home, progress=progress, replace=True, **settings)


def _stored(index: Index) -> Stored:
    """The documents that it has now."""
    held = index.snapshot()
    types = {name: field.type for name, field in held.fields.items()}
    return Stored(held.manifest, len(held), held.live_documents, types)
