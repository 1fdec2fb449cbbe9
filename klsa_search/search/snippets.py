"""Snippets: the passage of a document that contains most of a query."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer, Token
from klsa_search.analysis.characters import CHANGED, SPACE
from klsa_search.analysis.offsets import Offsets, Points, class_of
from klsa_search.core.compiling import Compiled, compiled
from klsa_search.errors import QueryError
from klsa_search.search.markup import without_markup

FOREIGN: Final = -1
"""The text has a character beyond ASCII, but the classes given are those of ASCII."""

_ASCII: Final = 128
_BLANK: Final = np.uint32(32)
_LINE_END: Final = np.uint32(10)
_PARAGRAPH_END: Final = np.uint32(12)
"""Folded blank space that contains one line end, and several or a form feed."""

Bytes = npt.NDArray[np.uint8]


@compiled
def fold(content: Bytes, begin: int, end: int, classes: Bytes, line: Points) -> int:
    """Write content[begin:end] as `folded`; return its length, or FOREIGN.

    line  as long as the content in bytes, plus one
    Never reads outside the range, even if the bytes are invalid. Cost: 1.5 ns a byte.
    """
    size, at = 0, begin
    after_space = True
    while at < end:
        point = np.uint32(content[at])
        if point < _ASCII:
            at += 1
        elif len(classes) == _ASCII:
            return FOREIGN
        else:
            point, at = _decoded(content, at, end)
        space = class_of(point, classes) & ~CHANGED == SPACE
        # Surplus spaces are overwritten, without a branch.
        line[size] = _BLANK if space else point
        size += not (space & after_space)
        after_space = space
        if ((point == _LINE_END) | (point == _PARAGRAPH_END)) & (size > 0):
            is_first = (line[size - 1] == _BLANK) & (point == _LINE_END)
            line[size - 1] = _LINE_END if is_first else _PARAGRAPH_END
    return size - (after_space & (size > 0))


@compiled
def encode(line: Points, size: int, content: Bytes, at: int) -> int:
    """Write line[:size] in UTF-8 from an offset; return the end."""
    for i in range(size):
        point = line[i]
        if point < _ASCII:
            content[at] = point
            at += 1
            continue
        more, head = (1, 0xC0) if point < 0x800 else (2, 0xE0) if point < 0x10000 else (3, 0xF0)
        content[at] = head | point >> np.uint32(6 * more)
        for left in range(more - 1, -1, -1):
            content[at + more - left] = 0x80 | (point >> np.uint32(6 * left) & np.uint32(0x3F))
        at += more + 1
    return at


@compiled
def _decoded(content: Bytes, at: int, end: int) -> tuple[np.uint32, int]:
    """Return the code point at an offset, and the offset of the next one."""
    first = np.uint32(content[at])
    at += 1
    if first < _ASCII:
        return first, at
    more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
    point = first & np.uint32(0x3F >> more)
    for _ in range(more):
        if at < end:
            point = point << np.uint32(6) | np.uint32(content[at] & 0x3F)
            at += 1
    return point, at


_ELLIPSIS_POINT: Final = np.uint32(ord("…"))


@compiled
def best_window(
    tokens: int,
    which: Offsets,
    starts: Offsets,
    ends: Offsets,
    weights: npt.NDArray[np.float64],
    counts: Offsets,
    length: int,
) -> tuple[int, int]:
    """Return start and end of the run of tokens of highest weight that fits; (0, 0) for none.

    which    (found,) index of each token's term in the query
    weights  of the query's terms
    counts   buffer, as long
    """
    counts[:] = 0
    best, score = 0.0, 0.0
    first, after, left = 0, 0, 0
    for token in range(tokens):
        term = which[token]
        score += weights[term] * (REPEATED if counts[term] > 0 else 1.0)
        counts[term] += 1
        while ends[token] - starts[left] > length and left < token:
            leaving = which[left]
            counts[leaving] -= 1
            score -= weights[leaving] * (REPEATED if counts[leaving] > 0 else 1.0)
            left += 1
        if score > best + TOLERANCE:
            best = score
            first, after = starts[left], ends[token]
    return first, after


@compiled
def cut_out(line: Points, size: int, first: int, after: int, length: int, passage: Points) -> int:
    """Write the passage around a window of line[:size], with "…" at cut ends; return its length.

    passage  two characters longer than the passage can be
    """
    start, end, is_cut_before, is_cut_after = passage_span(line, size, first, after, length)
    written = 0
    if is_cut_before:
        passage[written] = _ELLIPSIS_POINT
        written += 1
    for i in range(start, end):
        passage[written] = line[i]
        written += 1
    if is_cut_after:
        passage[written] = _ELLIPSIS_POINT
        written += 1
    return written


@compiled
def passage_span(
    line: Points, size: int, first: int, after: int, length: int
) -> tuple[int, int, bool, bool]:
    """Return the ends of a passage of `length` around a window, and whether each cuts a sentence.

    It has whole sentences, list items and table rows: that of the window if it fits, then those
    that begin at most a third of the rest before the window, and then those after it. If they
    leave half of `length` or more, or do not fit, it is cut between words.
    """
    begin = max(0, after - length)
    starts = np.empty(max(min(size - 1, first + length + 1) - begin + 1, 0), np.int32)
    number = 0
    for i in range(begin, begin + len(starts)):
        if i == 0 or line[i - 1] == _PARAGRAPH_END:
            begins = True
        elif line[i - 1] != _BLANK and line[i - 1] != _LINE_END:
            begins = line[i - 1] in _UNSPACED_ENDS and line[i] not in _CLOSING
        elif line[i - 1] == _LINE_END and line[i] in _BLOCK_MARKS:
            begins = True
        else:
            last = i - 2
            while last > begin and line[last] in _CLOSING:
                last -= 1
            # "J. Smith" and "U.S. Navy" are no ends, nor is a stop before a small letter or digit.
            is_initial = (
                line[last] == _STOP
                and last > 1
                and (line[last - 2] in _BLANKS or line[last - 2] == _STOP)
            )
            is_continued = 97 <= line[i] <= 122 or 48 <= line[i] <= 57
            begins = line[last] in _SENTENCE_ENDS and not is_initial and not is_continued
        if begins:
            starts[number] = i
            number += 1
    spare = max(length - (after - first), 0)
    earliest = max(0, min(first - spare // 3, size - length))
    sentence, sentence_end = -1, size  # around the window
    for i in range(number):
        if starts[i] <= first:
            sentence = int(starts[i])
        elif starts[i] >= after:
            sentence_end = int(starts[i]) - 1
            break
    is_whole = sentence >= 0 and sentence_end - sentence <= length
    start = -1
    for i in range(number):
        if starts[i] > first:
            break
        if start < earliest or (is_whole and sentence_end - start > length):
            start = int(starts[i])
    is_cut_before = start < 0
    if is_cut_before:
        start = earliest
        if start > 0 and line[start - 1] not in _BLANKS:
            for i in range(start, min(start + WORD_END, first)):
                if line[i] in _BLANKS:
                    start = i + 1
                    break
    end = min(size, start + length)
    is_cut_after = end < size
    for i in range(number - 1, -1, -1):
        if not is_cut_after or starts[i] <= max(after, start + length // 2):
            break
        if starts[i] <= start + length + (line[starts[i] - 1] in _BLANKS):
            end, is_cut_after = int(starts[i]), False
    if is_cut_after and line[end] not in _BLANKS:
        for i in range(end - 1, max(end - WORD_END, after, start + 1) - 1, -1):
            if line[i] in _BLANKS:
                end = i
                break
    while start < end and line[start] in _BLANKS:
        start += 1
    while start < end and line[end - 1] in _BLANKS:
        end -= 1
    return start, end, is_cut_before, is_cut_after


_BLANKS: Final = (32, 10, 12)
_STOP: Final = np.uint32(ord("."))
_SENTENCE_ENDS: Final = tuple(map(ord, ".!?…؟۔。！？"))
_UNSPACED_ENDS: Final = tuple(map(ord, "。！？｡"))
_CLOSING: Final = tuple(map(ord, "\"'”’»)]*。！？｡」』）"))
_BLOCK_MARKS: Final = tuple(map(ord, "-*+•|#`>"))
LENGTH: Final = 240
"""Characters of a snippet by default."""

LONGEST: Final = 10_000
"""Characters of a snippet, at most."""

_ELLIPSIS: Final = "…"
_FOLDED: Final = re.compile(r"[ \n\f]")
REPEATED: Final = 0.1
"""Factor of the weight of a term that is repeated in a passage."""

TOLERANCE: Final = 1e-9
"""Difference of sums that is due to rounding."""

WORD_END: Final = 30
"""Characters that are dropped at either end to cut between words, at most."""


def snippet(
    text: str,
    terms: Collection[str],
    analyzer: Analyzer,
    *,
    weights: Mapping[str, float] | None = None,
    length: int = LENGTH,
) -> str:
    """Return the passage of a text that contains most of the query, as one line without Markdown.

    terms    terms of the query, as `analyzer` returns them
    weights  of terms, such as idf; 1 by default
    length   characters of the passage, at most, without "…" at cut ends

    It has the largest sum of weights, in which repeated terms count a tenth; the first of equals.
    It consists of whole sentences if they fit, and is otherwise cut between words. Without a term
    of the query it is the beginning of the text. Cost: the analysis of its distinct words, about
    0.15 µs a character of a long text with spaces, 1 µs of any other.
    """
    line = folded(text)
    if len(line) <= length:
        return without_markup(line)
    terms_ = frozenset(terms)
    tokens = _matching_tokens(line, terms_, analyzer) if terms_ else []
    first, after = _best_window(tokens, weights or {}, length)
    points = array("I", line.encode("utf-32-le", "surrogatepass"))
    start, end, is_cut_before, is_cut_after = cast(Compiled, passage_span).py_func(
        points, len(line), first, after, length
    )
    before = _ELLIPSIS if is_cut_before else ""
    return without_markup(f"{before}{line[start:end]}{_ELLIPSIS if is_cut_after else ''}")


def folded(text: str) -> str:
    """Return a text with each run of blank space as one character, without those at its ends.

    It is a line feed if it contains one, a form feed if it contains several or a form feed, and
    otherwise a blank.
    """
    parts: list[str] = []
    separator = ""
    for line in text.replace("\f", "\n\n").split("\n"):
        words = " ".join(line.split())
        if words:
            parts += (separator, words)
            separator = "\n"
        elif separator:
            separator = "\f"
    return "".join(parts)


def checked_length(length: object) -> int:
    """Return the length of a snippet; QueryError if it is invalid."""
    if isinstance(length, int) and not isinstance(length, bool) and 1 <= length <= LONGEST:
        return length
    raise QueryError(
        f"snippet_length = {length!r} is not a whole number from 1 to {LONGEST:,}",
        field="snippet_length",
    )


def _matching_tokens(line: str, terms_: Collection[str], analyzer: Analyzer) -> list[Token]:
    """Return the tokens of a line that are terms of the query.

    Tokens do not depend on anything after a space, so each distinct word is analysed once; those of
    a custom tokenizer may depend on the whole line.
    """
    if analyzer.tokenizes:
        return [token for token in analyzer.tokens(line) if token.term in terms_]
    words = _FOLDED.split(line)
    distinct = list(dict.fromkeys(words))
    starts = [0, *accumulate(len(word) + 1 for word in distinct)]
    of: dict[str, list[Token]] = {}
    for token in analyzer.tokens(" ".join(distinct)):
        if token.term in terms_:
            place = bisect_right(starts, token.start) - 1
            begin = starts[place]
            moved = token._replace(start=token.start - begin, end=token.end - begin)
            of.setdefault(distinct[place], []).append(moved)
    tokens, at = [], 0
    for word in words:
        if word in of:
            tokens += [
                token._replace(start=at + token.start, end=at + token.end) for token in of[word]
            ]
        at += len(word) + 1
    return tokens


def _best_window(tokens: list[Token], weights: Mapping[str, float], length: int) -> tuple[int, int]:
    """Return start and end of the run of tokens of highest weight that fits; (0, 0) for none."""
    best, window = 0.0, (0, 0)
    counts: dict[str, int] = {}
    score, left = 0.0, 0
    for token in tokens:
        score += _token_weight(token, weights, repeated=counts.get(token.term, 0) > 0)
        counts[token.term] = counts.get(token.term, 0) + 1
        while token.end - tokens[left].start > length and tokens[left] is not token:
            leaving = tokens[left]
            counts[leaving.term] -= 1
            score -= _token_weight(leaving, weights, repeated=counts[leaving.term] > 0)
            left += 1
        if score > best + TOLERANCE:
            best, window = score, (tokens[left].start, token.end)
    return window


def _token_weight(token: Token, weights: Mapping[str, float], *, repeated: bool) -> float:
    """Return the weight of a token; `repeated` if its term is in the window already."""
    return weights.get(token.term, 1.0) * (REPEATED if repeated else 1.0)
