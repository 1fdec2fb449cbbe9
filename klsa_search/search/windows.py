"""The part of a line that holds most of a query, compiled: what `snippet` does in Python."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.places import Offsets, Points
from klsa_search.compiling import compiled
from klsa_search.search.snippet import REPEATED, TOLERANCE, WORD_END

_BLANK: Final = np.uint32(32)
_ELLIPSIS: Final = np.uint32(ord("…"))


@compiled
def best_window(
    found: int,
    which: Offsets,
    starts: Offsets,
    ends: Offsets,
    weights: npt.NDArray[np.float64],
    counts: Offsets,
    length: int,
) -> tuple[int, int]:
    """Start and end of the worthiest run of tokens that fits into the length; (0, 0) for none.

    which    (found,) the number of each token's term among those of the query
    weights  of the query's terms
    counts   scratch memory of as many
    """
    counts[:] = 0
    best, worth = 0.0, 0.0
    first, after, left = 0, 0, 0
    for token in range(found):
        term = which[token]
        worth += weights[term] * (REPEATED if counts[term] > 0 else 1.0)
        counts[term] += 1
        while ends[token] - starts[left] > length and left < token:
            leaving = which[left]
            counts[leaving] -= 1
            worth -= weights[leaving] * (REPEATED if counts[leaving] > 0 else 1.0)
            left += 1
        if worth > best + TOLERANCE:
            best = worth
            first, after = starts[left], ends[token]
    return first, after


@compiled
def cut_out(line: Points, size: int, first: int, after: int, length: int, passage: Points) -> int:
    """Write the passage around a window of line[:size] with "…" at cut ends; returns its length.

    passage  room for two characters more than the passage may have
    """
    start, end = _widened(line, size, first, after, length)
    written = 0
    if start > 0:
        passage[written] = _ELLIPSIS
        written += 1
    cut_behind = end < size
    while start < end and line[start] == _BLANK:
        start += 1
    while start < end and line[end - 1] == _BLANK:
        end -= 1
    for i in range(start, end):
        passage[written] = line[i]
        written += 1
    if cut_behind:
        passage[written] = _ELLIPSIS
        written += 1
    return written


@compiled
def _widened(line: Points, size: int, first: int, after: int, length: int) -> tuple[Any, Any]:
    """Ends of the passage around a window: `length` wide, most of the room behind the window."""
    spare = max(length - (after - first), 0)
    start = max(0, min(first - spare // 3, size - length))
    if start > 0 and line[start - 1] != _BLANK:
        for i in range(start, min(start + WORD_END, first)):
            if line[i] == _BLANK:
                start = i + 1
                break
    end = min(size, start + length)
    if end < size and line[end] != _BLANK:
        for i in range(end - 1, max(end - WORD_END, after, start + 1) - 1, -1):
            if line[i] == _BLANK:
                end = i
                break
    return start, end
