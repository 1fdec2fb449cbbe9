"""A delta segment: documents that came after a build, as arrays; in memory, and in one file.

Whatever it holds follows from the build and the documents before it, so a file that is damaged is
made again, and nothing of it needs to be safe. Segments of consecutive documents are merged by
putting their arrays end to end.

    DeltaSegment        arrays: see there
    merge(segments)     -> DeltaSegment, the same as if all had been folded in at once
    write_segment(path, segment, key)
    read_segment(path, key) -> DeltaSegment, ValueError where damaged, or of another key
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
    """n documents at consecutive positions; T terms, R reverse entries.

    first           position of the first document
    words           UTF-8: terms that neither the build nor a document before held, in the order of
                    their first appearance, each with a line end; their numbers follow all before
    terms           (T,) ascending, the number among all terms of each term that it holds
    count_starts    (n + 1,) where the counts of each document begin
    count_terms     int32, place in `terms`, ascending within a document
    counts          int32, f(t,d)
    lengths         (n,) dl(d)
    forward_starts  (n + 1,) where the codes of each document begin
    forward_codes   the forward index: see `storage.forward_index`; a new term's rank is its number
    feature_starts  (n + 1,) where the features of each document begin
    features        uint32, see `lowrank.sparse_expansion`; likewise cards, rows and scales
    cards           (n, w) int8
    rows            (n, entries) uint32, the strongest among all positions before the document's own
    scales          (n, 2) float32
    reverse         (R, 2) int32, document before and document here, ascending: entries of rows that
                    are as strong as the weakest of the former's own row, or find room in it
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
        """n, the number of documents."""
        return len(self.lengths)

    @property
    def after(self) -> int:
        """Position after its last document."""
        return self.first + len(self)

    @property
    def new_terms(self) -> list[str]:
        """Terms that it is the first to hold, in the order of their numbers."""
        return self.words.tobytes().decode().split("\n")[:-1]

    def matrix(self) -> sparse.csr_array:
        """Counts: (n, T) sparse int32, terms numbered for themselves."""
        matrix = sparse.csr_array(
            (self.counts, self.count_terms, self.count_starts),
            shape=(len(self), len(self.terms)),
        )
        matrix.has_sorted_indices = True
        return matrix


def distinct(
    terms: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The different terms, ascending, and the place of each among them. Cost O(V + n), no sort."""
    held = np.zeros(terms.max(initial=-1) + 1, np.bool_)
    held[terms] = True
    numbers = np.flatnonzero(held)
    places = np.empty(len(held), np.int32)
    places[numbers] = np.arange(len(numbers), dtype=np.int32)
    return numbers, places[terms]


def merge(segments: Sequence[DeltaSegment]) -> DeltaSegment:
    """Make one of consecutive segments, at least one. Cost O(their bytes)."""
    for before, behind in pairwise(segments):
        if before.after != behind.first:
            raise ValueError(f"a segment at {behind.first} behind one that ends at {before.after}")
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(each, name) for each in segments]) for name in _END_TO_END
    }
    for name in _PLACES:
        starts = [getattr(each, name) for each in segments]
        ends = np.cumsum([0, *(each[-1] for each in starts)])
        moved = (each[1:] + end for each, end in zip(starts, ends[:-1], strict=True))
        joined[name] = np.concatenate([np.zeros(1, np.int64), *moved])
    terms = distinct(np.concatenate([each.terms for each in segments]))[0].astype(np.int32)
    count_terms = [np.searchsorted(terms, each.terms)[each.count_terms] for each in segments]
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
    """Write it as an uncompressed `.npz`, in place of what is there. OSError on a full disk.

    key  of whatever it follows from, ASCII: only who names the same may read it
    The file ends in a comment: the CRC-32 of all before it, in hexadecimal.
    """
    arrays = {name: getattr(segment, name) for name in _ARRAYS}
    content = io.BytesIO()
    of = np.frombuffer(key.encode("ascii"), np.uint8)
    np.savez(content, first=np.array(segment.first, np.int64), key=of, **arrays)
    with zipfile.ZipFile(content, "a") as archive:
        archive.comment = bytes(_SUM)
    whole = content.getbuffer()[:-_SUM]
    with path.open("wb") as stream:
        stream.write(whole)
        stream.write(_sum_of(whole))


def read_segment(path: Path, key: str) -> DeltaSegment:
    """Read what `write_segment` wrote for that key; ValueError if any byte is another, OSError."""
    content = path.read_bytes()
    if _sum_of(memoryview(content)[:-_SUM]) != content[-_SUM:]:
        raise ValueError(f"{path} is damaged")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = ("first", "key", *_ARRAYS)
        # Copied, so that they are writable as those that were folded: compiled code is of one kind.
        arrays = {name: array_of(archive.read(f"{name}.npy")).copy() for name in names}
    if arrays.pop("key").tobytes() != key.encode("ascii"):
        raise ValueError(f"{path} is of other documents")
    return DeltaSegment(first=int(arrays.pop("first")), **arrays)


def _sum_of(content: memoryview) -> bytes:
    return f"{zlib.crc32(content):0{_SUM}x}".encode()
