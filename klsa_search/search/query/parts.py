"""Pieces of a query between blanks, and their runs of letters and digits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from klsa_search.search.query.builder import Variant, Word

WORD: Final = re.compile(r"[^\W_]++")

Words = tuple[Word, ...]


def words_of(text: str) -> list[str]:
    """Return the words of a text, without any sign."""
    return WORD.findall(text)


LETTER: Final = 1
DIGIT: Final = 2
UNKNOWN_PART: Final = 4
"""Kinds of an end of a part: a letter or a digit, and whether no document contains the part."""


class Part(NamedTuple):
    """A run of letters and digits in a text.

    first, last  kinds of its ends
    sign         what joins it to the next part; "" if nothing does
    is_last      whether it ends the text
    """

    text: str
    first: int
    last: int
    sign: str
    is_last: bool


def belong(left: int, right: int) -> bool:
    """Return whether words on both sides of a blank may be parts of one, by the kinds there.

    They may if letters meet digits, or if no document contains one of them.
    """
    return bool(left and right and ((left | right) & UNKNOWN_PART or left != right))


def groups(
    pieces: Sequence[Piece], are_one: Callable[[Piece, Piece], bool]
) -> Iterator[tuple[int, int]]:
    """Yield the first piece of each group of pieces that belong together, and the one after it."""
    first = 0
    for after in range(1, len(pieces)):
        if not are_one(pieces[after - 1], pieces[after]):
            yield first, after
            first = after
    yield first, len(pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a query between blanks.

    numbers     term numbers of its words
    words       its words; none if a custom tokenizer finds them, which may look across blanks
    traits      what it may do besides adding its terms, as bits
    parts       its runs of letters and digits
    first, last  kinds of those next to the blanks: see `Part`; 0 where a sign is
    begins, ends  words next to the blanks that may be joined to others; "" if there are none
    runs, inner  words joined by signs that documents write as one, and shorter sequences
    characters  single characters that stand alone, with the terms of pairs that contain them
    """

    numbers: tuple[int, ...]
    words: tuple[Word, ...]
    traits: int
    parts: tuple[Part, ...]
    first: int
    last: int
    begins: str
    ends: str
    runs: tuple[Variant, ...]
    inner: tuple[Variant, ...]
    characters: dict[str, list[int]]
