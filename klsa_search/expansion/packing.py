"""Entries of sparse rows in 32 bits: a number below 2^24, and a level of 8 bits.

A level counts steps of 1/255 of the largest entry of its row; none that is held is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.arrays import narrowed

if TYPE_CHECKING:
    from scipy import sparse

LEVELS = 255
NUMBERS = 2**24
"""What 24 bits can number."""

MAX_DOCUMENTS = NUMBERS
"""Document numbers of an index that can be written to: an entry holds one in 24 bits."""

_BLOCK = 8_192  # rows at a time: what is sorted takes forty bytes an entry

_Packed = npt.NDArray[np.uint32]
_Steps = npt.NDArray[np.float32]


def pack_rows(
    rows: sparse.csr_array, ranks: npt.NDArray[np.int64] | None = None
) -> tuple[npt.NDArray[np.int64], _Packed, _Steps]:
    """Pack positive entries, columns numbered by `ranks` or as they are; none past 2^24 is kept.

    Returns starts, entries and the step of each row. Cost O(entries).
    """
    N = rows.shape[0]
    steps = np.zeros(N, np.float32)
    sizes, packed = [np.zeros(1, np.int64)], [np.zeros(0, np.uint32)]
    for begin in range(0, N, _BLOCK):
        end = min(begin + _BLOCK, N)
        entries = slice(rows.indptr[begin], rows.indptr[end])
        documents = np.repeat(np.arange(end - begin), np.diff(rows.indptr[begin : end + 1]))
        numbers, values = rows.indices[entries], rows.data[entries]
        numbers = numbers if ranks is None else ranks[numbers]
        largest = np.zeros(end - begin, np.float32)
        np.maximum.at(largest, documents, values)
        steps[begin:end] = largest / LEVELS
        kept = (numbers < NUMBERS) & (values > 0)
        levels = _levels(values[kept], steps[begin:end][documents[kept]])
        packed.append((numbers[kept].astype(np.uint32) << np.uint32(8)) | levels)
        sizes.append(np.bincount(documents[kept], minlength=end - begin))
    return np.cumsum(np.concatenate(sizes)), np.concatenate(packed), steps


def unpack_rows(
    starts: npt.NDArray[np.int64], entries: _Packed, steps: _Steps, columns: int
) -> sparse.csr_array:
    """Give rows back: (N, columns) sparse float32. Cost O(entries)."""
    from scipy import sparse

    values = (entries & np.uint32(LEVELS)) * np.repeat(steps, np.diff(starts))
    numbers = (entries >> np.uint32(8)).astype(np.int32)
    return sparse.csr_array((values, numbers, narrowed(starts)), shape=(len(steps), columns))


def pack_table(rows: sparse.csr_array, width: int, first_row: int = 0) -> tuple[_Packed, _Steps]:
    """Pack the `width` strongest positive entries of each row, strongest first, then 0.

    The diagonal is left out, which begins at column `first_row`; ties go by column. Returns
    (N, width) and the step of each row.
    Cost O(entries log entries).
    """
    N = rows.shape[0]
    table, steps = np.zeros((N, width), np.uint32), np.zeros(N, np.float32)
    for begin in range(0, N, _BLOCK):
        end = min(begin + _BLOCK, N)
        within = slice(rows.indptr[begin], rows.indptr[end])
        documents = np.repeat(np.arange(begin, end), np.diff(rows.indptr[begin : end + 1]))
        columns, values = rows.indices[within], rows.data[within]
        others = np.flatnonzero((columns != documents + first_row) & (values > 0))
        order = others[np.lexsort((columns[others], -values[others], documents[others]))]
        counts = np.bincount(documents[order] - begin, minlength=end - begin)
        places = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        first, kept = order[places == 0], places < width
        steps[documents[first]] = values[first] / LEVELS
        chosen = order[kept]
        levels = _levels(values[chosen], steps[documents[chosen]])
        packed = (columns[chosen].astype(np.uint32) << np.uint32(8)) | levels
        table[documents[chosen], places[kept]] = packed
    return table, steps


def unpack_table(table: _Packed) -> sparse.csr_array:
    """Give the levels of a table back: (N, N) sparse float32, columns in order."""
    from scipy import sparse

    N = len(table)
    held = table > 0
    starts = narrowed(np.concatenate(([0], np.cumsum(held.sum(axis=1)))))
    entries = table[held]
    levels = (entries & np.uint32(LEVELS)).astype(np.float32)
    columns = (entries >> np.uint32(8)).astype(np.int32)
    matrix = sparse.csr_array((levels, columns, starts), shape=(N, N))
    matrix.sort_indices()
    return matrix


def _levels(values: npt.NDArray[np.floating], steps: _Steps) -> _Packed:
    levels: _Packed = np.maximum(np.rint(values / steps), 1).astype(np.uint32)
    return levels
