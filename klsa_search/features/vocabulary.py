"""The terms of a collection, in sorted order; a term's place is its number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import lt


class Vocabulary:
    """V distinct terms, sorted by code point, and the way back from term to number.

    Memory is the strings plus one dict entry a term; look-up is O(1).
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self.terms: Sequence[str] = tuple(terms)
        # Both without a step of Python for each term: this is most of what opening an index takes.
        self.numbers: dict[str, int] = dict(zip(self.terms, range(len(self.terms)), strict=True))
        if not all(map(lt, self.terms, islice(self.terms, 1, None))):
            raise ValueError("a vocabulary is sorted and holds each term once")

    def __len__(self) -> int:
        """V, the number of terms."""
        return len(self.terms)
