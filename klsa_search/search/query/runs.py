"""Runs of letters and digits in a text, and the signs that join them."""

from __future__ import annotations

import re
from itertools import chain
from typing import Final, NamedTuple

from klsa_search.analysis.segmentation import NON_JOINER
from klsa_search.search.engine.query_terms import NO_TERM, UNKNOWN, TermNumbers

JOINING_SIGNS: Final = f"-‐‑.,/&+_{NON_JOINER}"

_RUN: Final = re.compile(r"[^\W_]++")

LETTER: Final = 1
DIGIT: Final = 2
UNKNOWN_RUN: Final = 4
"""Kinds of an end of a run: a letter or a digit, and whether no document contains the run."""


class Run(NamedTuple):
    """A run of letters and digits in a text.

    first, last  kinds of its ends
    may_begin    whether it is a word that may begin another one, before a blank
    may_end      whether it may end another one, after a blank
    sign         what joins it to the next run; a blank if nothing follows, "" if nothing joins
    """

    text: str
    first: int
    last: int
    may_begin: bool
    may_end: bool
    sign: str


NO_RUN: Final = Run("", 0, 0, may_begin=False, may_end=False, sign="")


def words_of(text: str) -> list[str]:
    """Return the words of a text, without any sign."""
    return _RUN.findall(text)


def runs_of(text: str, numbers: TermNumbers) -> list[Run]:
    """Return the runs of letters and digits of a text."""
    matches = list(_RUN.finditer(text))
    ends = chain((match.start() for match in matches[1:]), [len(text)])
    runs = []
    for match, end in zip(matches, ends, strict=False):
        word, number = match[0], numbers[match[0]]
        unknown = UNKNOWN_RUN * (number == UNKNOWN)
        first, last = (DIGIT if end.isdecimal() else LETTER for end in (word[0], word[-1]))
        is_word = word.isalpha() and word.isascii()
        after = text[match.end() : end] or " "
        after = " " if after.isspace() and len(after) == 1 else after  # also one without a break
        runs.append(
            Run(
                word,
                unknown | first,
                unknown | last,
                may_begin=is_word and number >= 0,
                # A stop word only ends one: log in, login.
                may_end=is_word and (number >= 0 or (number == NO_TERM and len(word) > 1)),
                sign=after if len(after) == 1 and after in JOINING_SIGNS + " " else "",
            )
        )
    return runs
