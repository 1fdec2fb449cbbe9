"""Refit: build an index anew from the documents it holds, while it is written to."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from klsa_search.indexing.budget import memory_budget
from klsa_search.indexing.build import build_generation
from klsa_search.indexing.carrying import carried
from klsa_search.indexing.rebuild import Stored
from klsa_search.progress import Progress, silent
from klsa_search.search import Index, open_index


def refit(
    path: str | Path, *, progress: Progress | None = None, memory: int | str | None = None
) -> Index:
    """Build the index at `<home>/<name>` anew from its documents, with its settings, and open it.

    What it answers then is what `build` of the same documents in their order would, to the bit.
    Meanwhile it goes on answering and can be written to; what is written is carried over. Cost:
    that of `build`. The generation before stays, with its log, for `rollback`. IndexNotFound,
    IndexDamaged; SettingsError (memory); StoreError while another builds, or where writes were
    undone or another generation was put into use meanwhile: then nothing has changed.

    >>> refit("index/reports")
    <Index reports generation 000002: 6 documents>
    """
    path = Path(path)
    index = open_index(path)
    try:
        return build_generation(
            path,
            Stored(index),
            index.settings,
            progress or silent,
            memory_budget(memory),
            replace=True,
            carrying=partial(carried, index),
        )
    finally:
        index.close()
