"""The terms of a collection, in sorted order; a term's place is its number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class Vocabulary:
    """V distinct terms, sorted by code point, and the way back from term to number.

    Memory is the strings plus one dict entry a term; look-up is O(1).
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self.terms: Sequence[str] = tuple(terms)
        self.numbers: dict[str, int] = {term: number for number, term in enumerate(self.terms)}
        if any(a >= b for a, b in zip(self.terms, self.terms[1:], strict=False)):
            raise ValueError("a vocabulary is sorted and holds each term once")

    def __len__(self) -> int:
        """V, the number of terms."""
        return len(self.terms)
