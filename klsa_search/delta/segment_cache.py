"""A cache of delta segments in files of a generation, so that opening it folds nothing again.

    delta-FIRST-AFTER-DIGEST.npz    later documents FIRST to AFTER, counted from 0

A segment follows from the build and all later documents up to its last; their digest is part of
the name. A file that is damaged, missing or of undone writes is computed again, so writing needs no
durability.
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
from klsa_search.collection.searched_text import language_stated, searched_texts
from klsa_search.core.version import __version__
from klsa_search.delta.segment import DeltaSegment, merge, read_segment, write_segment
from klsa_search.storage.manifest import Manifest
from klsa_search.storage.names import NEW

LARGEST: Final = 4096
"""Limit of documents in a file, unless they were folded in one call."""

MIN_DOCUMENTS: Final = 128
"""Documents that justify a file: folding them takes a tenth of a second."""

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


class _Unsaved(NamedTuple):
    """A segment that is in no file yet, and the digest of all documents up to its last."""

    segment: DeltaSegment
    digest: str


class SegmentCache:
    """The segment files of a generation, read while its later documents are loaded in order.

    Memory: unsaved segments of some thousand documents; beyond that nothing is saved.
    """

    def __init__(self, generation: Path, manifest: Manifest) -> None:
        self._generation = generation
        self._digest = blake2b(digest_size=16)
        self._digest.update(f"{__version__} {manifest.fingerprint}\n".encode())
        settings = manifest.checked_settings()
        self._fields, self._language_field = settings.searched_fields, settings.language_field
        self._seen = 0  # documents
        self._available: dict[int, _File] = {}
        for file in sorted(map(_file, generation.glob("delta-*.npz"))):
            if file.after > file.first:
                self._available[file.first] = file  # the larger of two
        self._files: list[_File] = []  # in use, consecutive
        self._unsaved: list[_Unsaved] = []
        self._damaged: _File | None = None  # of the documents of the last call of `get`
        self._repaired: list[tuple[_File, DeltaSegment]] = []
        self._saving = True

    @property
    def next_size(self) -> int | None:
        """Return how many documents to pass to `get`: up to the next file boundary, or None."""
        file = self._available.get(self._seen)
        if file is not None:
            return file.size
        further = [first for first in self._available if first > self._seen]
        return min(further) - self._seen if further else None

    def get(self, documents: Sequence[Document]) -> DeltaSegment | None:
        """Return the segment of the next documents; None if it has to be computed."""
        available, first = self._available.get(self._seen), self._seen
        for document in documents:
            texts = searched_texts(document, self._fields)
            for part in (*texts, language_stated(document, self._language_field)):
                self._digest.update(b"%d\n" % len(part.encode()))
                self._digest.update(part.encode())
        self._seen += len(documents)
        file = _File(first, self._seen, self._digest.hexdigest())
        if self._unsaved:
            return None
        if file == available:
            with suppress(OSError, ValueError):  # missing or damaged
                segment = read_segment(self._generation / file.name, file.digest)
                self._files.append(file)
                return segment
        if file == available or self._seen in self._available:
            self._damaged = file
        return None

    def end(self) -> None:
        """Note that there are no more documents: remaining files are of undone writes."""
        self._available.clear()

    def append(self, segment: DeltaSegment) -> None:
        """Add the computed segment of the documents of the last call of `get`."""
        damaged, self._damaged = self._damaged, None
        if damaged is not None:
            self._files.append(damaged)
            self._repaired.append((damaged, segment))
            return
        if sum(len(unsaved.segment) for unsaved in self._unsaved) > 2 * LARGEST:
            self._saving = False  # a reader, which never saves
        if self._saving:
            self._unsaved.append(_Unsaved(segment, self._digest.hexdigest()))
        else:
            self._unsaved.clear()

    def save(self) -> None:
        """Write unsaved segments if there are enough documents, and remove unused files.

        Small files are merged, so that most files have some thousand documents. A full or
        read-only disk is not an error. Cost: 2 KB a document.
        """
        documents = sum(len(unsaved.segment) for unsaved in self._unsaved)
        enough = self._saving and documents >= MIN_DOCUMENTS
        if not enough and not self._repaired:
            return
        with suppress(OSError):
            while self._repaired:
                self._put(*self._repaired[-1])
                self._repaired.pop()
            for batch in self._batches() if enough else ():
                self._write(batch)
            used = {file.name for file in self._files}
            for path in self._generation.glob("delta-*.npz"):
                if path.name not in used:
                    path.unlink(missing_ok=True)

    def _batches(self) -> list[list[_Unsaved]]:
        """Return the unsaved segments, grouped by files."""
        batches: list[list[_Unsaved]] = []
        size = 0
        for unsaved in self._unsaved:
            if not batches or size + len(unsaved.segment) > LARGEST:
                batches.append([])
                size = 0
            batches[-1].append(unsaved)
            size += len(unsaved.segment)
        return batches

    def _write(self, batch: list[_Unsaved]) -> None:
        """Write a batch to a file, merged with earlier files that are not larger."""
        segments = [unsaved.segment for unsaved in batch]
        after = (self._files[-1].after if self._files else 0) + sum(map(len, segments))
        files = list(self._files)
        try:
            while (
                files
                and files[-1].size <= after - files[-1].after
                and after - files[-1].first <= LARGEST
            ):
                previous = files[-1]
                segments.insert(0, read_segment(self._generation / previous.name, previous.digest))
                files.pop()
        except ValueError:  # damaged since it was read; the next opening finds that
            pass
        file = _File(files[-1].after if files else 0, after, batch[-1].digest)
        self._put(file, merge(segments))
        self._files = [*files, file]
        del self._unsaved[: len(batch)]

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
    match = _NAME.fullmatch(path.name)
    return _File(int(match[1]), int(match[2]), match[3]) if match else _File(0, 0, "")
