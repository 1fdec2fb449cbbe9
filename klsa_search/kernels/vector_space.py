"""Vector spaces: vectors of documents, and their cosines to a query.

Vectors are 8-bit integers, so dot products are exact, and cosines are the same to the bit for any
order of the documents and on any machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Scores
from klsa_search.core.compiling import compiled, not_compiled

ABSENT: Final = np.float32(-2)
"""Instead of the cosine of a document without a vector."""

_BLOCK: Final = 1024
_EXACT: Final = 2**24
"""Float32 has all integers up to this one."""

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
        found = np.full(size, ABSENT, np.float32)
        scale = scales_of(query[None])[0]
        for part in self.parts:
            if len(part.rows):
                add = _add_cosines_in_blocks if not_compiled(_add_cosines) else _add_cosines
                add(part.rows, part.documents, part.scales, query, scale, found)
        return found

    def has(self, size: int) -> npt.NDArray[np.bool_]:
        """Return which documents have a vector: (size,)."""
        found = np.zeros(size, np.bool_)
        for part in self.parts:
            found[part.documents] = True
        return found


VectorSpaces = Mapping[str, VectorSpace]


def scales_of(rows: _Bytes) -> npt.NDArray[np.float32]:
    """Return 1 / length of each row."""
    pieces: Sequence[npt.NDArray[np.float64]] = [
        np.square(rows[begin : begin + _BLOCK], dtype=np.float64).sum(axis=1)
        for begin in range(0, len(rows), _BLOCK)
    ] or [np.zeros(0)]
    return (1 / np.sqrt(np.concatenate(pieces))).astype(np.float32)


@compiled
def _add_cosines(
    rows: _Bytes,
    documents: npt.NDArray[np.int32],
    scales: npt.NDArray[np.float32],
    query: _Bytes,
    scale: np.float32,
    found: Scores,
) -> None:
    for i in range(len(rows)):
        product = np.int32(0)
        for j in range(len(query)):
            product += np.int32(rows[i, j]) * np.int32(query[j])
        cosine = np.float32(product) * (scales[i] * scale)
        found[documents[i]] = max(found[documents[i]], cosine)


def _add_cosines_in_blocks(
    rows: _Bytes,
    documents: npt.NDArray[np.int32],
    scales: npt.NDArray[np.float32],
    query: _Bytes,
    scale: np.float32,
    found: Scores,
) -> None:
    """Do the same in NumPy, until `_add_cosines` is compiled."""
    exact = np.dtype(np.float32 if 127 * 127 * rows.shape[1] < _EXACT else np.float64)
    vector: npt.NDArray[Any] = query.astype(exact)
    for begin in range(0, len(rows), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        products = np.dot(rows[block].astype(exact), vector).astype(np.float32)
        np.maximum.at(found, documents[block], products * (scales[block] * scale))
