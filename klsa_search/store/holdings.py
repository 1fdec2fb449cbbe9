"""What a generation holds, read from its documents and its log alone, whatever else is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from klsa_search.collection import Document
from klsa_search.errors import IndexDamaged
from klsa_search.store.log import WriteLog
from klsa_search.store.recovery import RecoveredRecords


def built_documents(records: RecoveredRecords) -> Iterator[Document]:
    """Yield the documents of the build, in order; IndexDamaged for one that cannot be read."""
    for document in records.documents():
        if isinstance(document, IndexDamaged):
            raise document
        yield document


def held_documents(generation: Path, records: RecoveredRecords) -> Iterator[Document]:
    """Yield the documents that were neither deleted nor replaced, in order of their positions.

    records  of the build, proven to be what was built
    Every write is compared with its sum before the first is given; no other file is read.
    IndexDamaged names the file. Memory: the ids in the log.
    """
    log = WriteLog(generation)
    log.check()
    last = log.last()
    stands = {row.id: row.seq if row.document else 0 for row in log.rows(last=last)}
    for document in built_documents(records):
        if document.id not in stands:
            yield document
    for row in log.rows(last=last):
        if row.document and stands[row.id] == row.seq:
            yield row.document
