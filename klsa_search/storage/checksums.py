"""SHA-256 checksums of the files of a generation: compare, remember, verify.

Compiled code follows what arrays say as addresses, so a byte that has changed can end the
interpreter or, worse, answer wrongly. Nothing but the sum of a file finds every such byte.

What is remembered of a generation identifies its files: device, inode, size and both
times of each, and the sums they had. It is kept in the user's cache folder; where that cannot be
written to, or was emptied, sums are compared again.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from platformdirs import user_cache_path

from klsa_search.core.parallel import processors
from klsa_search.errors import IndexDamaged, StoreError
from klsa_search.storage.current import current_generation, step_for
from klsa_search.storage.directories import is_marked
from klsa_search.storage.files import is_exhausted
from klsa_search.storage.generations import check_sizes
from klsa_search.storage.judgements import Judgements
from klsa_search.storage.log import WriteLog
from klsa_search.storage.manifest import Manifest, read_manifest, sha256_of
from klsa_search.storage.names import CURRENT, INDEX_FILES, JUDGEMENTS, MARKER, SYNONYMS
from klsa_search.storage.recovery import check_current
from klsa_search.storage.synonyms import read_synonyms


def compare_checksums(generation: Path, manifest: Manifest) -> None:
    """Compare the sums of all files, on all processors; IndexDamaged names one that has changed.

    Cost: reading every file, and a second a gigabyte on one processor.
    """
    largest_first = sorted(manifest.files, key=lambda name: -manifest.files[name].bytes)

    def compare(name: str) -> None:
        compare_checksum(generation / name, manifest, sha256_of)

    with ThreadPoolExecutor(processors()) as pool:
        for _ in pool.map(compare, largest_first):
            pass


def compare_checksum(path: Path, manifest: Manifest, sum_of: Callable[[Path], str]) -> None:
    """Compare the sum of one file, as `sum_of` reads it; IndexDamaged.

    OSError where the process has too many files open: that says nothing of the file.
    """
    try:
        found = sum_of(path)
    except OSError as error:
        if is_exhausted(error):
            raise
        raise IndexDamaged(f"cannot read `{path}` ({error}); {step_for(path)}") from error
    if found != manifest.files[path.name].sha256:
        raise IndexDamaged(f"`{path}` has changed since it was built; {step_for(path)}")


def check_once(generation: Path, manifest: Manifest) -> None:
    """Compare the sums of a generation unless that was done before, with these very files.

    IndexDamaged for a file that has changed since it was built, or that does not belong there.
    Cost: a look at each file; the first time, or after any change, that of `compare_sums`.
    """
    for path in generation.glob("*.npy"):
        if path.name not in manifest.files:
            raise IndexDamaged(f"`{path}` does not belong to this index; move it away")
    if _remembered(generation) != _mark(generation, manifest):
        check_again(generation, manifest)


def check_again(generation: Path, manifest: Manifest) -> None:
    """Compare the sums of a generation whatever is remembered; IndexDamaged. See `compare_sums`."""
    mark = _mark(generation, manifest)
    try:
        compare_checksums(generation, manifest)
    except IndexDamaged:
        forget(generation)
        raise
    _remember(generation, mark)


def note_checked(generation: Path, manifest: Manifest) -> None:
    """Remember a generation whose sums were made from these files just now."""
    _remember(generation, _mark(generation, manifest))


def forget(generation: Path) -> None:
    """Have the sums compared at the next opening: damage was found."""
    with suppress(OSError):  # none yet, or a cache that cannot be written to
        _file(generation).unlink()


def _mark(generation: Path, manifest: Manifest) -> str:
    digest = hashlib.sha256()
    for name, entry in sorted(manifest.files.items()):
        file = (generation / name).stat()
        times = file.st_mtime_ns, file.st_ctime_ns
        said = (name, entry.sha256, file.st_dev, file.st_ino, file.st_size, *times)
        digest.update(repr(said).encode())
    return digest.hexdigest()


def _name(generation: Path) -> str:
    return os.path.realpath(generation)


def _folder() -> Path:
    return user_cache_path("klsa-search") / "checked"


def _file(generation: Path) -> Path:
    """A file for each generation, so that processes do not write over what others remember."""
    return _folder() / hashlib.sha256(os.fsencode(_name(generation))).hexdigest()


def _remembered(generation: Path) -> str | None:
    try:
        mark, name = os.fsdecode(_file(generation).read_bytes()).split("\n", 1)
    except (OSError, ValueError):  # none yet, or not ours
        return None
    return mark if name == _name(generation) else None


def _remember(generation: Path, mark: str) -> None:
    """Write it down, and forget generations that are gone."""
    file = _file(generation)
    fresh = file.with_name(f"{uuid.uuid4().hex}.new")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _forget_gone()
        fresh.write_bytes(os.fsencode(f"{mark}\n{_name(generation)}"))
        fresh.replace(file)  # in one step: another process reads the former or this
    except OSError:
        with suppress(OSError):
            fresh.unlink()


def _forget_gone() -> None:
    for file in _folder().iterdir():
        with suppress(OSError):  # forgotten by another process, or nothing that we wrote
            if file.suffix != ".new" and not os.path.isdir(file.read_bytes().partition(b"\n")[2]):
                file.unlink()


REST: Final = 7
"""Times of what it works that a comparison in the background rests."""


class ChecksumCheck:
    """Compares the sums of a generation in a thread of its own, behind whatever else runs.

    It takes a ninth of one processor at most, and half of what the disk gives: ten seconds a
    gigabyte, or a few times that while searches run.
    """

    def __init__(self, generation: Path, manifest: Manifest) -> None:
        self._generation, self._manifest = generation, manifest
        self._stopped = threading.Event()
        self._failure: str | None = None
        self._whole = False
        self._thread = threading.Thread(target=self._run, name="sums", daemon=True)
        self._thread.start()

    @property
    def state(self) -> Literal["checking", "whole", "damaged", "stopped"]:
        """What is known: `stopped` where nothing will be, as it was stopped or overtaken."""
        if self._failure is not None:
            return "damaged"
        if self._whole:
            return "whole"
        return "checking" if self._thread.is_alive() else "stopped"

    @property
    def failure(self) -> str | None:
        """A sentence that names the damaged file, if there is one."""
        return self._failure

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end; whether it came in that time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """End it, within milliseconds, whatever is known."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for name in sorted(self._manifest.files):
                compare_checksum(self._generation / name, self._manifest, self._unhurried)
            self._whole = True
        except (_Stopped, OSError):  # out of file descriptors, which says nothing of the files
            return
        except IndexDamaged as failure:
            if self._in_use():
                forget(self._generation)
                self._failure = failure.message

    def _unhurried(self, path: Path) -> str:
        with _Unhurried(path, self._stopped) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def _in_use(self) -> bool:
        """Whether CURRENT still names the generation: files of a former one may be gone."""
        try:
            return current_generation(self._generation.parent) == self._generation
        except (StoreError, OSError):
            return True


class _Stopped(Exception):
    """The result is no longer needed."""


class _Unhurried(io.FileIO):
    """A file whose reader rests before it reads on."""

    def __init__(self, path: Path, stopped: threading.Event) -> None:
        super().__init__(path)
        self._stopped = stopped
        self._began = time.perf_counter(), time.thread_time()

    def readinto(self, buffer: Any, /) -> int:
        """Rest in proportion to the work since the last reading, then read."""
        passed, worked = time.perf_counter() - self._began[0], time.thread_time() - self._began[1]
        if self._stopped.wait(passed + REST * worked):
            raise _Stopped
        self._began = time.perf_counter(), time.thread_time()
        return super().readinto(buffer)


def verify(path: Path) -> Manifest:
    """Read every file of an index, and every write, and compare their sums.

    Of other generations than the one in use the manifests alone. Not what is made from the log and
    the build (`delta-*.npz`, `saturated-*.bin`), which is compared with its sum when it is used.
    IndexDamaged. Cost: one read of each.
    """
    verify_shared(path)
    generation = current_generation(path)
    manifest = read_manifest(generation)
    check_sizes(generation, manifest)
    check_again(generation, manifest)
    WriteLog(generation).check()
    return manifest


def verify_shared(path: Path) -> None:
    """Read the files of an index that belong to no generation; IndexDamaged."""
    for name in INDEX_FILES:
        _CHECKS[name](path)


def _check_mark(path: Path) -> None:
    if os.path.lexists(path / MARKER) and not is_marked(path):
        raise IndexDamaged(
            f"`{path / MARKER}` has changed since it was written; remove it, and "
            "the next build will write it again"
        )


_CHECKS: Final[Mapping[str, Callable[[Path], object]]] = {
    CURRENT: check_current,
    MARKER: _check_mark,
    SYNONYMS: read_synonyms,
    JUDGEMENTS: lambda path: Judgements(path).check(),
}
