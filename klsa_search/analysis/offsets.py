"""Where the words of a line stand, compiled: the spans of `segmentation`, counted and not named.

A line is an array of code points, uint32, as it was given: what NFKC makes of it, and the way back
to its offsets, is found here as well.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.characters import (
    APOSTROPHE,
    CHANGED,
    LETTER,
    MARK,
    REORDERED,
    SEPARATOR,
    SPACE,
    UNSPACED,
    UNSPACED_MARK,
    Characters,
)
from klsa_search.core.compiling import compiled

Points = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int32]

_ONE_LETTER: Final = tuple(map(ord, "sStTmMdD"))
_TWO_LETTERS: Final = tuple((ord(a), ord(b)) for a, b in ("ll", "LL", "re", "RE", "ve", "VE"))


@compiled
def locate_words(
    line: Points,
    size: int,
    characters: Characters,
    wanted: Offsets,
    starts: Offsets,
    ends: Offsets,
) -> int:
    """Find where some words of line[:size] begin and end, as `Analyzer.tokens` reports it.

    wanted        numbers of words from 0, left-out ones counted, ascending
    starts, ends  (at least len(wanted),) what is found of them

    Returns how many are found; -1 if something stands so oddly that this code cannot tell, such as
    a mark behind a fraction: `Analyzer.tokens` can. Cost: 3 ns a character up to the last word
    wanted, 10 in scripts without spaces.
    """
    found = _place_letters(line, size, characters.classes, wanted, starts, ends)
    if found >= 0:
        return found
    length = _normal_length(line, size, characters)
    if length >= 0:
        return _place(line, size, characters.classes, wanted, starts, ends)
    normal, origin = np.empty(-length, np.uint32), np.empty(-length, np.int32)
    length = _normalise(line, size, characters, normal, origin)
    if length < 0:
        return -1
    found = _place(normal, length, characters.classes, wanted, starts, ends)
    for i in range(found):
        starts[i] = origin[starts[i]]
        ends[i] = origin[ends[i] - 1] + 1
    return found


@compiled
def class_of(point: np.uint32, classes: npt.NDArray[np.uint8]) -> Any:
    """Class of a code point; a separator beyond those there are classes of."""
    return classes[point] if point < len(classes) else np.uint8(0)


@compiled
def _place_letters(
    line: Points,
    size: int,
    classes: npt.NDArray[np.uint8],
    wanted: Offsets,
    starts: Offsets,
    ends: Offsets,
) -> int:
    """`_place`, where all words are letters and marks; -1 for anything else.

    Three times as fast: it does not guess where words end, and so is never wrong there.
    """
    found, at = 0, 0
    number: Any = 0
    inside: Any = 0  # a word
    taken = 0  # a wanted one
    following = wanted[0] if len(wanted) else -1
    if following < 0:
        return 0
    while at < size:
        kind = np.uint8(SEPARATOR)
        while at < size:
            kind = class_of(line[at], classes) & ~REORDERED
            if kind > SPACE:
                break
            letter = np.int64(kind == LETTER)
            begins = letter & (1 - inside)
            if begins & np.int64(number == following):
                starts[found], taken = at, 1
            number += begins
            inside = letter | (np.int64(kind == MARK) & inside)
            if taken > inside:
                ends[found], taken = at, 0
                found += 1
                if found == len(wanted):
                    return found
                following = wanted[found]
            at += 1
        if kind <= SPACE:
            break
        if kind != APOSTROPHE:
            return -1
        end = at
        if inside:
            end = _after_ending(line, at, size, classes)
            if end < 0:
                return -1
        if taken:
            ends[found], taken = end, 0
            found += 1
            if found == len(wanted):
                return found
            following = wanted[found]
        inside, at = 0, max(at + 1, end)
    if taken:
        ends[found] = at
        found += 1
    return found


@compiled
def _normal_length(line: Points, size: int, characters: Characters) -> int:
    """Code points of the forms of all characters; below 0 if any of them is another one."""
    length, changed = 0, False
    for i in range(size):
        length += 1
        if class_of(line[i], characters.classes) & CHANGED:
            place = _place_of(line[i], characters.changed)
            length += characters.starts[place + 1] - characters.starts[place] - 1
            changed = True
    return -length if changed else length


@compiled
def _normalise(
    line: Points, size: int, characters: Characters, normal: Points, origin: Offsets
) -> int:
    """Write the forms of all characters, and of which each is; returns how many, -1 as above.

    Nothing is composed or put in order: of that neither words nor their ends depend.
    """
    length = 0
    for i in range(size):
        point = line[i]
        if class_of(point, characters.classes) & CHANGED:
            place = _place_of(point, characters.changed)
            first, after = characters.starts[place], characters.starts[place + 1]
            following = class_of(line[i + 1], characters.classes) if i + 1 < size else 0
            if after > first + 1 and following & REORDERED:
                return -1
            for j in range(first, after):
                normal[length] = characters.forms[j]
                origin[length] = i
                length += 1
        else:
            normal[length] = point
            origin[length] = i
            length += 1
    return length


@compiled
def _place_of(point: Any, changed: Points) -> int:
    """Where a code point stands among those that change."""
    low, high = 0, len(changed)
    while high - low > 1:
        middle = (low + high) // 2
        if changed[middle] <= point:
            low = middle
        else:
            high = middle
    return low


@compiled
def _place(
    text: Points,
    size: int,
    classes: npt.NDArray[np.uint8],
    wanted: Offsets,
    starts: Offsets,
    ends: Offsets,
) -> int:
    found, number, at = 0, 0, 0
    while at < size and found < len(wanted):
        kind = class_of(text[at], classes)
        begin = at
        at += 1
        if kind == LETTER:
            at = _after_marks(text, at, size, classes, LETTER)
            at = _after_ending(text, at, size, classes)
            if at < 0:
                return -1
        elif kind & ~REORDERED == UNSPACED_MARK:
            return -1
        elif kind == UNSPACED:
            at = _after_marks(text, at, size, classes, MARK)
            alone = True
            while at < size and class_of(text[at], classes) == UNSPACED:
                second = at
                at = _after_marks(text, at + 1, size, classes, MARK)
                found = _note(number, begin, at, wanted, starts, ends, found)
                number += 1
                begin, alone = second, False
            if not alone:
                continue
        else:
            continue
        found = _note(number, begin, at, wanted, starts, ends, found)
        number += 1
    return found


@compiled
def _note(
    number: int, begin: int, end: int, wanted: Offsets, starts: Offsets, ends: Offsets, found: int
) -> int:
    """Write a word down if it is wanted; returns how many are."""
    if found < len(wanted) and wanted[found] == number:
        starts[found], ends[found] = begin, end
        return found + 1
    return found


@compiled
def _after_marks(
    text: Points, at: int, size: int, classes: npt.NDArray[np.uint8], also: int
) -> int:
    """First place from `at` on that holds no mark and nothing of the class `also`."""
    while at < size:
        kind = class_of(text[at], classes) & ~REORDERED
        if kind not in (MARK, UNSPACED_MARK, also):
            break
        at += 1
    return at


@compiled
def _after_ending(text: Points, at: int, size: int, classes: npt.NDArray[np.uint8]) -> int:
    """Where a word ends whose last letter is before `at`: behind an English ending, if it has one.

    An ending is 's, 't, 'm, 'd, 'll, 're or 've, in small letters or capitals, before no letter.
    -1 before a mark, which may make another letter of it, and before a character of a script
    without spaces, which may be a letter or a sign.
    """
    if at + 1 >= size or class_of(text[at], classes) != APOSTROPHE:
        return at
    first = text[at + 1]
    after = at + 2
    if first not in _ONE_LETTER:
        if after >= size or (first, text[after]) not in _TWO_LETTERS:
            return at
        after += 1
    if after == size:
        return after
    following = class_of(text[after], classes)
    if following & REORDERED or following == UNSPACED:
        return -1
    return at if following == LETTER else after
