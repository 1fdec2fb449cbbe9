"""Refit: build an index anew from the documents it holds, while it is written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from klsa_search.collection import Document
from klsa_search.indexing.budget import memory_budget
from klsa_search.indexing.build import build_generation
from klsa_search.indexing.rebuild import Stored
from klsa_search.progress import Progress, silent
from klsa_search.search import Index, open_index
from klsa_search.store.generations import writing
from klsa_search.store.log import WriteLog
from klsa_search.store.log_format import Last
from klsa_search.store.log_writing import LogWriter

_TOGETHER = 1_000


def refit(
    path: str | Path, *, progress: Progress | None = None, memory: int | str | None = None
) -> Index:
    """Build the index at `<home>/<name>` anew from its documents, with its settings, and open it.

    What it answers then is what `build` of the same documents in their order would, to the bit.
    Meanwhile it goes on answering and can be written to; what is written is carried over. Cost:
    that of `build`. The generation before stays, with its log, for `rollback`. IndexNotFound,
    IndexDamaged; SettingsError (memory); StoreError while another builds.

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
            carrying=lambda generation: _carried(index.path, index.last, generation),
        )
    finally:
        index.close()


@contextmanager
def _carried(before: Path, last: Last, generation: Path) -> Iterator[None]:
    """Write what came to a log behind `last` to that of a new generation, and keep writers out."""
    with writing(before.parent, "refitting"):
        with LogWriter(generation) as writer:
            puts: list[Document] = []
            deletes: list[str] = []
            for write in WriteLog(before).rows(last.seq):
                # A batch has its deletions first.
                if len(puts) + len(deletes) == _TOGETHER or (puts and write.document is None):
                    writer.append(puts, deletes)
                    puts, deletes = [], []
                if write.document is None:
                    deletes.append(write.id)
                else:
                    puts.append(write.document)
            if puts or deletes:
                writer.append(puts, deletes)
        yield
