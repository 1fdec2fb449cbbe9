"""What each character is to the segmentation, as tables that compiled code can read.

They are made of the patterns in `segmentation` and of Python's own NFKC, and so agree with both.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.segmentation import (
    APOSTROPHE_PATTERN,
    LETTER_PATTERN,
    UNSPACED_PATTERN,
    marks,
)
from klsa_search.analysis.unicode import leads_with_mark

SEPARATOR: Final = 0
LETTER: Final = 1  # or digit, of a script with spaces
MARK: Final = 2  # belongs to what is before it
SPACE: Final = 3  # separates, and folds with its neighbours to one blank
UNSPACED: Final = 4  # of a script without spaces
UNSPACED_MARK: Final = 5  # belongs to what is before it, or begins a character where nothing is
APOSTROPHE: Final = 6  # separates, unless an English ending follows
# Added to these:
CHANGED: Final = 8  # NFKC makes something else of it
REORDERED: Final = 16  # a mark that NFKC may move before the one on its left

_POINTS: Final = 0xE0200
# The planes between and beyond hold nothing yet that is not a separator.
_ASSIGNED: Final = (*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, _POINTS))
_LINE_END: Final = "\n"  # NFKC joins nothing with it, so it separates forms


class Characters(NamedTuple):
    """Classes of the first n code points, and the forms of those that NFKC changes.

    classes  (n,) uint8 by code point; those beyond are separators
    changed  (m,) uint32, the code points that change, ascending
    starts   (m + 1,) int32, where the form of each begins
    forms    uint32, the code points of all forms
    """

    classes: npt.NDArray[np.uint8]
    changed: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.int32]
    forms: npt.NDArray[np.uint32]


@cache
def ascii_characters() -> Characters:
    """Tell of ASCII alone."""
    nothing = np.zeros(0, np.uint32)
    classes = _classes("".join(map(chr, range(128))))
    return Characters(classes, nothing, np.zeros(1, np.int32), nothing)


@cache
def all_characters() -> Characters:
    """Tell of all of Unicode. Cost: 0.1 s and 1 MB, once."""
    text = "".join(map(chr, _ASSIGNED))
    classes = np.zeros(_POINTS, np.uint8)
    classes[list(_ASSIGNED)] = _classes(text)
    for first, last in marks():
        found = classes[first : last + 1]
        found[:] = np.where(found == UNSPACED, UNSPACED_MARK, MARK)
    normal = unicodedata.normalize("NFKC", _LINE_END.join(text.replace(_LINE_END, " ")))
    changes = [
        (character, form)
        for character, form in zip(text, normal.split(_LINE_END), strict=True)
        if form != character and character != _LINE_END
    ]
    changed = np.array([ord(character) for character, _ in changes], np.uint32)
    classes[changed] |= CHANGED
    candidates = chain(changed.tolist(), *(range(first, last + 1) for first, last in marks()))
    classes[[point for point in candidates if leads_with_mark(chr(point))]] |= REORDERED
    starts = np.cumsum([0, *(len(form) for _, form in changes)]).astype(np.int32)
    forms = [ord(character) for character in chain.from_iterable(form for _, form in changes)]
    return Characters(classes, changed, starts, np.array(forms, np.uint32))


def _classes(text: str) -> npt.NDArray[np.uint8]:
    """Classes of the characters of a text, marks undecided."""
    classes = np.zeros(len(text), np.uint8)
    for pattern, kind in ((LETTER_PATTERN, LETTER), (UNSPACED_PATTERN, UNSPACED), (r"\s", SPACE)):
        for run in re.finditer(f"(?:{pattern})+", text):
            classes[slice(*run.span())] = kind
    for apostrophe in re.finditer(APOSTROPHE_PATTERN, text):
        classes[apostrophe.start()] = APOSTROPHE
    return classes
