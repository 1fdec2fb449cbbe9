"""Refit: build an index anew from the documents it holds, while it is written to."""

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
    """Build the index at `<home>/<name>` anew from its documents, with its settings, and open it.

    changes  settings that are to be others
    What it answers then is what `build` of the same documents in their order would, to the bit.
    Meanwhile it goes on answering and can be written to; what is written is carried over. Cost:
    that of `build`. The generation before stays, with its log, for `rollback`. IndexNotFound,
    IndexDamaged; SettingsError; StoreError while another builds.

    >>> refit("index/reports")
    <Index reports generation 000002: 6 documents>
    """
    changes = cast(IndexSettings, trusting(changes))
    index = open_index(path)
    try:
        return rebuild(index, progress=progress, memory=memory, **changes)
    finally:
        index.close()
