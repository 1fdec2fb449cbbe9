"""Recovery of a damaged index from redundant information.

    recovered_current(path) -> Current      what CURRENT contains, or contained
    repair_current(path) -> str | None      write it again; return the fault
    repair_manifest(generation) -> str | None   undo one changed byte in a manifest
    RecoveredRecords(generation)            the documents of the build, as far as readable

CURRENT follows from the generations and the checksums of their manifests. Headers of array files
follow from their sizes, and the starts of records from the table of IDs. The manifest has the
checksums of the built files, which prove the recovered content.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.errors import IndexDamaged, IndexNotFound, StoreError
from klsa_search.storage.current import (
    Current,
    last_resort,
    read_current,
    repair_step,
    write_current,
)
from klsa_search.storage.directories import generations
from klsa_search.storage.documents import IDS, RECORDS, STARTS
from klsa_search.storage.files import is_exhausted, read_regular
from klsa_search.storage.generations import committed_generations, index_lock
from klsa_search.storage.log import WriteLog
from klsa_search.storage.manifest import Manifest
from klsa_search.storage.names import CURRENT, DELETED, MANIFEST
from klsa_search.storage.records import Records

_IN_USE: Final = re.compile(rb"(?<![0-9] )sha256 ([0-9a-f]{64})")
_KEPT: Final = re.compile(rb"kept ([0-9]{6}) sha256 (.{64})", re.DOTALL)
_CREATED: Final = re.compile(rb'"created": *"([^"]+)"')
_MAX_DIFFERENCES: Final = 8
"""Characters of 64 in which a damaged checksum may differ from the original."""

_ASCII: Final = b"\n" + bytes(range(0x20, 0x7F))
"""Bytes of a manifest, except in names of fields in other scripts."""

_HEAD: Final = struct.Struct("<3I")
_BLOCK: Final = 2**22


def recovered_current(path: Path) -> Current:
    """Return the content of CURRENT, or what it was before it was damaged.

    The generation in use is the one that CURRENT names, unless the rest of CURRENT contradicts;
    else the one whose manifest has the checksum in CURRENT; else the one written last.
    Raise IndexNotFound without a generation, and if a deletion was begun.
    """
    try:
        content = read_regular(path / CURRENT, 2**16)
    except OSError as error:
        if is_exhausted(error):
            raise
        content = b""
    there = committed_generations(path) or [
        each for each in generations(path) if (each / f"{RECORDS}.npy").is_file()
    ]
    actual = {each.name: _sum_of_manifest(each) for each in there}
    if not actual or (not content and os.path.lexists(path / DELETED)):
        read_current(path)  # reports what is missing
        raise IndexNotFound(f"`{path}` has no readable generation; restore a backup")
    kept = {name.decode(): sum_ for name, sum_ in _KEPT.findall(content)}
    own = _IN_USE.search(content)
    name = content[:6].decode("ascii", "replace")
    if name not in actual or name in kept:
        found = [each for each, sum_ in actual.items() if own and sum_.encode() == own[1]]
        if not found:
            own = None
            found = [max(actual, key=lambda each: (_written(path / each), each))]
        name = found[0]
    known = kept | ({name: own[1]} if own else {})
    return Current(
        name,
        {
            each: sum_ if _is_near(known.get(each), sum_) else known[each].decode()
            for each, sum_ in actual.items()
        },
    )


def repair_current(path: Path) -> str | None:
    """Write CURRENT again if it is damaged; return what was wrong with it, or None.

    No generation and no log is changed. Raise IndexNotFound; IndexBusy.
    """
    with index_lock(path):
        found = recovered_current(path)
        try:
            _compare(path, read_current(path), found)
        except (IndexDamaged, IndexNotFound) as damage:
            fault = damage.message
        else:
            return None
        if not found.sums[found.generation]:
            raise IndexDamaged(f"{fault}, and no manifest can be read; {last_resort(path)}")
        write_current(path, found)
    return fault


def check_current(path: Path) -> None:
    """Raise IndexDamaged or IndexNotFound if CURRENT does not match the generations of an index."""
    while True:
        now, found = read_current(path), recovered_current(path)
        if read_current(path) == now:  # otherwise a build ended between the reads
            break
    _compare(path, now, found)


def readable_generation(path: Path, faults: list[str]) -> Path:
    """Return the generation in use; if CURRENT is damaged, append the fault to `faults`.

    See `recovered_current`. Raise IndexNotFound.
    """
    found = recovered_current(path)
    try:
        check_current(path)
    except (IndexDamaged, IndexNotFound) as damage:
        faults.append(f"{damage.message}; generation `{found.generation}` was read")
    return path / found.generation


def repair_manifest(generation: Path) -> str | None:
    """Undo the change of a single byte in a manifest; return what was wrong, or None.

    The SHA-256 in CURRENT proves the result, so settings and checksums are those of the build.
    Nothing is changed if more than one byte differs, CURRENT has no checksum, or the original byte
    was not ASCII. Cost: about 2 s for 5 kB.
    """
    path, file = generation.parent, generation / MANIFEST
    with index_lock(path):
        expected = read_current(path).sums.get(generation.name)
        try:
            content = read_regular(file)
        except FileNotFoundError:
            return None
        if expected is None or hashlib.sha256(content).hexdigest() == expected:
            return None
        original = _original_byte(content, bytes.fromhex(expected))
        if original is None:
            return None
        position, byte = original
        with file.open("r+b") as stream:
            stream.seek(position)
            stream.write(bytes([byte]))
            stream.flush()
            os.fsync(stream.fileno())
    return f"one byte of {file} had changed since it was written"


def _original_byte(content: bytes, digest: bytes) -> tuple[int, int] | None:
    """Return position and value of the one byte that gives the content a SHA-256, or None."""
    before = hashlib.sha256()
    for position, byte in enumerate(content):
        rest = content[position + 1 :]
        for other in _ASCII:
            candidate = before.copy()
            candidate.update(bytes([other]) + rest)
            if candidate.digest() == digest:
                return position, other
        before.update(bytes([byte]))
    return None


class RecoveredRecords:
    """The documents of a generation, readable despite damaged headers and starts.

    size  number of documents; IndexDamaged if it is unknown
    """

    def __init__(self, generation: Path) -> None:
        self._generation = generation
        path = generation / f"{RECORDS}.npy"
        self._content = _array(path, np.dtype(np.uint8))
        file = generation / f"{STARTS}.npy"
        starts = np.zeros(0, np.int64)
        if file.exists():
            starts = np.array(_array(file, np.dtype(np.int64)))
        self.starts = _repaired_starts(starts, self._content, generation)
        self.size = max(len(self.starts) - 1, 0)
        self._records = Records(self._content, self.starts, path)

    def fault(self, manifest: Manifest) -> str | None:
        """Return which file differs from the build even after recovery, or None.

        Cost: reading the files.
        """
        for name, array in ((RECORDS, self._content), (STARTS, self.starts)):
            file = self._generation / f"{name}.npy"
            entry = manifest.files.get(file.name)
            if entry is None or entry.sha256 != _sum_of_array(array):
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


def _compare(path: Path, now: Current, found: Current) -> None:
    sums = {name: found.sums[name] for name in now.sums if name in found.sums}
    if now != Current(found.generation, sums):
        raise IndexDamaged(
            f"`{path / CURRENT}` does not match the generations of the index; {repair_step(path)}"
        )


def _sum_of_manifest(generation: Path) -> str:
    try:
        return hashlib.sha256(read_regular(generation / MANIFEST)).hexdigest()
    except OSError as error:
        if is_exhausted(error):
            raise
        return ""


def _is_near(known: bytes | None, actual: str) -> bool:
    """Return whether a checksum in CURRENT is the actual one, perhaps damaged, or is missing.

    Checksums of different manifests agree in a few characters by chance.
    """
    if known is None or not actual:
        return known is None
    differences = sum(a != b for a, b in zip(known, actual.encode(), strict=False))
    return differences <= _MAX_DIFFERENCES


def _written(generation: Path) -> str:
    """Return when a generation was last written, by its log or its build, in ISO 8601."""
    times = [""]
    with suppress(OSError):
        manifest = read_regular(generation / MANIFEST)
        times += [time.decode("ascii", "replace") for time in _CREATED.findall(manifest)]
    with suppress(StoreError):
        times += [batch.time for batch in WriteLog(generation).batches()]
    return max(times)


def _array(path: Path, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Map a one-dimensional array by the size of its file, ignoring its header.

    Raise IndexDamaged if the file cannot be read.
    """
    try:
        begin = len(_header(kind, 0))
        length = max(path.stat().st_size - begin, 0) // kind.itemsize
        array = np.memmap(path, kind, "r", begin, (length,)) if length else np.zeros(0, kind)
    except (OSError, ValueError) as error:
        if is_exhausted(error):
            raise
        raise IndexDamaged(
            f"cannot read `{path}` ({error}); {last_resort(path.parent.parent)}"
        ) from error
    return np.asarray(array)


def _header(kind: np.dtype[Any], length: int) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": kind.str, "fortran_order": False, "shape": (length,)}
    )
    return stream.getvalue()


def _sum_of_array(array: npt.NDArray[Any]) -> str:
    digest = hashlib.sha256(_header(array.dtype, len(array)))
    content = array.view(np.uint8)
    for begin in range(0, len(content), _BLOCK):
        digest.update(content[begin : begin + _BLOCK].data)
    return digest.hexdigest()


def _repaired_starts(
    starts: npt.NDArray[np.int64], content: npt.NDArray[np.uint8], generation: Path
) -> npt.NDArray[np.int64]:
    """Return the starts of records, found by their IDs if `starts` is wrong.

    Return `starts` itself if the IDs do not lead to all records in order, because they or the
    records are damaged. Cost: some µs a document.
    """
    given = starts
    try:
        ids = _ids(generation)
    except (sqlite3.Error, ValueError):  # the IDs are damaged too
        return starts
    starts = np.full(len(ids) + 1, -1, np.int64)
    known = min(len(given), len(starts))
    starts[:known] = given[:known]
    starts[0], starts[-1] = 0, len(content)
    end = 0  # of the header of the previous record
    for doc_id, id_ in enumerate(ids):
        if not _is_record(content, int(starts[doc_id]), id_):
            begin = _find(content, end, id_)
            if begin is None:
                return given
            starts[doc_id] = begin
        end = int(starts[doc_id]) + _HEAD.size + len(id_)
    return starts if (np.diff(starts) > 0).all() and starts[0] == 0 else given


def _ids(generation: Path) -> list[bytes]:
    address = f"{(generation / IDS).absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        rows = database.execute("select position, id from documents order by position").fetchall()
    if [position for position, _ in rows] != list(range(len(rows))):
        raise ValueError("positions are missing")
    return [id_.encode() for _, id_ in rows]


def _is_record(content: npt.NDArray[np.uint8], begin: int, id_: bytes) -> bool:
    """Return whether the record of an ID begins at `begin`."""
    if not 0 <= begin <= len(content) - _HEAD.size - len(id_):
        return False
    size, title, metadata = _HEAD.unpack_from(content.data, begin)
    start = begin + _HEAD.size
    return bool(
        size == len(id_)
        and start + size + title + metadata <= len(content)
        and content[start : start + size].tobytes() == id_
    )


def _find(content: npt.NDArray[np.uint8], first: int, id_: bytes) -> int | None:
    """Return the start of the record of an ID, at or after `first`, or None."""
    head = _HEAD.pack(len(id_), 0, 0)[:4]
    overlap = _HEAD.size + len(id_)
    for begin in range(first, len(content), _BLOCK):
        block = content[begin : begin + _BLOCK + overlap].tobytes()
        at = block.find(head)
        while at >= 0:
            if _is_record(content, begin + at, id_):
                return begin + at
            at = block.find(head, at + 1)
    return None
