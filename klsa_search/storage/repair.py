"""Repair of a damaged index from redundant information, and export of live documents as lines.

    recovered_current(path) -> Current      the content of a missing or damaged CURRENT
    repair_current(path) -> str | None      write it again; return the fault
    RecoveredRecords(generation)            the documents of the build, as far as readable
    live_documents(records, log)            those neither deleted nor replaced since the build
    exported_lines(generations, faults)     write them as JSON, if damaged all readable ones
    export(generations, file)               the same to a file

CURRENT follows from the generations. Headers of array files follow from their sizes, and the starts
of records from the records. The manifest has the checksums of the built files, which prove the
recovered content; a damaged manifest is not repaired. A build reads each line of an export as the
same document.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.core.wording import counted
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.storage.arrays import array_header
from klsa_search.storage.current import (
    Current,
    current_build,
    last_resort,
    read_current,
    write_current,
)
from klsa_search.storage.directories import generations, partitions_there
from klsa_search.storage.documents import RECORDS, STARTS, DocumentReader, RecordsPart, starts_of
from klsa_search.storage.files import replacement, sync, unreadable, writable
from klsa_search.storage.generations import committed_generations, index_lock, manifest_checksums
from klsa_search.storage.manifest import Manifest, read_manifest
from klsa_search.storage.names import CURRENT, DELETED, MANIFEST
from klsa_search.storage.partitions import folders_of
from klsa_search.storage.write_log import Write, WriteLog


def recovered_current(path: Path) -> Current:
    """Return the content of CURRENT, made of the generations: the one written last is in use.

    Raise IndexNotFound without a generation, and if a deletion was begun; IndexDamaged if its
    manifest cannot be read.
    """
    newest = _written_last(path)
    sums = manifest_checksums(path, committed_generations(path))
    if newest.name not in sums:
        raise IndexDamaged(f"cannot read `{newest / MANIFEST}`; {last_resort(path)}")
    return Current(newest.name, sums)


def repair_current(path: Path) -> str | None:
    """Write CURRENT again if it is damaged; return what was wrong with it, or None.

    No generation and no log is changed. Raise IndexNotFound; IndexBusy.
    """
    with index_lock(path):
        try:
            current_build(path)
        except (IndexDamaged, IndexNotFound) as damage:
            write_current(path, recovered_current(path))
            return damage.message
    return None


def readable_generations(path: Path, faults: list[str]) -> list[Path]:
    """Return the generations in use of the partitions that there are, or that of the index.

    If CURRENT is damaged, that is the one written last. Append damage and missing partitions to
    `faults`. Raise IndexNotFound.
    """
    try:
        generation = current_build(path)
    except (IndexDamaged, IndexNotFound) as damage:
        generation = _written_last(path)
        faults.append(f"{damage.message}; generation `{generation.name}` was read")
    there = partitions_there(generation)
    try:
        missing = set(folders_of(generation)[:-1]).difference(there)
        faults += [f"partition `{folder}` is missing" for folder in sorted(missing)]
    except IndexDamaged as damage:
        faults.append(damage.message)
    readable = []
    for partition in there:
        try:
            readable += readable_generations(partition, faults)
        except IndexNotFound as damage:
            faults.append(damage.message)
    return readable if there else [generation]


class RecoveredRecords:
    """The documents of a generation, readable despite damaged headers and starts.

    size  number of documents; IndexDamaged if it is unknown
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        path = generation / f"{RECORDS}.npy"
        self._content = _array(path, np.dtype(np.uint8))
        starts = starts_of(self._content)
        if starts is None:  # a record is damaged
            starts = _array(generation / f"{STARTS}.npy", np.dtype(np.int64))
        self.starts = starts
        self.size = max(len(self.starts) - 1, 0)
        self._records = DocumentReader((RecordsPart(self._content, self.starts),), path)

    def fault(self, manifest: Manifest) -> str | None:
        """Return which file differs from the build even after recovery, or None.

        Cost: reading the files.
        """
        for name, array in ((RECORDS, self._content), (STARTS, self.starts)):
            file = self._generation / f"{name}.npy"
            entry = manifest.files.get(file.name)
            digest = hashlib.sha256(array_header(array.dtype, array.shape))
            digest.update(array.view(np.uint8).data)
            if entry is None or entry.sha256 != digest.hexdigest():
                return f"{file} has changed since it was built"
        return None

    def documents(self, faults: list[str] | None = None) -> Iterator[Document]:
        """Yield the documents in order; IndexDamaged for one that cannot be read.

        faults  collects these messages instead
        """
        for doc_id in range(self.size):
            try:
                yield self._records.document(doc_id)
            except IndexDamaged as damage:
                if faults is None:
                    raise
                faults.append(damage.message)


def _written_last(path: Path) -> Path:
    there = committed_generations(path) or [
        generation for generation in generations(path) if (generation / f"{RECORDS}.npy").is_file()
    ]
    if not there or (os.path.lexists(path / DELETED) and not os.path.lexists(path / CURRENT)):
        read_current(path)  # reports what is missing
        raise IndexNotFound(f"`{path}` has no readable generation; restore a backup")
    return max(there, key=lambda path_: (_written(path_), path_))


def _written(generation: Path) -> str:
    """Return when a generation was last written, by its logs or its build, in ISO 8601."""
    times = [""]
    with suppress(StoreError):
        times.append(read_manifest(generation).build.created)
    with suppress(StoreError):
        times += [batch.time for batch in WriteLog(generation).batches()]
    for partition in partitions_there(generation):
        times += map(_written, committed_generations(partition))
    return max(times)


def _array(path: Path, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Map a one-dimensional array by the size of its file, ignoring its header.

    Raise IndexDamaged if the file cannot be read.
    """
    try:
        begin = len(array_header(kind, (0,)))
        length = max(path.stat().st_size - begin, 0) // kind.itemsize
        array = np.memmap(path, kind, "r", begin, (length,)) if length else np.zeros(0, kind)
    except (OSError, ValueError) as error:
        raise unreadable(path, error, last_resort(path.parent.parent)) from error
    return np.asarray(array)


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


def exported_lines(generations: Iterable[Path], faults: list[str]) -> Iterator[str]:
    """Yield the live documents of generations as lines of JSON, which a build reads as the same.

    Append damage to `faults`.
    """
    for document in chain.from_iterable(readable_documents(path, faults) for path in generations):
        line = {"id": document.id, "title": document.title, "text": document.text}
        metadata = {"metadata": dict(document.metadata)} if document.metadata else {}
        yield json.dumps({**line, **metadata}, ensure_ascii=False, allow_nan=False) + "\n"


def export(generations: Iterable[Path], file: Path, earlier_faults: Iterable[str] = ()) -> int:
    """Write the live documents to a file, which is replaced atomically; return their number.

    generations     of the index, one for each partition
    earlier_faults  why this may not be the generation in use: see `readable_generations`
    The file is durable on return. Raise StoreError if it cannot be written; then nothing of it
    remains. Raise IndexDamaged if something cannot be read: a new file then has all readable
    documents, and an existing file is unchanged.
    """
    count, faults = 0, list(earlier_faults)
    with writable(file):
        with replacement(file) as fresh:
            with fresh.open("x", encoding="utf-8", newline="\n") as stream:
                for line in exported_lines(generations, faults):
                    stream.write(line)
                    count += 1
                stream.flush()
                os.fsync(stream.fileno())
            if faults and file.exists():
                raise IndexDamaged(
                    f"`{file}` was not changed, because some documents cannot be "
                    f"read: {faults[0]}; export to a new file to save the readable "
                    "documents"
                )
        sync(file.parent)
    refuse_faults(faults, f"{file} has {counted(count, 'document')}")
    return count


def refuse_faults(faults: list[str], done: str) -> None:
    """Raise IndexDamaged if not everything could be read; `done` reports what was written."""
    if faults:
        more = f" (and {len(faults) - 1:,} more faults)" if len(faults) > 1 else ""
        raise IndexDamaged(f"{done}, but some documents could not be read: {faults[0]}{more}")
