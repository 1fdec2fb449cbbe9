"""The passage of a document that shows best why it was found."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import Final

from klsa_search.analysis import Analyzer, Token
from klsa_search.errors import QueryError

LENGTH: Final = 240
"""Characters of a snippet."""

LONGEST: Final = 10_000
"""Characters of a snippet at most."""

_ELLIPSIS: Final = "…"
REPEATED: Final = 0.1
"""What a term counts when it is met again in a passage; the first time counts 1."""

TOLERANCE: Final = 1e-9
"""What a sum must be greater by: those of floats differ in their last digit."""

WORD_END: Final = 30
"""Characters given up at most at either end for a cut between words."""


def snippet(
    text: str,
    terms: Collection[str],
    analyzer: Analyzer,
    *,
    weights: Mapping[str, float] | None = None,
    length: int = LENGTH,
) -> str:
    """Cut out of a text the passage that holds most of the query, on one line.

    terms    terms of the query, as `analyzer` makes them
    weights  what each term is worth, such as its idf; 1 where nothing is said
    length   characters of the passage at most, "…" at a cut end not counted

    The passage with the greatest sum of weights wins, repetitions counting a tenth, the earliest
    among equals; it is cut between words where there are spaces. Without a term of the query it is
    the beginning of the text. Cost: the analysis of its different words, about 0.15 µs a character
    of a long text with spaces, 1 µs of any other.
    """
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    wanted = frozenset(terms)
    found = _found(line, wanted, analyzer) if wanted else []
    first, after = _best_window(found, weights or {}, length)
    start, end = _widened(line, first, after, length)
    before = _ELLIPSIS if start > 0 else ""
    behind = _ELLIPSIS if end < len(line) else ""
    return f"{before}{line[start:end].strip()}{behind}"


def checked_length(length: object) -> int:
    """Check the length of a snippet that is asked for; QueryError."""
    if isinstance(length, int) and not isinstance(length, bool) and 1 <= length <= LONGEST:
        return length
    raise QueryError(
        f"snippet_length = {length!r} is not a whole number from 1 to {LONGEST:,}",
        field="snippet_length",
    )


def _found(line: str, wanted: Collection[str], analyzer: Analyzer) -> list[Token]:
    """Return the tokens of a line that are wanted terms.

    No token depends on anything behind a space, so each different word is analysed once; what a
    tokenizer of the user's finds may depend on all of the line.
    """
    if analyzer.tokenizes:
        return [token for token in analyzer.tokens(line) if token.term in wanted]
    words = line.split(" ")
    distinct = list(dict.fromkeys(words))
    starts = [0, *accumulate(len(word) + 1 for word in distinct)]
    of: dict[str, list[Token]] = {}
    for token in analyzer.tokens(" ".join(distinct)):
        if token.term in wanted:
            place = bisect_right(starts, token.start) - 1
            begin = starts[place]
            moved = token._replace(start=token.start - begin, end=token.end - begin)
            of.setdefault(distinct[place], []).append(moved)
    found, at = [], 0
    for word in words:
        if word in of:
            found += [
                token._replace(start=at + token.start, end=at + token.end) for token in of[word]
            ]
        at += len(word) + 1
    return found


def _best_window(found: list[Token], weights: Mapping[str, float], length: int) -> tuple[int, int]:
    """Start and end of the worthiest run of tokens that fits into the length; (0, 0) for none."""
    best, window = 0.0, (0, 0)
    counts: dict[str, int] = {}
    worth, left = 0.0, 0
    for token in found:
        worth += _worth(token, weights, again=counts.get(token.term, 0) > 0)
        counts[token.term] = counts.get(token.term, 0) + 1
        while token.end - found[left].start > length and found[left] is not token:
            leaving = found[left]
            counts[leaving.term] -= 1
            worth -= _worth(leaving, weights, again=counts[leaving.term] > 0)
            left += 1
        if worth > best + TOLERANCE:
            best, window = worth, (found[left].start, token.end)
    return window


def _worth(token: Token, weights: Mapping[str, float], *, again: bool) -> float:
    """Worth of a token; `again` if its term is in the window besides."""
    return weights.get(token.term, 1.0) * (REPEATED if again else 1.0)


def _widened(line: str, first: int, after: int, length: int) -> tuple[int, int]:
    """Ends of the passage around a window: `length` wide, most of the room behind the window."""
    spare = max(length - (after - first), 0)
    start = max(0, min(first - spare // 3, len(line) - length))
    if start > 0 and line[start - 1] != " ":
        space = line.find(" ", start, min(start + WORD_END, first))
        start = start if space < 0 else space + 1
    end = min(len(line), start + length)
    if end < len(line) and line[end] != " ":
        space = line.rfind(" ", max(end - WORD_END, after, start + 1), end)
        end = end if space < 0 else space
    return start, end
