"""A piece of a query between blanks, and its runs of letters and digits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from klsa_search.search.query.builder import Word

WORD: Final = re.compile(r"[^\W_]++")

Words = tuple[Word, ...]


def words_of(text: str) -> list[str]:
    """Return the words of a text, without any sign."""
    return WORD.findall(text)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a query between blanks.

    numbers     term numbers of its words
    words       its words; none if a custom tokenizer finds them, which may look across blanks
    traits      what it may do besides adding its terms, as bits
    first, last  its runs of letters and digits next to the blanks; `NO_RUN` where a sign is
    characters  single characters that stand alone, with the terms of pairs that contain them
    """

    numbers: tuple[int, ...]
    words: tuple[Word, ...]
    traits: int
    first: Run
    last: Run
    characters: dict[str, list[int]]
