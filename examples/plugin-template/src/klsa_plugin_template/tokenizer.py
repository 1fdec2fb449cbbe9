"""Character trigrams of words, so that misspelt and compound words have terms in common."""

from __future__ import annotations

import re
from collections.abc import Iterator

WORD = re.compile(r"\w+")


def trigrams(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the groups of three characters of each word, or a shorter word, with start and end."""
    for found in WORD.finditer(text):
        first, after = found.span()
        for start in range(first, max(after - 2, first + 1)):
            end = min(start + 3, after)
            yield text[start:end], start, end
