"""A delta segment: documents written after a build, as arrays, in memory or in one file.

A segment follows from the build and the documents before it, so a damaged file is computed again
and writing needs no durability. Segments of consecutive documents are merged by concatenating their
arrays.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.storage.arrays import array_of

_Ints = npt.NDArray[np.int32]
_Starts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DeltaSegment:
    """n documents at consecutive doc ids; T terms, R reverse entries. The fields are keys on disk.

    first           doc id of the first document
    words           UTF-8: terms new to the build and all documents before, in the order of their
                    first appearance, each with a line end; they have the next term numbers
    terms           (T,) ascending, numbers of the terms in the segment
    count_starts    (n + 1,) start of the counts of each document
    count_terms     int32, index into `terms`, ascending within a document
    counts          int32, f(t,d)
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
    words: npt.NDArray[np.uint8]
    terms: _Ints
    count_starts: _Starts
    count_terms: _Ints
    counts: _Ints
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

    def matrix(self) -> sparse.csr_array:
        """Return the counts: (n, T) sparse int32, columns as in `terms`."""
        matrix = sparse.csr_array(
            (self.counts, self.count_terms, self.count_starts),
            shape=(len(self), len(self.terms)),
        )
        matrix.has_sorted_indices = True
        return matrix


def distinct(
    terms: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the distinct terms, ascending, and the index of each among them. Cost: O(V + n)."""
    present = np.zeros(terms.max(initial=-1) + 1, np.bool_)
    present[terms] = True
    numbers = np.flatnonzero(present)
    positions = np.empty(len(present), np.int32)
    positions[numbers] = np.arange(len(numbers), dtype=np.int32)
    return numbers, positions[terms]


def merge(segments: Sequence[DeltaSegment]) -> DeltaSegment:
    """Merge consecutive segments, at least one; as if all had been folded in one call."""
    for before, after in pairwise(segments):
        if before.after != after.first:
            raise ValueError(f"a segment at {after.first} follows one that ends at {before.after}")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(segment, name) for segment in segments])
        for name in _END_TO_END
    }
    for name in _PLACES:
        starts = [getattr(segment, name) for segment in segments]
        ends = np.cumsum([0, *(start[-1] for start in starts)])
        moved = (start[1:] + end for start, end in zip(starts, ends[:-1], strict=True))
        joined[name] = np.concatenate([np.zeros(1, np.int64), *moved])
    terms = distinct(np.concatenate([segment.terms for segment in segments]))[0].astype(np.int32)
    count_terms = [
        np.searchsorted(terms, segment.terms)[segment.count_terms] for segment in segments
    ]
    order = np.lexsort(joined["reverse"].T[::-1])
    joined["reverse"] = joined["reverse"][order]
    joined["reverse_values"] = joined["reverse_values"][order]
    return DeltaSegment(
        first=segments[0].first,
        terms=terms,
        count_terms=np.concatenate(count_terms).astype(np.int32),
        **joined,
    )


_SUM: Final = 8  # digits of a CRC-32
_PLACES: Final = ("count_starts", "forward_starts", "feature_starts")
_ARRAYS: Final = tuple(field.name for field in fields(DeltaSegment) if field.name != "first")
_END_TO_END: Final = tuple(
    name for name in _ARRAYS if name not in {*_PLACES, "terms", "count_terms"}
)


def write_segment(path: Path, segment: DeltaSegment, key: str) -> None:
    """Write a segment as an uncompressed `.npz`, replacing the file; OSError on a full disk.

    key  ASCII, identifies what the segment follows from; `read_segment` requires the same
    The file ends in a comment: the CRC-32 of all before it, in hexadecimal.
    """
    arrays = {name: getattr(segment, name) for name in _ARRAYS}
    content = io.BytesIO()
    key_bytes = np.frombuffer(key.encode("ascii"), np.uint8)
    np.savez(content, first=np.array(segment.first, np.int64), key=key_bytes, **arrays)
    with zipfile.ZipFile(content, "a") as archive:
        archive.comment = bytes(_SUM)
    body = content.getbuffer()[:-_SUM]
    with path.open("wb") as stream:
        stream.write(body)
        stream.write(_sum_of(body))


def read_segment(path: Path, key: str) -> DeltaSegment:
    """Read the segment written for a key; ValueError if any byte or the key differs, OSError."""
    content = path.read_bytes()
    if _sum_of(memoryview(content)[:-_SUM]) != content[-_SUM:]:
        raise ValueError(f"{path} is damaged")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = ("first", "key", *_ARRAYS)
        arrays = {name: array_of(archive.read(f"{name}.npy")) for name in names}
    if arrays.pop("key").tobytes() != key.encode("ascii"):
        raise ValueError(f"{path} is of other documents")
    return DeltaSegment(first=int(arrays.pop("first")), **arrays)


def _sum_of(content: memoryview) -> bytes:
    return f"{zlib.crc32(content):0{_SUM}x}".encode()
