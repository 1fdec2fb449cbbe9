"""Export of the documents of an index, and copies of an index that is in use."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from uuid import uuid4

from klsa_search.collection.model import Document
from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage.catalog_entry import replace_rows, rows_of
from klsa_search.storage.current import current_generation, step_for
from klsa_search.storage.directories import is_unfinished, mark_index
from klsa_search.storage.files import sync, writable
from klsa_search.storage.generations import (
    check_sizes,
    commit,
    index_lock,
    new_generation,
    sync_files,
    writing,
)
from klsa_search.storage.log import Write, WriteLog
from klsa_search.storage.maintenance import remove_partitions
from klsa_search.storage.manifest import Manifest, read_manifest, sha256_of
from klsa_search.storage.names import CURRENT, LOG_ID, NEW, WRITES
from klsa_search.storage.partitions import (
    is_partitioned,
    read_partitions,
    with_files,
    write_partitions,
)
from klsa_search.storage.recovery import RecoveredRecords


def copy_index(source: Path, target: Path) -> Manifest:
    """Copy the generation in use with its log and its rows of the catalogue to a new folder.

    The target becomes an index when the copy is complete; it replaces what an interrupted copy or
    build left there. The index may be searched and written meanwhile: the copy has all writes
    acknowledged when its log is copied, last. Every file is compared with its checksum.
    Raise IndexNotFound; IndexDamaged names a changed file of the source; StoreError if the target
    exists, the generation was removed meanwhile, or the disk is full. Cost: reading and writing
    all files.
    """
    if os.path.lexists(target) and not is_unfinished(target):
        raise _taken(target)
    if is_partitioned(source):
        return _copy_partitions(source, target)
    generation = current_generation(source)
    with new_generation(target) as fresh:
        if os.path.lexists(target / CURRENT):  # completed by another process meanwhile
            raise _taken(target)
        manifest = _copy_files(generation, fresh)
        WriteLog(generation).copy_to(fresh)
        replace_rows(target, rows_of(source, generation.name), fresh.name)
        sync_files(fresh)
        commit(fresh, manifest)
    return manifest


def _copy_files(generation: Path, fresh: Path) -> Manifest:
    """Copy the files of a generation to an empty one; return its manifest."""
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    for name in manifest.files:
        (fresh / name).parent.mkdir(exist_ok=True)
        try:
            shutil.copyfile(generation / name, fresh / name)
        except FileNotFoundError as error:
            raise StoreError(
                f"`{generation}` was removed during the copy; copy the index again"
            ) from error
        actual = sha256_of(fresh / name)
        if actual != manifest.files[name].sha256:
            raise IndexDamaged(
                f"`{generation / name}` has changed since it was built; "
                f"{step_for(generation / name)}"
            )
    return manifest


def _copy_partitions(source: Path, target: Path) -> Manifest:
    """Copy an index in partitions, with all writes up to one moment: see `copy_index`."""
    target.mkdir(parents=True, exist_ok=True)
    with index_lock(target):
        if is_partitioned(target):
            raise _taken(target)
        mark_index(target)
        remove_partitions(target)
        partitions = read_partitions(source)
        names = partitions.all_folders
        generations = [current_generation(source / name) for name in names]
        with ExitStack() as folders:
            fresh = [folders.enter_context(new_generation(target / name)) for name in names]
            manifests = list(map(_copy_files, generations, fresh))
            copy_logs(source, generations, fresh)
            for folder, manifest in zip(fresh, manifests, strict=True):
                sync_files(folder)
                commit(folder, manifest)
        build = partitions.generation
        replace_rows(target, rows_of(source, build), build)
        write_partitions(target, partitions)
    return with_files(target, partitions.manifest, dict(zip(fresh, manifests, strict=True)))


def copy_logs(path: Path, generations: Sequence[Path], targets: Sequence[Path]) -> None:
    """Copy the logs of all partitions of an index, as they are at one moment, to empty folders.

    Writers wait only if one of them writes during the first attempt.
    """
    logs = [WriteLog(generation) for generation in generations]
    for attempt in range(2):
        with writing(path) if attempt else nullcontext():
            before = [log.last() for log in logs]
            for log, target in zip(logs, targets, strict=True):
                for name in (LOG_ID, WRITES):  # of the first attempt
                    (target / name).unlink(missing_ok=True)
                log.copy_to(target)
            if [log.last() for log in logs] == before:
                return


def _taken(target: Path) -> StoreError:
    return StoreError(f"`{target}` already exists; choose another name, or delete it first")


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


def export(generations: Iterable[Path], file: Path, known_faults: Iterable[str] = ()) -> int:
    """Write the live documents to a file, which is replaced atomically; return their number.

    generations   of the index, one for each partition
    known_faults  why this may not be the generation in use: see `readable_generation`
    The file is durable on return. Raise StoreError if it cannot be written; then nothing of it
    remains. Raise IndexDamaged if something cannot be read: a new file then has all readable
    documents, and an existing file is unchanged.
    """
    fresh = file.with_name(f".{file.name}.{uuid4().hex}.{NEW}")  # others may write the same file
    count = 0
    faults = list(known_faults)
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
    refuse_faults(faults, f"{file} has {count:,} documents")
    return count


def refuse_faults(faults: list[str], done: str) -> None:
    """Raise IndexDamaged if not everything could be read; `done` reports what was written."""
    if faults:
        more = f" (and {len(faults) - 1:,} more faults)" if len(faults) > 1 else ""
        raise IndexDamaged(f"{done}, but some documents could not be read: {faults[0]}{more}")
