"""Tables of character classes and NFKC forms for the native location of words.

They are derived from the patterns in `segmentation` and from `nfkc`, so they agree.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search._native import Characters
from klsa_search.analysis.segmentation import (
    APOSTROPHE_PATTERN,
    EMOJI_PATTERN,
    FLAG_PATTERN,
    LETTER_PATTERN,
    NON_JOINER,
    UNSPACED_PATTERN,
    marks,
)
from klsa_search.analysis.unicode import DOUBLE_QUOTES, leads_with_mark, nfkc

SEPARATOR: Final = 0
LETTER: Final = 1  # or digit, of a script with spaces
MARK: Final = 2  # belongs to the preceding character
SPACE: Final = 3  # separates; runs are folded to one blank
UNSPACED: Final = 4  # letter of a script without spaces
UNSPACED_MARK: Final = 5  # belongs to the preceding character, or begins one
APOSTROPHE: Final = 6  # separates, unless an English ending follows or within a Hebrew word
EMOJI: Final = 7  # a word
FLAG: Final = 8  # half of an emoji
JAMO: Final = 9  # NFKC may compose it and its neighbours to a letter of a script without spaces
QUOTE: Final = 10  # separates, unless within a Hebrew word
JOINER: Final = 11  # a mark that separates after Arabic
# Flags added to these:
CHANGED: Final = 16  # NFKC replaces it
REORDERED: Final = 32  # a mark that NFKC may move to the left

_POINTS: Final = 0xE0200
# Other planes have only separators so far.
_ASSIGNED: Final = (*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, _POINTS))
_LINE_END: Final = "\n"  # separates forms: NFKC never composes it


@cache
def ascii_characters() -> Characters:
    """Return the tables of ASCII."""
    nothing = np.zeros(0, np.uint32)
    classes = _classes("".join(map(chr, range(128))))
    return Characters(classes, nothing, np.zeros(1, np.int32), nothing)


@cache
def all_characters() -> Characters:
    """Return the tables of Unicode. Cost: 0.1 s and 1 MB, once."""
    text = "".join(map(chr, _ASSIGNED))
    classes = np.zeros(_POINTS, np.uint8)
    classes[list(_ASSIGNED)] = _classes(text)
    for first, last in marks():
        run = classes[first : last + 1]
        run[:] = np.where(run == UNSPACED, UNSPACED_MARK, MARK)
    classes[ord(NON_JOINER)] = JOINER
    normal = nfkc(_LINE_END.join(text.replace(_LINE_END, " ")))
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
    """Return the classes of the characters of a text, except marks."""
    classes = np.zeros(len(text), np.uint8)
    for pattern, kind in (
        (LETTER_PATTERN, LETTER),
        (UNSPACED_PATTERN, UNSPACED),
        (EMOJI_PATTERN, EMOJI),
        (FLAG_PATTERN, FLAG),
        ("[\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb]", JAMO),
        (r"\s", SPACE),
        (f"[{DOUBLE_QUOTES}]", QUOTE),
    ):
        for run in re.finditer(f"(?:{pattern})+", text):
            classes[slice(*run.span())] = kind
    for apostrophe in re.finditer(APOSTROPHE_PATTERN, text):
        classes[apostrophe.start()] = APOSTROPHE
    return classes
