"""A delta segment: documents written after a build, as arrays, in memory or in one file.

    delta-FIRST-AFTER-DIGEST.npz    later documents FIRST to AFTER, counted from 0

A process that writes saves what it folds. All others read these files when they open the generation
or refresh it, and fold what is in no file yet. A segment follows from the build and all later
documents up to its last; their digest is part of the name. A file that is damaged, missing or of
undone writes is computed again, so writing needs no durability. Segments of consecutive documents
are merged by concatenating their arrays.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from klsa_search.collection.model import Document
from klsa_search.collection.searched_text import language_stated, searched_texts
from klsa_search.core.array_types import starts_of
from klsa_search.core.installation import __version__
from klsa_search.storage.manifest import Manifest
from klsa_search.storage.names import NEW

LARGEST: Final = 4096
"""Limit of documents in a file, unless they were folded in one call."""

MIN_DOCUMENTS: Final = 128
"""Documents that justify a file: folding them takes a tenth of a second."""

_NAME: Final = re.compile(r"delta-(\d+)-(\d+)-([0-9a-f]{32})\.npz")

_Ints = npt.NDArray[np.int32]
_Starts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DeltaSegment:
    """n documents at consecutive doc ids; R reverse entries. The fields are keys on disk.

    first           doc id of the first document
    word_starts     (n + 1,) start of the new words of each document
    words           UTF-8: terms new to the build and all documents before, in the order of their
                    first appearance, each with a line end; they have the next term numbers
    lengths         (n,) dl(d)
    forward_starts  (n + 1,) start of the codes of each document
    forward_codes   the forward index: see `storage.forward_index`; a new term's rank is its number
    feature_starts  (n + 1,) start of the features of each document
    features        uint32, see `lowrank.sparse_expansion`; likewise cards, rows and scales
    cards           (n, w) int8, document vectors
    rows            (n, entries) uint32, the nearest neighbours among all earlier doc ids
    scales          (n, 2) float32
    reverse         (R, 2) int32, earlier document and document here, ascending: pairs whose K is
                    among the strongest entries of the row of the earlier document
    reverse_values  (R,) float32, K of the two
    """

    first: int
    word_starts: _Starts
    words: npt.NDArray[np.uint8]
    lengths: _Ints
    forward_starts: _Starts
    forward_codes: npt.NDArray[np.uint8]
    feature_starts: _Starts
    features: npt.NDArray[np.uint32]
    cards: npt.NDArray[np.int8]
    rows: npt.NDArray[np.uint32]
    scales: npt.NDArray[np.float32]
    reverse: _Ints
    reverse_values: npt.NDArray[np.float32]

    def __len__(self) -> int:
        """Return n, the number of documents."""
        return len(self.lengths)

    @property
    def after(self) -> int:
        """Return the doc id after its last document."""
        return self.first + len(self)

    @property
    def new_terms(self) -> list[str]:
        """Return the terms that it is the first to contain, in the order of their numbers."""
        return self.words.tobytes().decode().split("\n")[:-1]

    def without(self, count: int) -> DeltaSegment:
        """Return the segment of the same documents without the first ones, as if folded alone."""
        if not count:
            return self
        arrays = {name: getattr(self, name)[count:] for name in _BY_DOCUMENT}
        for name, content in _LISTS.items():
            starts = getattr(self, name)
            arrays[name] = starts[count:] - starts[count]
            arrays[content] = getattr(self, content)[starts[count] :]
        is_later = self.reverse[:, 1] >= self.first + count
        return DeltaSegment(
            first=self.first + count,
            reverse=self.reverse[is_later],
            reverse_values=self.reverse_values[is_later],
            **arrays,
        )


_LISTS: Final = {
    "word_starts": "words",
    "forward_starts": "forward_codes",
    "feature_starts": "features",
}
_BY_DOCUMENT: Final = ("lengths", "cards", "rows", "scales")
_ARRAYS: Final = tuple(field.name for field in fields(DeltaSegment) if field.name != "first")
_SUM_BYTES: Final = 4


def words_of(terms: Sequence[str]) -> tuple[npt.NDArray[np.uint8], _Starts]:
    """Return terms as in `DeltaSegment.words`, and the start of each, and the end of the last."""
    lines = [f"{term}\n".encode() for term in terms]
    return np.frombuffer(b"".join(lines), np.uint8), starts_of(
        np.array([*map(len, lines)], np.int64)
    )


def merge(segments: Sequence[DeltaSegment]) -> DeltaSegment:
    """Merge consecutive segments, at least one; as if all had been folded in one call."""
    for before, after in pairwise(segments):
        if before.after != after.first:
            raise ValueError(f"a segment at {after.first} follows one that ends at {before.after}")
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(segment, name) for segment in segments])
        for name in _ARRAYS
        if name not in _LISTS
    }
    for name in _LISTS:
        arrays[name] = starts_of(
            np.concatenate([np.diff(getattr(segment, name)) for segment in segments])
        )
    order = np.lexsort(arrays["reverse"].T[::-1])
    arrays["reverse"] = arrays["reverse"][order]
    arrays["reverse_values"] = arrays["reverse_values"][order]
    return DeltaSegment(first=segments[0].first, **arrays)


def write_segment(path: Path, segment: DeltaSegment, key: str) -> None:
    """Write a segment: a CRC-32 of key and arrays, then an `.npz`; OSError on a full disk.

    key  identifies what the segment follows from; `read_segment` requires the same
    """
    content = io.BytesIO()
    first = np.array(segment.first, np.int64)
    np.savez(content, first=first, **{name: getattr(segment, name) for name in _ARRAYS})
    body = content.getvalue()
    path.write_bytes(_sum_of(body, key) + body)


def read_segment(path: Path, key: str) -> DeltaSegment:
    """Read the segment written for a key; ValueError if any byte or the key differs, OSError."""
    content = path.read_bytes()
    body = content[_SUM_BYTES:]
    if _sum_of(body, key) != content[:_SUM_BYTES]:
        raise ValueError(f"{path} is damaged, or of other documents")
    with np.load(io.BytesIO(body)) as arrays:
        return DeltaSegment(first=int(arrays["first"]), **{name: arrays[name] for name in _ARRAYS})


def _sum_of(body: bytes, key: str) -> bytes:
    return zlib.crc32(body, zlib.crc32(key.encode())).to_bytes(_SUM_BYTES)


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
        layout = " ".join(_ARRAYS)  # files of another one are not met
        self._digest.update(f"{__version__} {layout} {manifest.fingerprint}\n".encode())
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
