"""Passages of the documents of an index, compiled: what `snippet` cuts out of their texts.

Which words of a text are terms of the query is known from the forward index; where they stand is
found by counting words. No text is analysed, and none is read beyond `LOOKED_AT` characters.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis import LONGEST_WORD, Analyzer
from klsa_search.analysis.characters import Characters, all_characters, ascii_characters
from klsa_search.analysis.places import GROWTH, Offsets, Points, place_words
from klsa_search.arrays import Positions
from klsa_search.compiled import compiled
from klsa_search.compiled.beside import lacks
from klsa_search.features import Vocabulary
from klsa_search.search.folding import FOREIGN, encode, fold, holds_more
from klsa_search.search.snippet import LENGTH, LOOKED_AT, snippet
from klsa_search.search.windows import best_window, cut_out
from klsa_search.store import DocumentReader
from klsa_search.store.forward import GAPS, Forward, find_words, table_of
from klsa_search.store.records import text_at

_AT_ONCE: Final = 100
"""Passages that one call of the compiled code makes room for."""

_TAIL: Final = 2 * (LONGEST_WORD + 5)
"""Characters of two words and what is about them."""

_LINE_END: Final = 10


class Passages:
    """Cuts passages out of the documents of one index; safe to share between threads.

    Each thread has scratch memory of its own: 1.6 MB of addresses, of which a text of common
    length touches some 10 kB.
    """

    def __init__(
        self,
        documents: DocumentReader,
        forward: Forward,
        analyzer: Analyzer,
        vocabulary: Vocabulary,
    ) -> None:
        self._documents, self._forward = documents, forward
        self._analyzer, self._numbers = analyzer, vocabulary.numbers
        self._characters = ascii_characters()
        self._of_thread = threading.local()

    def of(
        self,
        positions: Positions,
        terms: Collection[str],
        *,
        weights: Mapping[str, float] | None = None,
        length: int = LENGTH,
    ) -> list[str]:
        """Cut a passage out of each of some documents, to the character what `snippet` does.

        terms  of the query, as the analyser makes them
        Cost: 1 µs and 4 ns a character read, each; that of `snippet` with a tokenizer, whose words
        cannot be counted here.
        """
        if self._analyzer.tokenizes:
            return self._by_snippet(positions, terms, weights, length)
        found: list[str] = []
        for first in range(0, len(positions), _AT_ONCE):
            some = np.asarray(positions[first : first + _AT_ONCE], np.int64)
            found += self._of(some, terms, weights, length)
        return found

    def _of(
        self,
        positions: npt.NDArray[np.int64],
        terms: Collection[str],
        weights: Mapping[str, float] | None,
        length: int,
    ) -> list[str]:
        known = [term for term in terms if term in self._numbers]
        codes = self._forward.ranks[[self._numbers[term] for term in known]] + np.int64(GAPS)
        worth = (
            np.array([weights.get(term, 1.0) for term in known], np.float64)
            if weights
            else np.ones(len(known))
        )
        passages = np.empty(len(positions) * (4 * length + 8), np.uint8)
        tails = np.empty(len(positions) * 4 * _TAIL, np.uint8)
        doubts = np.empty(len(positions), np.int32)
        while True:
            given = (
                self._documents.content, self._documents.starts,
                self._forward.codes, self._forward.starts,
                positions, codes, worth, length, self._characters, self._scratch(),
                passages, tails, doubts,
            )  # fmt: skip
            if lacks(_find, *given):
                return self._by_snippet(positions, terms, weights, length)
            end, tails_end, doubtful = _find(*given)
            if end != FOREIGN:
                break
            self._characters = all_characters()
        try:
            found, ends = _lines(passages, end), _lines(tails, tails_end)
        except UnicodeDecodeError as error:
            raise self._documents.damaged(error) from error
        for place, tail in zip(doubts[:doubtful].tolist(), ends, strict=True):
            if not tail or any(token.term in terms for token in self._analyzer.tokens(tail)):
                text = self._documents.text(int(positions[place]))
                found[place] = snippet(text, terms, self._analyzer, weights=weights, length=length)
        return found

    def _by_snippet(
        self,
        positions: Positions,
        terms: Collection[str],
        weights: Mapping[str, float] | None,
        length: int,
    ) -> list[str]:
        texts = map(self._documents.text, positions.tolist())
        return [
            snippet(text, terms, self._analyzer, weights=weights, length=length) for text in texts
        ]

    def _scratch(self) -> _Scratch:
        scratch: _Scratch | None = getattr(self._of_thread, "scratch", None)
        if scratch is None:
            scratch = self._of_thread.scratch = _Scratch.new()
        return scratch


def _lines(content: npt.NDArray[np.uint8], end: int) -> list[str]:
    """Lines of a text in UTF-8, each of which ends with a line end."""
    return str(content[:end].data, "utf-8").split("\n")[:-1]


class _Scratch(NamedTuple):
    """Memory of one thread for one text."""

    line: Points
    passage: Points
    normal: Points
    origin: Offsets
    places: Offsets
    which: Offsets
    starts: Offsets
    ends: Offsets

    @classmethod
    def new(cls) -> _Scratch:
        """Take it."""
        long = GROWTH * LOOKED_AT
        return cls(
            np.empty(LOOKED_AT + 1, np.uint32),
            np.empty(LOOKED_AT + 2, np.uint32),
            np.empty(long, np.uint32),
            np.empty(long, np.int32),
            *(np.empty(LOOKED_AT, np.int32) for _ in range(4)),
        )


@compiled
def _find(
    content: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.int64],
    forward: npt.NDArray[np.uint8],
    codes_begin: npt.NDArray[np.int64],
    positions: npt.NDArray[np.int64],
    codes: npt.NDArray[np.int64],
    weights: npt.NDArray[np.float64],
    length: int,
    characters: Characters,
    scratch: _Scratch,
    passages: npt.NDArray[np.uint8],
    tails: npt.NDArray[np.uint8],
    doubts: Offsets,
) -> tuple[int, int, int]:
    """Write a passage of each text, a line each, and how far; FOREIGN where characters are missing.

    codes, weights  of the terms of the query
    doubts, tails   which of the documents are in doubt, and a line of each: the last two words of
                    a text that was cut off, of which it is not known whether they are terms of the
                    query, and the passage right if they are not; nothing where there is no passage
    Returns how far passages and tails go, and the number of doubts.
    """
    table, numbers = table_of(codes)
    counts = np.empty(len(codes), np.int32)
    line, passage, starts, ends = scratch.line, scratch.passage, scratch.starts, scratch.ends
    written, tails_written, doubtful = 0, 0, 0
    for i in range(len(positions)):
        begin, end = text_at(content, begins, positions[i])
        size, rest = fold(content, begin, end, LOOKED_AT, characters.classes, line)
        longer = rest < end
        more = holds_more(content, rest, end, characters.classes) if longer else 0
        if size == FOREIGN or more == FOREIGN:
            return FOREIGN, 0, 0
        if size <= length and not more:
            written = encode(line, size, passages, written)
        else:
            found = find_words(
                forward, codes_begin[positions[i]], codes_begin[positions[i] + 1],
                table, numbers, scratch.places, scratch.which,
            )  # fmt: skip
            found, before = place_words(
                line, size, characters, scratch.normal, scratch.origin, scratch.places[:found],
                starts, ends, longer,
            )  # fmt: skip
            odd = found < 0 or (longer and size - before >= _TAIL)
            if odd or longer:
                doubts[doubtful] = i
                doubtful += 1
                if not odd:
                    tails_written = encode(line[before:], size - before, tails, tails_written)
                tails[tails_written] = _LINE_END
                tails_written += 1
            if not odd:
                while longer and found > 0 and starts[found - 1] >= before:
                    found -= 1
                first, after = best_window(
                    found, scratch.which, starts, ends, weights, counts, length
                )
                cut = cut_out(line, size, first, after, length, more > 0, passage)
                written = encode(passage, cut, passages, written)
        passages[written] = _LINE_END
        written += 1
    return written, tails_written, doubtful
