"""A text as one line of code points, from its UTF-8, compiled."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.characters import CHANGED, SPACE
from klsa_search.analysis.places import Points, class_of
from klsa_search.compiling import compiled

FOREIGN: Final = -1
"""The text holds a character beyond ASCII, and the classes at hand tell of ASCII alone."""

_ASCII: Final = 128
_BLANK: Final = np.uint32(32)

Bytes = npt.NDArray[np.uint8]


@compiled
def fold(content: Bytes, begin: int, end: int, classes: Bytes, line: Points) -> int:
    """Write content[begin:end] as `" ".join(text.split())` has it; return its length, or FOREIGN.

    line  room for a character a byte and one more
    Whatever the bytes are, none outside is read. Cost: 1.5 ns a byte.
    """
    size, at = 0, begin
    after_space = True
    while at < end:
        point = np.uint32(content[at])
        if point < _ASCII:
            at += 1
        elif len(classes) == _ASCII:
            return FOREIGN
        else:
            point, at = _decoded(content, at, end)
        space = class_of(point, classes) & ~CHANGED == SPACE
        # Written over where it is a space too many: no guess where words end.
        line[size] = _BLANK if space else point
        size += not (space & after_space)
        after_space = space
    return size - (after_space & (size > 0))


@compiled
def encode(line: Points, size: int, content: Bytes, at: int) -> int:
    """Write line[:size] in UTF-8 from a place on; returns where it ends."""
    for i in range(size):
        point = line[i]
        if point < _ASCII:
            content[at] = point
            at += 1
            continue
        more, head = (1, 0xC0) if point < 0x800 else (2, 0xE0) if point < 0x10000 else (3, 0xF0)
        content[at] = head | point >> np.uint32(6 * more)
        for left in range(more - 1, -1, -1):
            content[at + more - left] = 0x80 | (point >> np.uint32(6 * left) & np.uint32(0x3F))
        at += more + 1
    return at


@compiled
def _decoded(content: Bytes, at: int, end: int) -> tuple[np.uint32, int]:
    """Code point that begins at a place, and where the next one does."""
    first = np.uint32(content[at])
    at += 1
    if first < _ASCII:
        return first, at
    more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
    point = first & np.uint32(0x3F >> more)
    for _ in range(more):
        if at < end:
            point = point << np.uint32(6) | np.uint32(content[at] & 0x3F)
            at += 1
    return point, at
