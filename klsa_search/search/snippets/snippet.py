"""Snippets: the passage of a document that contains most of a query."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.analysis.analyzer import Analyzer, Token
from klsa_search.analysis.segmentation import all_characters, ascii_characters
from klsa_search.core.search_options import SNIPPET
from klsa_search.search.snippets.markup import without_markup

_FOLDED: Final = re.compile(r"[ \n\f]")


def snippet(
    text: str,
    terms: Collection[str],
    analyzer: Analyzer,
    *,
    weights: Mapping[str, float] | None = None,
    length: int = SNIPPET,
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
    terms_ = sorted(set(terms))
    numbers = {term: number for number, term in enumerate(terms_)}
    tokens = matching_tokens(line, numbers, analyzer) if terms_ else []
    passage = _native.best_passage(
        _points(line),
        np.array([numbers[token.term] for token in tokens], np.int32),
        np.array([token.start for token in tokens], np.int32),
        np.array([token.end for token in tokens], np.int32),
        np.array([(weights or {}).get(term, 1.0) for term in terms_], np.float64),
        length,
    )
    return without_markup(_text(passage))


def folded(text: str) -> str:
    """Return a text with each run of blank space as one character, without those at its ends.

    It is a line feed if it contains one, a form feed if it contains several or a form feed, and
    otherwise a blank.
    """
    characters = ascii_characters() if text.isascii() else all_characters()
    return _text(_native.fold_text(_points(text), characters))


def _points(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _text(points: npt.NDArray[np.uint32]) -> str:
    return points.tobytes().decode("utf-32-le", "surrogatepass")


def matching_tokens(line: str, terms_: Collection[str], analyzer: Analyzer) -> list[Token]:
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
            position = bisect_right(starts, token.start) - 1
            begin = starts[position]
            moved = token._replace(start=token.start - begin, end=token.end - begin)
            of.setdefault(distinct[position], []).append(moved)
    tokens, at = [], 0
    for word in words:
        if word in of:
            tokens += [
                token._replace(start=at + token.start, end=at + token.end) for token in of[word]
            ]
        at += len(word) + 1
    return tokens
