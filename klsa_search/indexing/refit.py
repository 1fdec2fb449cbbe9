"""Refit: rebuild an index from its documents, while it is written to."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack, cast

from klsa_search.analysis import trusting
from klsa_search.indexing.rebuild import rebuild
from klsa_search.keywords import IndexSettings
from klsa_search.progress import Progress
from klsa_search.search import Index, open_index


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
