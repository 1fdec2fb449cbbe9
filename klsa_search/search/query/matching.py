"""Which documents hold what is asked for: words and prefixes by postings, phrases by their places.

A phrase is looked for in the forward index of the documents that hold all its words. Words that
make no term, such as stop words, have their places there too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled, wait_until_compiled
from klsa_search.search.query.terms import NO_TERM, UNKNOWN
from klsa_search.search.snapshot import Snapshot
from klsa_search.storage.forward_index import GAPS, Codes, read_code

Allowed = npt.NDArray[np.bool_]

ANYWHERE: Final = 0
PLACES: Final = {"": ANYWHERE, "title": 1, "text": 2}
"""Parts of a document that a phrase can be looked for in."""


def holding(snapshot: Snapshot, terms: Iterable[int]) -> Allowed:
    """Documents that hold one of some terms: (N,). Cost: their postings."""
    found = np.zeros(len(snapshot), np.bool_)
    for term in terms:
        found[snapshot.bm25.postings.of_term(term)[0]] = True
    return found


def with_all(snapshot: Snapshot, terms: Iterable[int]) -> npt.NDArray[np.integer[Any]]:
    """Positions of the documents that hold each of some terms, ascending. Cost: their postings."""
    postings = snapshot.bm25.postings
    documents, *others = sorted((postings.of_term(term)[0] for term in terms), key=len)
    for other in others:
        documents = documents[np.isin(documents, other, assume_unique=True)]
    return documents


def with_phrase(snapshot: Snapshot, words: Sequence[int], place: str = "") -> Allowed:
    """Documents in which some words follow one another, in one of their parts: (N,).

    words  numbers of terms, or NO_TERM, which is like any other word without a term; no document
           has UNKNOWN, nor words of which none has a term
    place  "title" or "text"; "" for either, but not across
    Cost: the postings of the words, and 3 ns a word of the documents that hold them all.
    """
    found = np.zeros(len(snapshot), np.bool_)
    terms = {word for word in words if word >= 0}
    if UNKNOWN in words or not terms:
        return found
    documents = with_all(snapshot, terms)
    if len(words) == 1 and place == "":
        found[documents] = True
        return found
    forward = snapshot.forward
    pattern = pattern_of(snapshot, words)
    has = np.zeros(len(documents), np.bool_)
    given = (
        forward.codes, forward.starts, documents.astype(np.int64), pattern, borders_of(pattern),
        PLACES[place], has,
    )  # fmt: skip
    wait_until_compiled(find_phrase)
    find_phrase(*given)
    found[documents[has]] = True
    return found


def pattern_of(snapshot: Snapshot, words: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return words of a phrase as the forward index has them."""
    ranks = snapshot.forward.ranks
    codes = [int(ranks[word]) + GAPS if word >= 0 else NO_TERM for word in words]
    return np.array(codes, np.int64)


def borders_of(pattern: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of each beginning of a pattern, how much of its end is a beginning too [Knuth et al. 1977]"""
    borders = np.zeros(len(pattern), np.int64)
    words, length = pattern.tolist(), 0
    for end in range(1, len(words)):
        while length and words[end] != words[length]:
            length = int(borders[length - 1])
        length += words[end] == words[length]
        borders[end] = length
    return borders


@compiled
def find_phrase(
    codes: Codes,
    starts: npt.NDArray[np.int64],
    documents: npt.NDArray[np.int64],
    pattern: npt.NDArray[np.int64],
    borders: npt.NDArray[np.int64],
    place: int,
    has: npt.NDArray[np.bool_],
) -> None:
    """Find out which documents have a phrase in the part that is asked for.

    pattern  its words as the forward index has them, NO_TERM for those that make no term
    has      of each document, whether it does, is written here
    Whatever the codes are, nothing outside of them is read. Cost: 3 ns a word.
    """
    for i in range(len(documents)):
        at = max(starts[documents[i]], 0)
        end = min(starts[documents[i] + 1], len(codes))
        title, at = read_code(codes, at, end)
        word: Any = 0
        matched = 0
        while at < end and not has[i] and (place != 1 or word < title):
            code, at = read_code(codes, at, end)
            times = code + 1 if code < GAPS else 1
            if code < GAPS:
                code = NO_TERM
            for _ in range(times):
                if word == title:
                    matched = 0
                if place == 0 or (word < title) == (place == 1):
                    while matched > 0 and pattern[matched] != code:
                        matched = borders[matched - 1]
                    if pattern[matched] == code:
                        matched += 1
                    if matched == len(pattern):
                        has[i] = True
                        matched = borders[matched - 1]
                word += 1
