"""Carry over what is written to an index while it is built anew from what it held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from klsa_search.collection import Document
from klsa_search.errors import StoreError
from klsa_search.store import current_generation
from klsa_search.store.generations import writing
from klsa_search.store.log import WriteLog
from klsa_search.store.log_format import Last
from klsa_search.store.log_writing import LogWriter

_TOGETHER: Final = 1_000


@contextmanager
def carried(before: Path, last: Last, generation: Path) -> Iterator[None]:
    """Write what came to a log behind `last` to that of a new generation, and keep writers out.

    StoreError where what was there at `last` has been undone since, or another generation has come:
    the new one was not made of what the index holds.
    """
    log = WriteLog(before)
    with writing(before.parent, "refitting"):
        if current_generation(before.parent) != before or log.kept(last) < last.seq:
            raise StoreError(
                f"{before.parent} was built again, or writes to it were undone, while it was built "
                "anew from what it held: it stays as it is; try again"
            )
        with LogWriter(generation) as writer:
            puts: list[Document] = []
            deletes: list[str] = []
            for write in log.rows(last.seq):
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
