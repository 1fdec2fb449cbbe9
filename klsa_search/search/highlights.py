"""Highlights: the words of a query in a title or snippet."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from html import escape

from klsa_search.analysis import Analyzer


@dataclass(frozen=True, kw_only=True)
class Highlight:
    """A text with the words of the query in it.

    marks  (start, end) of each word, in code points of `text`
    html   the text, escaped for HTML, with each word in <mark>

    >>> found: klsa.Highlight = index.search("wet roads", highlight=True)[0].highlight["snippet"]
    >>> found.html
    'Bald tyres slip on <mark>wet</mark> <mark>roads</mark>.'
    """

    text: str
    marks: tuple[tuple[int, int], ...]
    html: str


def highlighted(text: str, terms: Collection[str], analyzer: Analyzer) -> Highlight:
    """Mark the words of a text that are terms of the query, whatever their form.

    terms  as `analyzer` makes them
    Cost: the analysis of the text.
    """
    marks: list[tuple[int, int]] = []
    for one in analyzer.tokens(text):
        if one.term in terms:
            start, end = one.start, one.end
            if marks and start < marks[-1][1]:  # words of a tokenizer may overlap
                start, end = marks[-1][0], max(end, marks.pop()[1])
            marks.append((start, end))
    html, before = [], 0
    for start, end in marks:
        html += [escape(text[before:start]), "<mark>", escape(text[start:end]), "</mark>"]
        before = end
    html.append(escape(text[before:]))
    return Highlight(text=text, marks=tuple(marks), html="".join(html))
