"""Which terms follow some words in documents, and in how many of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.compiling import compiled, wait_for
from klsa_search.search.language.matching import borders_of, pattern_of, with_all
from klsa_search.search.query import NO_TERM
from klsa_search.search.snapshot import Snapshot
from klsa_search.store.forward import GAPS, Codes, read_code

SAMPLE: Final = 4_000
"""Documents that are read for one answer: of more, so many evenly spaced."""


class Following(NamedTuple):
    """What follows some words.

    terms      numbers of the terms that follow, those in most documents first
    documents  in how many they do
    exact      whether all documents were read
    """

    terms: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]
    exact: bool


def following(snapshot: Snapshot, words: Sequence[int]) -> Following:
    """Count what follows some words, of which the first and last have terms, in documents.

    Cost: the postings of the words, and 3 ns a word of the documents that hold them all.
    """
    documents = with_all(snapshot, {word for word in words if word >= 0}).astype(np.int64)
    documents = documents[snapshot.counting()[documents]]
    exact = len(documents) <= SAMPLE
    if not exact:
        documents = documents[np.linspace(0, len(documents) - 1, SAMPLE).astype(np.int64)]
    forward, pattern = snapshot.forward, pattern_of(snapshot, words)
    counts = np.zeros(len(forward.ranks), np.int32)
    given = (
        forward.codes, forward.starts, documents, pattern, borders_of(pattern), counts,
        np.zeros_like(counts),
    )  # fmt: skip
    wait_for(count_following)
    count_following(*given)
    ranks = np.flatnonzero(counts)
    terms, held = forward.terms[ranks].astype(np.int64), counts[ranks].astype(np.int64)
    best = np.lexsort((terms, -held))
    return Following(terms[best], held[best], exact)


@compiled
def count_following(
    codes: Codes,
    starts: npt.NDArray[np.int64],
    documents: npt.NDArray[np.int64],
    pattern: npt.NDArray[np.int64],
    borders: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int32],
    last: npt.NDArray[np.int32],
) -> None:
    """Count the documents in which each term follows a phrase, in the title or in the text.

    pattern  its words as the forward index has them: a term first and last
    counts   by the rank of the term: the documents are added here
    last     which document counted for it last, from 1; 0 for none
    Whatever the codes are, nothing outside of them is read. Cost: 3 ns a word.
    """
    for i in range(len(documents)):
        at = max(starts[documents[i]], 0)
        end = min(starts[documents[i] + 1], len(codes))
        title, at = read_code(codes, at, end)
        word: Any = 0
        matched = 0
        while at < end:
            code, at = read_code(codes, at, end)
            times = code + 1 if code < GAPS else 1
            rank = code - GAPS
            if code < GAPS:
                code = NO_TERM
            for _ in range(times):
                if word == title:
                    matched = 0
                if matched == len(pattern):
                    if 0 <= rank < len(counts) and last[rank] != i + 1:
                        last[rank] = i + 1
                        counts[rank] += 1
                    matched = borders[matched - 1]
                while matched > 0 and pattern[matched] != code:
                    matched = borders[matched - 1]
                if pattern[matched] == code:
                    matched += 1
                word += 1
