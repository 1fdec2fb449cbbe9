"""SHA-256 checksums of the files of a generation: compare, cache the result, verify.

The extension module uses array values as indices, so one changed byte can return wrong results.
Only a checksum of the whole file detects every changed byte.

The last successful comparison of an index is recorded in the user's cache folder, by device, inode,
size and both times of each file. If the record is missing, checksums are compared again.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from klsa_search.core.installation import cache_folder
from klsa_search.core.parallel import processors
from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage.current import changed_file_error, current_generation, step_for
from klsa_search.storage.files import replacement, unreadable
from klsa_search.storage.manifest import Manifest, sha256_of


def check_sizes(generation: Path, manifest: Manifest) -> None:
    """Raise IndexDamaged if a file is missing or has another size than in the manifest."""
    for name, entry in manifest.files.items():
        path = generation / name
        size = path.stat().st_size if path.is_file() else None
        if size != entry.bytes:
            fact = "is missing" if size is None else f"has {size} bytes, not {entry.bytes}"
            raise IndexDamaged(f"`{path}` {fact}; {step_for(path)}")


def compare_checksums(generation: Path, manifest: Manifest) -> None:
    """Compare the checksums of all files in parallel; IndexDamaged names a changed file.

    Cost: reading every file, and one second per gigabyte and processor.
    """
    largest_first = sorted(manifest.files, key=lambda name: -manifest.files[name].bytes)

    def compare(name: str) -> None:
        compare_checksum(generation, name, manifest, sha256_of)

    with ThreadPoolExecutor(processors()) as pool:
        for _ in pool.map(compare, largest_first):
            pass


def compare_checksum(
    generation: Path, name: str, manifest: Manifest, sum_of: Callable[[Path], str]
) -> None:
    """Compare the checksum of one file, as `sum_of` reads it; IndexDamaged.

    Raise OSError if the process has too many open files, which is not damage.
    """
    path = generation / name
    try:
        actual = sum_of(path)
    except OSError as error:
        raise unreadable(path, error, step_for(path)) from error
    if actual != manifest.files[name].sha256:
        raise changed_file_error(path)


def check_once(generation: Path, manifest: Manifest) -> None:
    """Compare the checksums of a generation unless that was done for exactly these files.

    Raise IndexDamaged for a file that has changed since the build or does not belong there.
    Cost: one stat for each file; the first time, or after a change, that of `compare_checksums`.
    """
    for path in generation.rglob("*.npy"):
        if path.relative_to(generation).as_posix() not in manifest.files:
            raise IndexDamaged(f"`{path}` does not belong to this index; move it away")
    if not _is_recorded(generation, fingerprint_of(generation, manifest)):
        check_again(generation, manifest)


def check_again(generation: Path, manifest: Manifest) -> None:
    """Compare the checksums of a generation, recorded or not; IndexDamaged."""
    fingerprint = fingerprint_of(generation, manifest)
    try:
        compare_checksums(generation, manifest)
    except IndexDamaged:
        forget(generation)
        raise
    _record(generation, fingerprint)


def note_checked(generation: Path, manifest: Manifest) -> None:
    """Record a generation whose checksums were just computed from its files."""
    _record(generation, fingerprint_of(generation, manifest))


def forget(generation: Path) -> None:
    """Remove the record of a damaged generation, so that the next opening compares checksums."""
    file = _file(generation)
    if file is not None:
        with suppress(OSError):  # none yet, or a cache that cannot be written to
            file.unlink()


def fingerprint_of(generation: Path, manifest: Manifest) -> str:
    """Return a digest of what the system says about the files: inodes, sizes and times."""
    digest = hashlib.sha256()
    for name, entry in sorted(manifest.files.items()):
        file = (generation / name).stat()
        times = file.st_mtime_ns, file.st_ctime_ns
        row = (name, entry.sha256, file.st_dev, file.st_ino, file.st_size, *times)
        digest.update(repr(row).encode())
    return digest.hexdigest()


def _file(generation: Path) -> Path | None:
    """Return the record of the last comparison of an index or partition.

    None without a cache folder: then every opening compares checksums.
    """
    folder = cache_folder()
    name = hashlib.sha256(os.fsencode(os.path.realpath(generation.parent))).hexdigest()
    return None if folder is None else folder / "checked" / name


def _is_recorded(generation: Path, fingerprint: str) -> bool:
    file = _file(generation)
    with suppress(OSError):  # none yet
        return file is not None and file.read_bytes() == fingerprint.encode()
    return False


def _record(generation: Path, fingerprint: str) -> None:
    if (file := _file(generation)) is not None:
        with suppress(OSError):  # without a record, the next opening compares checksums
            file.parent.mkdir(parents=True, exist_ok=True)
            with replacement(file) as fresh:
                fresh.write_bytes(fingerprint.encode())


_PIECE: Final = 2**18
"""Bytes that a background comparison reads at once."""

PAUSE_RATIO: Final = 7
"""Pause of a background comparison for each second of its processor time, in seconds."""


_State = Literal["checking", "verified", "damaged", "stopped"]


class ChecksumCheck:
    """Compares the checksums of an index in a background thread of low priority.

    generations  the manifest of its generation, or of those of all partitions, by folder
    state        `stopped` if it ended without a result, stopped or superseded
    failure      a message that names the damaged file, or None

    It takes at most a ninth of one processor and half of the disk bandwidth: ten seconds per
    gigabyte, or a few times that while searches run.
    """

    def __init__(self, generations: Mapping[Path, Manifest]) -> None:
        self._generations = generations
        self._stopped = threading.Event()
        self.state: _State = "checking"
        self.failure: str | None = None
        self._thread = threading.Thread(target=self._run, name="sums", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end; return whether it came within that time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop the comparison, within milliseconds."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        self.state = self._compared()

    def _compared(self) -> _State:
        for generation, manifest in self._generations.items():
            try:
                for name in sorted(manifest.files):
                    compare_checksum(generation, name, manifest, self._throttled)
            except (_Stopped, OSError):  # too many open files, which is not damage
                return "stopped"
            except IndexDamaged as failure:
                if not _is_current(generation):
                    return "stopped"
                forget(generation)
                self.failure = failure.message
                return "damaged"
        return "verified"

    def _throttled(self, path: Path) -> str:
        """Return the SHA-256 of a file; pause after each piece in proportion to the work for it."""
        digest, began = hashlib.sha256(), (time.perf_counter(), time.thread_time())
        with path.open("rb", buffering=0) as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
                elapsed, worked = time.perf_counter() - began[0], time.thread_time() - began[1]
                if self._stopped.wait(elapsed + PAUSE_RATIO * worked):
                    raise _Stopped
                began = time.perf_counter(), time.thread_time()
        return digest.hexdigest()


def _is_current(generation: Path) -> bool:
    """Return whether CURRENT still names the generation; files of an older one may be gone."""
    try:
        return current_generation(generation.parent) == generation
    except (StoreError, OSError):
        return True


class _Stopped(Exception):
    """The result is no longer needed."""
