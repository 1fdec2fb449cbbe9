"""Delta segments kept in files of a generation, so that who opens it folds nothing again.

    delta-FIRST-AFTER-DIGEST.npz    later documents FIRST to AFTER, counted from 0

A segment follows from the build and from all later documents up to its last, so the digest of those
is its name: a file is taken for what it says, or not at all. It is no more than a help: one that is
damaged, missing, or of writes that were undone is folded again, and nothing needs to be safe.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

from klsa_search.collection.model import Document
from klsa_search.core.version import __version__
from klsa_search.delta.segment import DeltaSegment, merge, read_segment, write_segment
from klsa_search.storage.manifest import Manifest
from klsa_search.storage.names import NEW

LARGEST: Final = 4096
"""Documents of a file, at most, unless they were folded in at once."""

_ENOUGH: Final = 128
"""Documents that are worth a file: they take a tenth of a second to fold."""

_NAME: Final = re.compile(r"delta-(\d+)-(\d+)-([0-9a-f]{32})\.npz")


class _File(NamedTuple):
    first: int
    after: int
    digest: str

    @property
    def name(self) -> str:
        return f"delta-{self.first}-{self.after}-{self.digest}.npz"

    @property
    def size(self) -> int:
        return self.after - self.first


class _Held(NamedTuple):
    """A segment that is in no file yet, and the digest of all documents up to its last."""

    segment: DeltaSegment
    digest: str


class SegmentCache:
    """The files of a generation, walked along while its later documents are taken up in order.

    Memory: segments that were folded and not saved, of some thousand documents; then none is saved.
    """

    def __init__(self, generation: Path, manifest: Manifest) -> None:
        self._generation = generation
        self._digest = blake2b(digest_size=16)
        self._digest.update(f"{__version__} {manifest.fingerprint}\n".encode())
        self._passed = 0  # documents
        self._found: dict[int, _File] = {}
        for file in sorted(map(_file, generation.glob("delta-*.npz"))):
            if file.after > file.first:
                self._found[file.first] = file  # of two, that with more
        self._files: list[_File] = []  # in use, end to end
        self._held: list[_Held] = []
        self._damaged: _File | None = None  # of the documents that were asked for last
        self._mended: list[tuple[_File, DeltaSegment]] = []
        self._saving = True

    @property
    def next_size(self) -> int | None:
        """Documents to be asked for at once: up to where a file ends or begins; None without."""
        file = self._found.get(self._passed)
        if file is not None:
            return file.size
        further = [first for first in self._found if first > self._passed]
        return min(further) - self._passed if further else None

    def take(self, documents: Sequence[Document]) -> DeltaSegment | None:
        """Return the segment of the next documents; None where it has to be folded."""
        found, first = self._found.get(self._passed), self._passed
        for document in documents:
            for part in (document.title.encode(), document.text.encode()):
                self._digest.update(b"%d\n" % len(part))
                self._digest.update(part)
        self._passed += len(documents)
        file = _File(first, self._passed, self._digest.hexdigest())
        if self._held:
            return None
        if file == found:
            with suppress(OSError, ValueError):  # missing or damaged
                segment = read_segment(self._generation / file.name, file.digest)
                self._files.append(file)
                return segment
        if file == found or self._passed in self._found:
            self._damaged = file
        return None

    def end(self) -> None:
        """Note that no more documents are there: files of any are of writes that were undone."""
        self._found.clear()

    def append(self, segment: DeltaSegment) -> None:
        """Note a segment that was folded: of the documents that were asked for last."""
        damaged, self._damaged = self._damaged, None
        if damaged is not None:
            self._files.append(damaged)
            self._mended.append((damaged, segment))
            return
        if sum(len(held.segment) for held in self._held) > 2 * LARGEST:
            self._saving = False  # who does not write keeps nothing
        if self._saving:
            self._held.append(_Held(segment, self._digest.hexdigest()))
        else:
            self._held.clear()

    def save(self) -> None:
        """Keep what was folded, where it is enough; files that are of no use go.

        Small files are joined, so that there is one for some thousand documents and few others. A
        full disk, or a folder that may not be written to, is no error. Cost: 2 KB a document.
        """
        enough = self._saving and sum(len(held.segment) for held in self._held) >= _ENOUGH
        if not enough and not self._mended:
            return
        with suppress(OSError):
            while self._mended:
                self._put(*self._mended[-1])
                self._mended.pop()
            for batch in self._batches() if enough else ():
                self._write(batch)
            used = {file.name for file in self._files}
            for path in self._generation.glob("delta-*.npz"):
                if path.name not in used:
                    path.unlink(missing_ok=True)

    def _batches(self) -> list[list[_Held]]:
        """Divide what is held into files."""
        batches: list[list[_Held]] = []
        size = 0
        for held in self._held:
            if not batches or size + len(held.segment) > LARGEST:
                batches.append([])
                size = 0
            batches[-1].append(held)
            size += len(held.segment)
        return batches

    def _write(self, batch: list[_Held]) -> None:
        """Write a file, of those before it too that are no larger, and let go of what is in it."""
        segments = [held.segment for held in batch]
        after = (self._files[-1].after if self._files else 0) + sum(map(len, segments))
        files = list(self._files)
        try:
            while (
                files
                and files[-1].size <= after - files[-1].after
                and after - files[-1].first <= LARGEST
            ):
                former = files[-1]
                segments.insert(0, read_segment(self._generation / former.name, former.digest))
                files.pop()
        except ValueError:  # damaged since it was read: it stays to be found so
            pass
        file = _File(files[-1].after if files else 0, after, batch[-1].digest)
        self._put(file, merge(segments))
        self._files = [*files, file]
        del self._held[: len(batch)]

    def _put(self, file: _File, segment: DeltaSegment) -> None:
        # Unique, as another process may write the same file.
        fresh = self._generation / f".{file.name.removesuffix('.npz')}-{uuid4().hex}.{NEW}"
        try:
            write_segment(fresh, segment, file.digest)
            fresh.rename(self._generation / file.name)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise


def _file(path: Path) -> _File:
    found = _NAME.fullmatch(path.name)
    return _File(int(found[1]), int(found[2]), found[3]) if found else _File(0, 0, "")
