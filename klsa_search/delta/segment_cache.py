"""Delta segments in files of a generation, so that no other process folds the same documents.

    delta-FIRST-AFTER-DIGEST.npz    later documents FIRST to AFTER, counted from 0

A process that writes saves what it folds. All others read these files when they open the generation
or refresh it, and fold what is in no file yet. A segment follows from the build and all later
documents up to its last; their digest is part of the name. A file that is damaged, missing or of
undone writes is computed again, so writing needs no durability.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final
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


@dataclass(frozen=True, eq=False)
class _Part:
    """Consecutive documents.

    digest   of all documents up to the last
    segment  None if it is in a file
    """

    first: int
    after: int
    digest: str
    segment: DeltaSegment | None = None

    def __len__(self) -> int:
        """Return the number of documents."""
        return self.after - self.first

    @property
    def name(self) -> str:
        return f"delta-{self.first}-{self.after}-{self.digest}.npz"


class SegmentCache:
    """The segments of a generation, passed while its later documents are loaded in order.

    Memory: unsaved segments of some thousand documents; of more, they are forgotten.
    """

    def __init__(self, generation: Path, manifest: Manifest) -> None:
        self._generation = generation
        self._digest = blake2b(digest_size=16)
        self._digest.update(f"{__version__} {manifest.fingerprint}\n".encode())
        settings = manifest.checked_settings()
        self._fields, self._language_field = settings.searched_fields, settings.language_field
        self._documents = 0
        self._parts: list[_Part] = []  # in order; documents may be in none

    def next_size(self) -> int | None:
        """Return how many documents to pass to `get`: up to the next file boundary, or None.

        Cost: listing the files.
        """
        files = [file for file in self._files() if file.after > self._documents]
        ends = [file.after for file in files if file.first <= self._documents]
        if not files:
            return None
        end = max(ends) if ends else min(file.first for file in files)
        return end - self._documents

    def get(self, documents: Sequence[Document]) -> DeltaSegment | None:
        """Return the segment of the next documents; None if it has to be computed."""
        first = self._documents
        self._documents += len(documents)
        for document in documents:
            texts = searched_texts(document, self._fields)
            for part in (*texts, language_stated(document, self._language_field)):
                self._digest.update(b"%d\n" % len(part.encode()))
                self._digest.update(part.encode())
        end = self._documents, self._digest.hexdigest()
        for file in self._files():
            if file.first <= first and (file.after, file.digest) == end:
                with suppress(OSError, ValueError):  # removed meanwhile, or damaged
                    segment = self._read(file)
                    self._parts = [part for part in self._parts if part.first < file.first]
                    self._parts.append(file)
                    return segment.without(first - file.first)
        return None

    def append(self, segment: DeltaSegment) -> None:
        """Add the computed segment of the documents of the last call of `get`."""
        if self._unsaved() > 2 * LARGEST:  # this process does not save
            self._parts = [part for part in self._parts if part.segment is None]
        end = self._documents
        self._parts.append(_Part(end - len(segment), end, self._digest.hexdigest(), segment))

    def save(self) -> None:
        """Write unsaved segments if there are enough documents, and remove unused files.

        Segments are merged, so that most files have some thousand documents. A full or read-only
        disk is not an error. Cost: 2 KB a document.
        """
        if self._unsaved() < MIN_DOCUMENTS:
            return
        groups: list[list[_Part]] = []
        for part in self._parts:
            group = [part]
            while groups and _are_merged(groups[-1], group):
                group = groups.pop() + group
            groups.append(group)
        with suppress(OSError, ValueError):  # the next opening finds a file that is damaged now
            self._parts = list(map(self._saved, groups))
            used = {part.name for part in self._parts}
            for file in self._files():
                if file.name not in used:
                    (self._generation / file.name).unlink(missing_ok=True)

    def _unsaved(self) -> int:
        """Return the number of documents that are in no file."""
        return sum(len(part) for part in self._parts if part.segment is not None)

    def _saved(self, parts: list[_Part]) -> _Part:
        """Write consecutive parts to one file, unless they are one."""
        first, last = parts[0], parts[-1]
        if last.segment is None:
            return last
        file = _Part(first.first, last.after, last.digest)
        segments = [self._read(part) if part.segment is None else part.segment for part in parts]
        # Unique, as another process may write the same file.
        fresh = self._generation / f".{file.name.removesuffix('.npz')}-{uuid4().hex}.{NEW}"
        try:
            write_segment(fresh, merge(segments), file.digest)
            fresh.rename(self._generation / file.name)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        return file

    def _read(self, file: _Part) -> DeltaSegment:
        return read_segment(self._generation / file.name, file.digest)

    def _files(self) -> list[_Part]:
        names = (_NAME.fullmatch(path.name) for path in self._generation.glob("delta-*.npz"))
        return [_Part(int(name[1]), int(name[2]), name[3]) for name in names if name]


def _are_merged(before: list[_Part], after: list[_Part]) -> bool:
    """Return whether consecutive parts become one file: small ones, if any has to be written."""
    first, middle, last = before[0].first, before[-1].after, after[-1].after
    is_small = before[-1].segment is not None or middle - first <= last - middle
    return (
        after[-1].segment is not None
        and middle == after[0].first
        and last - first <= LARGEST
        and is_small
    )
