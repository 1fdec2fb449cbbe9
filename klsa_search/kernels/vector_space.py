"""Vector spaces: vectors of documents, and their cosines to a query.

Vectors are 8-bit integers, so dot products are exact, and cosines are the same to the bit for any
order of the documents and on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.collection.vectors import quantised
from klsa_search.core.array_types import Scores

ABSENT: Final = np.float32(-2)
"""Instead of the cosine of a document without a vector."""

_BLOCK: Final = 1024
_EXACT: Final = 2**24
"""Float32 has all integers up to this one."""

_CANCELLED: Final = 1e-6
"""Largest value of a sum of directions that cancel out, due to rounding."""

_Bytes = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Vectors of consecutive documents, of which each has any number.

    rows       (R, dimension) int8
    documents  (R,) int32, doc id of each, ascending
    scales     (R,) float32, 1 / length
    """

    rows: _Bytes
    documents: npt.NDArray[np.int32]
    scales: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """All vectors of one space: those of the build, and later ones."""

    name: str
    dimension: int
    parts: tuple[VectorRows, ...]

    def cosines(self, query: _Bytes, size: int) -> Scores:
        """Return the cosine of each document to a vector, the largest if it has several: (size,).

        query  (dimension,) stored vector
        `ABSENT` for documents without a vector. Cost: 8 ms for 200,000 vectors of 384 values.
        """
        cosines = np.full(size, ABSENT, np.float32)
        scale = float(scales_of(query[None])[0])
        for part in self.parts:
            _native.add_cosines(part.rows, part.documents, part.scales, query, scale, cosines)
        return cosines

    def one_per_document(self) -> VectorSpace:
        """Return the space with one vector a document: the mean direction, if it has several.

        A document whose vectors cancel out has none. Cost: O(n) for n vectors; O(n · dimension) if
        a document has several.
        """
        return replace(self, parts=tuple(_one_per_document(part) for part in self.parts))

    def vector(self, document: int) -> _Bytes | None:
        """Return the first vector of a document, None if it has none: (dimension,)."""
        for part in self.parts:
            at = int(np.searchsorted(part.documents, document))
            if at < len(part.documents) and part.documents[at] == document:
                row: _Bytes = part.rows[at]
                return row
        return None

    def merged(self) -> VectorRows:
        """Return all vectors as one part. Cost: copying them."""
        if len(self.parts) == 1:
            return self.parts[0]
        empty = np.zeros((0, self.dimension), np.int8)
        return VectorRows(
            np.concatenate([empty, *(part.rows for part in self.parts)]),
            np.concatenate([np.zeros(0, np.int32), *(part.documents for part in self.parts)]),
            np.concatenate([np.zeros(0, np.float32), *(part.scales for part in self.parts)]),
        )

    def coordinates(self, size: int) -> npt.NDArray[np.float32]:
        """Return the first vector of each document with length 1, or 0: (size, dimension)."""
        coordinates = np.zeros((size, self.dimension), np.float32)
        for part in self.parts:
            first = np.flatnonzero(np.diff(part.documents, prepend=-1))
            coordinates[part.documents[first]] = part.rows[first] * part.scales[first, None]
        return coordinates

    def has(self, size: int) -> npt.NDArray[np.bool_]:
        """Return which documents have a vector: (size,)."""
        has_vector = np.zeros(size, np.bool_)
        for part in self.parts:
            has_vector[part.documents] = True
        return has_vector


VectorSpaces = Mapping[str, VectorSpace]


def dot_products(left: _Bytes, right: _Bytes) -> npt.NDArray[np.float32]:
    """Return the inner products of all pairs of vectors: (n, m), (o, m) → (n, o).

    They do not depend on the order of sums.
    """
    exact = np.dtype(np.float32 if 127 * 127 * left.shape[1] < _EXACT else np.float64)
    return np.asarray(np.dot(left.astype(exact), right.astype(exact).T), np.float32)


def scales_of(rows: _Bytes) -> npt.NDArray[np.float32]:
    """Return 1 / length of each row."""
    pieces: Sequence[npt.NDArray[np.float64]] = [
        np.square(rows[begin : begin + _BLOCK], dtype=np.float64).sum(axis=1)
        for begin in range(0, len(rows), _BLOCK)
    ] or [np.zeros(0)]
    return (1 / np.sqrt(np.concatenate(pieces))).astype(np.float32)


def _one_per_document(part: VectorRows) -> VectorRows:
    starts = np.flatnonzero(np.diff(part.documents, prepend=-1))
    if len(starts) == len(part.documents):
        return part
    ends = np.append(starts[1:], len(part.documents))
    sums = np.zeros((len(starts), part.rows.shape[1]))
    for at, (begin, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        directions = part.rows[begin:end] * part.scales[begin:end, None].astype(np.float64)
        sums[at] = directions.sum(axis=0)
    kept = np.abs(sums).max(axis=1) > _CANCELLED
    rows = quantised(sums[kept]) if kept.any() else part.rows[:0]
    return VectorRows(rows, part.documents[starts[kept]], scales_of(rows))
