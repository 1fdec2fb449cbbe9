"""Rows: counts of consecutive documents of a piece, and the pairs it has among the shared ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.arrays import narrowed
from klsa_search.cluster.counting import within
from klsa_search.cluster.files import mapped
from klsa_search.cluster.work import Made
from klsa_search.features.pairs import number_block

ENTRIES: Final = 2**19
"""Entries of documents that are weighed at a time."""

_Ints = npt.NDArray[np.int32]
_Numbers = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """Counts of consecutive documents of a piece.

    matrix      (n, V) of terms
    lengths     (n,) without common terms
    key_sizes   (n,) pairs of each, and their keys and counts
    """

    matrix: sparse.csr_array
    lengths: _Numbers
    key_sizes: _Ints
    keys: _Numbers
    key_counts: _Ints

    @classmethod
    def of(cls, piece: Made, V: int) -> Iterator[Rows]:
        """Go through the documents of a piece."""
        names = "sizes", "columns", "counts", "content", "key_sizes", "keys", "key_counts"
        array = {name: mapped(piece, name) for name in names}
        ends, key_ends = _ends(array["sizes"]), _ends(array["key_sizes"])
        first, N = 0, len(array["sizes"])
        while first < N:
            last = int(np.searchsorted(ends, ends[first] + ENTRIES, side="right")) - 1
            last = min(max(last, first + 1), N)
            entries = slice(ends[first], ends[last])
            keys = slice(key_ends[first], key_ends[last])
            starts = narrowed(ends[first : last + 1] - ends[first])
            columns, counts = (
                array["columns"][entries],
                array["counts"][entries],
            )
            matrix = sparse.csr_array((counts, columns, starts), shape=(last - first, V))
            matrix.has_sorted_indices = True
            yield cls(
                matrix,
                array["content"][first:last],
                array["key_sizes"][first:last],
                array["keys"][keys],
                array["key_counts"][keys],
            )
            first = last


class Pairs(NamedTuple):
    """The shared pairs that a piece holds.

    keys     (p,) ascending
    starts   (V + 1,) where those of each lesser term begin
    numbers  (p,) of each among the shared pairs of all
    held     (p,) documents of all that hold each
    """

    keys: _Numbers
    starts: _Numbers
    numbers: _Ints
    held: _Numbers

    @classmethod
    def of(cls, piece: Made, limits: _Numbers, ranges: Sequence[Made], V: int) -> Pairs:
        """Look them up, a range of keys at a time."""
        keys, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        held, before = [np.zeros(0, np.int64)], 0
        for low, high, made in zip(limits[:-1], limits[1:], ranges, strict=True):
            own = mapped(piece, "pairs")[within(piece, low, high)]
            shared = mapped(made, "keys")
            places = np.searchsorted(shared, own)
            there = places < len(shared)
            there[there] = shared[places[there]] == own[there]
            keys.append(own[there])
            numbers.append((before + places[there]).astype(np.int32))
            held.append(mapped(made, "held")[places[there]])
            before += len(shared)
        found = np.concatenate(keys)
        starts = np.searchsorted(found, np.arange(V + 1, dtype=np.int64) * V)
        return cls(found, starts, np.concatenate(numbers), np.concatenate(held))

    def counts(self, rows: Rows) -> sparse.csr_array:
        """How often documents hold each of these pairs: (n, p)."""
        sizes, columns, counts = number_block(
            self.keys,
            self.starts,
            len(self.starts) - 1,
            rows.key_sizes,
            rows.keys,
            rows.key_counts,
        )
        matrix = sparse.csr_array(
            (counts, columns, narrowed(_ends(sizes))), shape=(len(sizes), len(self.keys))
        )
        matrix.has_sorted_indices = True
        return matrix


def _ends(sizes: npt.NDArray[np.int32]) -> _Numbers:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
