"""A delta segment: documents written after a build, as arrays, in memory or in one file.

    delta-AFTER-DIGEST.npz    a block of later documents, up to AFTER of them

The process that completes a block saves it. All others read these files when they open the
generation or refresh it, and fold only what is in none yet. A segment follows from the build and
all later documents up to its last; their digest is part of the name. A file that is damaged,
missing or of undone writes is computed again, so writing needs no durability. Segments of
consecutive documents are merged by concatenating their arrays.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.searched_text import language_stated, searched_texts
from klsa_search.collection.model import Document
from klsa_search.core.array_types import Numbers, starts_of
from klsa_search.core.installation import __version__
from klsa_search.storage.files import replacement
from klsa_search.storage.manifest import Manifest

BLOCK: Final = 256
"""Documents of a file: folding them takes 0.15 s."""

_Ints = npt.NDArray[np.int32]


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
    features        uint32, see `lowrank.sparse_expansion`; likewise rows and scales
    document_vectors
                    (n, w) int8
    rows            (n, entries) uint32, the nearest neighbours among all earlier doc ids
    scales          (n, 2) float32
    reverse         (R, 2) int32, earlier document and document here, ascending: pairs whose K is
                    among the strongest entries of the row of the earlier document
    reverse_values  (R,) float32, K of the two
    """

    first: int
    word_starts: Numbers
    words: npt.NDArray[np.uint8]
    lengths: _Ints
    forward_starts: Numbers
    forward_codes: npt.NDArray[np.uint8]
    feature_starts: Numbers
    features: npt.NDArray[np.uint32]
    document_vectors: npt.NDArray[np.int8]
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


_LISTS: Final = {
    "word_starts": "words",
    "forward_starts": "forward_codes",
    "feature_starts": "features",
}
_ARRAYS: Final = tuple(field.name for field in fields(DeltaSegment) if field.name != "first")
_SUM_BYTES: Final = 4


def words_of(terms: Sequence[str]) -> tuple[npt.NDArray[np.uint8], Numbers]:
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


class SegmentCache:
    """The segments of a generation, passed while its later documents are loaded in order.

    A block of `BLOCK` documents is written to a file when it is complete. A full or read-only disk
    is not an error. Memory: the segments of a block.

    terms  V of the build, after which later terms are numbered: a partition that is opened without
           the others has fewer
    """

    def __init__(self, generation: Path, manifest: Manifest, terms: int) -> None:
        self._generation = generation
        self._digest = blake2b(digest_size=16)
        layout = " ".join(_ARRAYS)  # so files with other fields have other names
        self._digest.update(f"{__version__} {layout} {manifest.fingerprint} {terms}\n".encode())
        settings = manifest.checked_settings()
        self._fields, self._language_field = settings.searched_fields, settings.language_field
        self._documents = 0
        self._block: list[DeltaSegment] = []

    def next_size(self) -> int:
        """Return how many documents to pass to `get` at most: up to the end of the block."""
        return BLOCK - self._documents % BLOCK

    def get(self, documents: Sequence[Document]) -> DeltaSegment | None:
        """Return the segment of the next documents, a block; None if it has to be computed."""
        self._documents += len(documents)
        for document in documents:
            texts = searched_texts(document, self._fields)
            for part in (*texts, language_stated(document, self._language_field)):
                self._digest.update(b"%d\n" % len(part.encode()))
                self._digest.update(part.encode())
        if len(documents) == BLOCK:
            with suppress(OSError, ValueError):  # there is none, or it is damaged
                return read_segment(self._file, self._digest.hexdigest())
        return None

    def append(self, segment: DeltaSegment) -> None:
        """Add the computed segment of the documents of the last call of `get`."""
        self._block.append(segment)
        if self._documents % BLOCK == 0:
            block, self._block = self._block, []
            with suppress(OSError):
                self._save(merge(block))

    @property
    def _file(self) -> Path:
        return self._generation / f"delta-{self._documents}-{self._digest.hexdigest()}.npz"

    def _save(self, segment: DeltaSegment) -> None:
        """Write the file of a block, and remove those of undone writes."""
        with replacement(self._file) as fresh:
            write_segment(fresh, segment, self._digest.hexdigest())
        for file in self._generation.glob(f"delta-{self._documents}-*.npz"):
            if file != self._file:
                file.unlink(missing_ok=True)
