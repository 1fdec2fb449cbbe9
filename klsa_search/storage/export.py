"""Export of live documents as JSON lines, of a damaged index all that are readable.

    live_documents(records, log)    those neither deleted nor replaced since the build
    export(generations, file)       write them to a file

A build reads each line as the same document.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

from klsa_search.collection.model import Document
from klsa_search.core.wording import counted
from klsa_search.errors import IndexDamaged
from klsa_search.storage.files import sync, writable
from klsa_search.storage.manifest import read_manifest
from klsa_search.storage.names import NEW
from klsa_search.storage.repair import RecoveredRecords
from klsa_search.storage.write_log import Write, WriteLog


def live_documents(
    records: RecoveredRecords, log: WriteLog, faults: list[str] | None = None
) -> Iterator[Document]:
    """Yield the documents that were neither deleted nor replaced, in order of their doc ids.

    records  documents of the build
    log      writes since the build, read as of one moment
    faults   collects the damage; all readable documents are yielded; if None, raise IndexDamaged,
             and no document is yielded unless all writes are intact

    Memory: the IDs in the log. Cost: reading the log three times, and the records once.
    """
    writes: Callable[[], Iterable[Write]] = log.readable_rows
    try:
        log.check()
        writes = partial(log.rows, last=log.last())
    except IndexDamaged as damage:
        if faults is None:
            raise
        faults.append(damage.message)
    last_put = {write.id: write.seq if write.document else 0 for write in writes()}
    for document in records.documents(faults):
        if document.id not in last_put:
            yield document
    for write in writes():
        if write.document and last_put[write.id] == write.seq:
            yield write.document


def readable_documents(generation: Path, faults: list[str]) -> Iterator[Document]:
    """Yield the live documents that can be read; append damage to `faults`."""
    records = RecoveredRecords(generation)
    try:
        if fault := records.fault(read_manifest(generation)):
            faults.append(fault)
    except IndexDamaged as damage:
        faults.append(damage.message)
    return live_documents(records, WriteLog(generation), faults)


def as_line(document: Document) -> str:
    """Return a document as a line of JSON that a build reads as the same document."""
    line = {"id": document.id, "title": document.title, "text": document.text}
    metadata = {"metadata": dict(document.metadata)} if document.metadata else {}
    return json.dumps({**line, **metadata}, ensure_ascii=False, allow_nan=False) + "\n"


def export(generations: Iterable[Path], file: Path, earlier_faults: Iterable[str] = ()) -> int:
    """Write the live documents to a file, which is replaced atomically; return their number.

    generations     of the index, one for each partition
    earlier_faults  why this may not be the generation in use: see `readable_generations`
    The file is durable on return. Raise StoreError if it cannot be written; then nothing of it
    remains. Raise IndexDamaged if something cannot be read: a new file then has all readable
    documents, and an existing file is unchanged.
    """
    fresh = file.with_name(f".{file.name}.{uuid4().hex}.{NEW}")  # others may write the same file
    count = 0
    faults = list(earlier_faults)
    with writable(file):
        try:
            with fresh.open("x", encoding="utf-8", newline="\n") as stream:
                for generation in generations:
                    for document in readable_documents(generation, faults):
                        stream.write(as_line(document))
                        count += 1
                stream.flush()
                os.fsync(stream.fileno())
            if faults and file.exists():
                raise IndexDamaged(
                    f"`{file}` was not changed, because some documents cannot be "
                    f"read: {faults[0]}; export to a new file to save the readable "
                    "documents"
                )
            fresh.replace(file)
            sync(file.parent)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    refuse_faults(faults, f"{file} has {counted(count, 'document')}")
    return count


def refuse_faults(faults: list[str], done: str) -> None:
    """Raise IndexDamaged if not everything could be read; `done` reports what was written."""
    if faults:
        more = f" (and {len(faults) - 1:,} more faults)" if len(faults) > 1 else ""
        raise IndexDamaged(f"{done}, but some documents could not be read: {faults[0]}{more}")
