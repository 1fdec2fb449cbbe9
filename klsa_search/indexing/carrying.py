"""Carry over: what is written to an index while it is rebuilt from its documents."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from klsa_search.collection import Document
from klsa_search.errors import StoreError
from klsa_search.expansion import packing
from klsa_search.kernel.segments import aligned
from klsa_search.search.index import Index
from klsa_search.store.arrays import has_array
from klsa_search.store.current import current_generation
from klsa_search.store.generations import writing
from klsa_search.store.log import WriteLog
from klsa_search.store.log_writing import LogWriter

_TOGETHER = 1_000


@contextmanager
def carried(index: Index, generation: Path) -> Iterator[None]:
    """Write what came to the log of an index since it was opened to that of a new generation.

    Writers are kept out until the context is left. StoreError, with nothing changed, where that
    cannot be done: the index was built again, documents that it was built of were written by a
    batch that is undone, D is not kept cut any more, or more documents are there than can be
    numbered.
    """
    path, log, last = index.path.parent, WriteLog(index.path), index.last_write
    with writing(path):
        if current_generation(path) != index.path:
            raise StoreError(
                f"`{path}` was rebuilt after generation {index.generation} was "
                "opened; open it again and start over"
            )
        now = log.last()
        if log.kept(last) < last.seq:
            raise StoreError(f"writes to `{path}` were undone during the rebuild; start over")
        if now.seq > last.seq and not has_array(generation, "cut_rows"):
            raise StoreError(
                f"`{path}` was written to during a rebuild with a dense or "
                "factored expansion, which makes it read-only; start over"
            )
        carried_puts = sum(write.document is not None for write in log.rows(last.seq, now))
        if carried_puts and aligned(len(index)) + carried_puts > packing.MAX_DOCUMENTS:
            raise StoreError(
                f"`{path}` was written to during the refit and has more documents "
                f"than a generation can number ({packing.MAX_DOCUMENTS:,}); delete "
                "some, then start over"
            )
        with LogWriter(generation) as writer:
            puts: list[Document] = []
            deletes: list[str] = []
            for write in log.rows(last.seq, now):
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
