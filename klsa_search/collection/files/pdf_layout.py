"""Layout of PDF pages: which lines are headings, and where paragraphs begin."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Final, NamedTuple

from klsa_search.collection.files.content import heading_line, one_line

_LARGE: Final = 1.15
"""Font height of a heading, at least, relative to that of most of the text."""

_SAME: Final = 0.94
"""Font heights with at least this ratio are those of one level."""

_FAR: Final = 1.3
"""Distance of paragraphs, at least, relative to that of lines."""

_LONGEST: Final = 120
_RUNNING: Final = 3
"""A line on that many pages is a running title."""

_LEADER: Final = re.compile(r"(?:\. ?){4}")
_LETTERS: Final = re.compile(r"[^\W\d_]{2}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


class Line(NamedTuple):
    """A line of a page, the height of its font, and the offset of its lower edge; 0 if unknown."""

    text: str
    height: float = 0.0
    bottom: float = 0.0


class Layout(NamedTuple):
    """Layout of a document.

    levels   of headings by height of font
    running  lines that are repeated on pages
    pitch    usual distance of lines
    """

    levels: dict[float, int]
    running: set[str]
    pitch: float

    def level(self, line: Line) -> int:
        """Return the level of a heading; 0 for another line."""
        level = self.levels.get(_rounded(line.height), 0)
        return level if level and _is_short(line) and line.text not in self.running else 0

    def separates(self, upper: Line, lower: Line) -> bool:
        """Return whether a line begins a paragraph below another."""
        return upper.bottom - lower.bottom > _FAR * self.pitch > 0


def layout_of(pages: list[list[Line]]) -> Layout:
    """Return the layout of pages. The font and the distance of most of the text are usual."""
    heights: Counter[float] = Counter()
    pitches: Counter[float] = Counter()
    repeated: Counter[str] = Counter()
    short: set[float] = set()
    for lines in pages:
        for line in lines:
            heights[_rounded(line.height)] += len(line.text)
            if _is_short(line):
                short.add(_rounded(line.height))
        repeated.update({line.text for line in lines})
        for upper, lower in pairwise(lines):
            if upper.bottom > lower.bottom:
                pitches[_rounded(upper.bottom - lower.bottom)] += 1
    usual = max(heights, key=lambda height: heights[height], default=0.0)
    levels: dict[float, int] = {}
    level, largest = 0, float("inf")
    for height in sorted(short, reverse=True):
        if not height >= _LARGE * usual > 0:
            break
        if height < _SAME * largest:
            level, largest = min(level + 1, 6), height
        levels[height] = level
    running = {text for text, count in repeated.items() if count >= _RUNNING}
    pitch = max(pitches, key=lambda pitch: pitches[pitch], default=0.0)
    return Layout(levels, running, pitch)


def page_text(lines: list[Line], layout: Layout) -> str:
    """Return the lines of a page, with headings as lines of Markdown and blank lines between
    paragraphs.
    """
    pieces: list[str] = []
    above: Line | None = None
    level_above = 0
    for line in lines:
        level = layout.level(line)
        if level and level == level_above:
            pieces.append(f" {one_line(line.text)}")
        elif level:
            pieces.append(f"\n\n{heading_line(one_line(line.text), level)}")
        else:
            begins = level_above or (above and layout.separates(above, line))
            pieces.append(("\n\n" if begins else "\n") + line.text)
        above, level_above = line, level
    return "".join(pieces)


def _is_short(line: Line) -> bool:
    """Return whether a line may be a heading: with letters, neither long nor with leaders."""
    return (
        len(line.text) <= _LONGEST
        and bool(_LETTERS.search(line.text))
        and not _LEADER.search(line.text)
    )


def _rounded(size: float) -> float:
    """Return a size in steps of half a point."""
    return round(2 * size) / 2
