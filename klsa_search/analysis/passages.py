r"""Passages: where a long text is cut, at its structure first.

The structure is that of Markdown: headings (`## Title`), paragraphs between blank lines, list
items, table rows and code between fences. A form feed ends a page. The readers of
`files/` write texts in this form.
"""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.build_settings import PASSAGE_WORDS

SEPARATOR: Final = " › "  # between the headings of a path


class Passage(NamedTuple):
    """A span of the characters of a text.

    heading  path of the headings that hold at its beginning, "" if there are none
    page     number of the page of its beginning, from 1; None if the text has no pages
    """

    begin: int
    end: int
    heading: str
    page: int | None


def cut(text: str, words: int = PASSAGE_WORDS) -> list[Passage]:
    r"""Return the passages of a text in order, which contain all of it but blank space.

    words  of a passage, about; at most half as many more, and a text without more stays whole

    A run of letters and digits is a word; so are two characters of a script without spaces or of
    Hangul, and 32 characters of a longer run. Sections and pages are not joined unless one of them
    is smaller than half a passage. What is too long is cut into parts of similar size at the
    strongest boundary nearby: heading, page, paragraph, list item or table row, line, sentence,
    word. Cost: 60 ns a character, 0.2 µs if the length shows that the text is short.

    >>> text = "# Printer\n\nSwitch it on.\n\n## Paper jam\n\nOpen the cover.\n\n## Ink\n\nEmpty."
    >>> for passage in cut(text, 6):
    ...     print(passage.heading, "|", text[passage.begin : passage.end].replace("\n", " "))
    Printer | # Printer  Switch it on.
    Printer › Paper jam | ## Paper jam  Open the cover.
    Printer › Ink | ## Ink  Empty.
    >>> cut("One two three.\f\nFour five six seven.\f", 4)
    [Passage(begin=0, end=14, heading='', page=1), Passage(begin=16, end=36, heading='', page=2)]
    """
    largest = words + words // 2
    if _is_short(text, largest):
        return [_whole_text(text)]
    units = _unit_starts(text)
    if len(units) <= largest:
        return [_whole_text(text)]
    outline = outline_of(text)
    spans: list[tuple[int, int]] = []
    for begin, end in _sections(outline.boundaries, units, words, len(text)):
        spans += _split(text, begin, end, units, outline, words)
    return list(_located(text, spans, outline)) or [_whole_text(text)._replace(end=0)]  # blank


def page_of(text: str, begin: int) -> int | None:
    r"""Return the number of the page of an offset, from 1; None if the text has no pages.

    >>> page_of("One.\fTwo.", 5), page_of("One.", 2)
    (2, None)
    """
    return 1 + text.count("\f", 0, begin) if "\f" in text else None


def heading_of(text: str, begin: int) -> str:
    r"""Return the path of the headings that hold at an offset, "" if there are none.

    >>> heading_of("# Printer\n\n## Ink\n\nReplace it.", 20)
    'Printer › Ink'
    """
    path: dict[int, str] = {}
    for heading in outline_of(text).headings:
        if heading.begin > begin:
            break
        path = extended_path(path, heading)
    return SEPARATOR.join(path.values())


# Measuring

_OTHER, _WORD, _UNSPACED = 0, 1, 2  # classes of characters
_UNSPACED_RANGES: Final = (
    "\u0e00\u0eff\u1000\u109f\u1780\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u3005\u3007\u3040\u30ff\u31f0\u31ff\uac00\ud7a3"  # kana, Hangul
    "\u3400\u4dbf\u4e00\u9fff\uf900\ufaff\U00020000\U000323af"  # Han
)
_LONGEST: Final = np.array([32, 32, 2])
"""Characters of each class that count as one word; fewer too, except of `_OTHER`."""
_BLANKED: Final = bytes(
    point if point < 0x80 and (chr(point).isalnum() or chr(point) == "_") else ord(" ")
    for point in range(256)
)
"""Translates all bytes but those of ASCII words to blanks."""


def _is_short(text: str, largest: int) -> bool:
    """Return whether a text has at most that many words by a quick count, which may exceed."""
    if not text.isascii():
        return len(text) <= largest
    if len(text) < 2 * largest:
        return True
    rest = largest - len(text) // 32  # what long runs may count in addition
    return rest > 0 and len(text.encode("ascii").translate(_BLANKED).split()) <= rest


def _unit_starts(text: str) -> array[int]:
    """Return the starts of the words of a text and of all else that counts as one."""
    if text.isascii():
        classes = _classes(0x80)[np.frombuffer(text.encode("ascii"), np.uint8)]
    else:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        classes = _classes(0x323B1)[np.minimum(points, 0x323B0)]
    starts = np.flatnonzero(np.diff(classes, prepend=255))
    kinds = classes[starts]
    longest = _LONGEST[kinds]
    counts = (np.diff(starts, append=len(text)) + (longest - 1) * (kinds != _OTHER)) // longest
    before = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - np.repeat(before, counts)
    return array("q", (np.repeat(starts, counts) + within * np.repeat(longest, counts)).tobytes())


@cache
def _classes(points: int) -> npt.NDArray[np.uint8]:
    """Return the classes of the first code points. Cost: 15 ms for all, once."""
    classes = np.fromiter(map(str.isalnum, map(chr, range(points))), np.uint8, points)
    classes[ord("_")] = _WORD
    for first, last in zip(_UNSPACED_RANGES[::2], _UNSPACED_RANGES[1::2], strict=True):
        classes[ord(first) : ord(last) + 1] = _UNSPACED
    return classes


# Cutting


def _sections(
    boundaries: dict[int, int], units: array[int], words: int, length: int
) -> Iterator[tuple[int, int]]:
    """Yield the spans of sections and pages; small ones are joined, with each other or a neighbour.

    A small one goes to the side where the boundary is weaker.
    """
    small, tiny = words // 2, words // 10
    ends = [*boundaries.items(), (length, 0)]
    first, size, before = 0, 0, 0  # begin, words and strength of what is joined
    begin, strength, counted = 0, 0, 0
    for end, following in ends:
        until = bisect_left(units, end)
        more = until - counted
        joined = (
            begin == 0
            or size <= tiny
            or (more <= tiny and strength > following)
            or (
                size + more <= words
                and (
                    (more < small and strength >= following)
                    or (size < small and strength >= before)
                )
            )
        )
        if not joined:
            yield first, begin
            first, size, before = begin, 0, strength
        size += more
        begin, strength, counted = end, following, until
    yield first, length


_BOUNDARY: Final = re.compile(
    r"[\n\f.!?…।؟۔。！？｡](?:"  # `re` is fast where a pattern begins with a set
    r"(?<=\n)(?:"
    r"([^\S\n]*\n\s*)"  # 1: before a paragraph
    r"|(?=[ \t]*(?:[-*+•|]|\d{1,3}[.)])[ \t])()"  # 2: before a list item or table row
    r"|(?=[ \t]*(?:```|~~~))()"  # 3: before code
    r"|((?<![\w,]\n)|(?![ \t]*[a-z]))"  # 4: before a line that is not wrapped
    r"|())"  # 5: before a wrapped line
    r"|(?<=\f)\s*"
    r"|(?<=[.!?…।؟۔])(?<![\s.]\w\.)[\"'”’»)\]]*[^\S\n]+(?=[^\sa-z])"  # before a sentence
    r"|(?<=[。！？｡])[。！？｡」』）”’]*)"
)
"""Boundaries within a section, from strong to weak."""
_SECTION, _PARAGRAPH, _LINE_END, _SENTENCE, _WRAPPED = 0, 1, 4, 4.5, 5
_SHORTEST: Final = 0.7
"""Length of a part, at least, relative to the mean; it also limits the longest."""
_LOOKAHEAD: Final = 8
_PAUSES: Final = "、，；："


def _split(
    text: str, begin: int, end: int, units: array[int], outline: Outline, words: int
) -> Iterator[tuple[int, int]]:
    """Yield the spans of parts of a section; of similar size if it is too long."""
    largest = max(1, words + words // 2 - 1)  # a run may count one more if its beginning is cut off
    first, last = bisect_left(units, begin), bisect_left(units, end)
    while last - first > largest:
        size = (last - first) / max(2, round((last - first) / words))
        earliest = first + math.ceil(size * _SHORTEST)
        latest = max(earliest, first + min(largest, int(size * (2 - _SHORTEST))))
        at = _boundary(text, units, earliest, latest, first + round(size), outline)
        yield begin, at
        begin, first = at, bisect_left(units, at)
    yield begin, end


def _boundary(
    text: str, units: array[int], earliest: int, latest: int, wanted: int, outline: Outline
) -> int:
    """Return the strongest boundary between two words, the nearest to the one wanted of equals."""
    best, least, strongest = 0, 0, _WRAPPED + 1.0
    stop, middle = units[latest], units[wanted]
    for match in _BOUNDARY.finditer(text, units[earliest - 1], stop + _LOOKAHEAD):
        at, kind = match.end(), float(match.lastindex or _SENTENCE)
        if at > stop:
            break
        if at in outline.boundaries:
            kind = _SECTION
        elif at in outline.below:
            continue
        elif bisect_left(outline.code, at) % 2:
            if kind == _SENTENCE or text.startswith(("```", "~~~"), at):
                continue
            kind = _LINE_END if kind == _PARAGRAPH else _WRAPPED
        distance = abs(at - middle)
        if kind < strongest or (kind == strongest and distance < least):
            best, least, strongest = at, distance, kind
    return best or _between_words(text, units, earliest, latest, wanted)


def _between_words(text: str, units: array[int], earliest: int, latest: int, wanted: int) -> int:
    """Return an offset between words, if possible after a blank or pause."""
    for number in sorted(range(earliest, latest + 1), key=lambda number: abs(number - wanted)):
        before = text[units[number] - 1]
        if before.isspace() or before in _PAUSES:
            return units[number]
    at = units[wanted]
    while at > units[wanted - 1] + 1 and (
        unicodedata.category(text[at])[0] == "M" or "\u200d" in text[at - 1 : at + 1]
    ):
        at -= 1
    return at


def _located(text: str, spans: list[tuple[int, int]], outline: Outline) -> Iterator[Passage]:
    """Yield the passages of spans without blank space at their ends."""
    headings, number = outline.headings, 0
    path: dict[int, str] = {}
    page, counted = (1 if "\f" in text else None), 0
    for begin, end in spans:
        begin = after_blanks(text, begin)
        end = begin + len(text[begin:end].rstrip())
        if begin >= end:
            continue
        while number < len(headings) and headings[number].begin <= begin:
            path = extended_path(path, headings[number])
            number += 1
        if page is not None:
            page += text.count("\f", counted, begin)
            counted = begin
        yield Passage(begin, end, SEPARATOR.join(path.values()), page)


def _whole_text(text: str) -> Passage:
    """Return a text as one passage."""
    heading = heading_of(text, 0) if text[:4].lstrip(" ").startswith("#") else ""
    return Passage(0, len(text), heading, page_of(text, 0))


_LINE: Final = (
    r"(?: {0,3}(#{1,6})[ \t]+(\S[^\n\f]{0,200}?)(?:[ \t]+#+)?[ \t\r]*(?=[\n\f]|\Z)"  # heading
    r"|[ \t]*(`{3,}|~{3,})([^\n\f]*))"  # fence of code
)
_FIRST_LINE: Final = re.compile(_LINE)
_NEXT_LINE: Final = re.compile(rf"[\n\f]{_LINE}")
_BLANKS: Final = re.compile(r"\s*")
_BLANKS_BEFORE: Final = 32
_COMMENT: Final = re.compile(r"\n {0,3}#[ \t]")
PAGE: Final = 7
"""Strength of the boundary between pages; those of headings are 1 to 6, and 1 is the strongest."""


class Heading(NamedTuple):
    """A heading: its level, title, and the offsets of its line and of the text below."""

    level: int
    title: str
    begin: int
    below: int


class Outline(NamedTuple):
    """Structure of a text.

    boundaries  strengths of the beginnings of sections and pages, by offset in order
    below       offsets of the text below headings
    code        offsets where code begins and ends, alternately
    """

    headings: list[Heading]
    boundaries: dict[int, int]
    below: set[int]
    code: list[int]


def outline_of(text: str) -> Outline:
    """Return the structure of a text."""
    headings: list[Heading] = []
    boundaries: dict[int, int] = {}
    code: list[int] = []
    fence = ""
    at = text.find("\f")
    while at >= 0:
        at = after_blanks(text, at)
        boundaries[at] = PAGE
        at = text.find("\f", at)
    line_end = -1
    for line in _marked_lines(text):
        marks, title, opened, info = line.groups()
        begin = line.start() + (line[0][0] in "\n\f")
        if marks and not fence:
            if _is_heading(text, len(marks), begin, line.end(), line_end):
                headings.append(Heading(len(marks), title, begin, after_blanks(text, line.end())))
                boundaries[begin] = len(marks)
                line_end = line.end()
        elif opened and not fence:
            if "`" not in info:
                fence = opened
                code.append(begin)
        elif opened and opened.startswith(fence) and not info.strip():
            fence = ""
            code.append(line.end())
    if fence:
        code.append(len(text))
    boundaries.pop(0, None)
    boundaries.pop(len(text), None)
    below = {heading.below for heading in headings}
    return Outline(headings, dict(sorted(boundaries.items())), below, code)


def _marked_lines(text: str) -> Iterator[re.Match[str]]:
    first = _FIRST_LINE.match(text)
    if first:
        yield first
    yield from _NEXT_LINE.finditer(text, first.end() if first else 0)


def _is_heading(text: str, level: int, begin: int, end: int, previous_end: int) -> bool:
    """Return whether a line with marks is a heading, rather than a comment in code without fences.

    A comment has one mark, and follows or precedes a line of code or of the same comment.
    """
    if level > 1:
        return True
    if _COMMENT.match(text, end):
        return False
    before = text[max(0, begin - _BLANKS_BEFORE) : max(0, begin - 1)].rstrip(" \t\r")
    return (
        begin == previous_end + 1
        or text[begin - 1 : begin] == "\f"
        or not before
        or before[-1] in "\n\f"
    )


def after_blanks(text: str, at: int) -> int:
    """Return the offset of the next character that is not blank."""
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def extended_path(path: dict[int, str], heading: Heading) -> dict[int, str]:
    """Return the titles by level below a heading, after those above it."""
    return {
        **{level: title for level, title in path.items() if level < heading.level},
        heading.level: heading.title,
    }
