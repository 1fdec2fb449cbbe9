"""Titles as one text each some thousand, so that what stands in them is found by searching bytes.

A title is a line of its words, folded and with one blank before each, so that a blank and what was
typed is found where a word of the title begins.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.segmentation import UNSPACED_PATTERN
from klsa_search.core.forks import lock_free_in_children
from klsa_search.storage.documents import DocumentReader

LOOKED_AT: Final = 128
"""Titles among which the best are chosen, the first in the order of documents."""

LONGEST: Final = 1_000
"""Bytes of a title that is suggested, at most."""

_UNSPACED: Final = re.compile(UNSPACED_PATTERN)  # of which any may begin a word
_BETWEEN: Final = re.compile(r"[^\w\n]+|_+")


class TitleMatch(NamedTuple):
    """Titles that are alike but for case and signs.

    position  of the first document that has it
    key       what is alike in them
    """

    position: int
    key: int


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Titles of documents that follow one another.

    text   their lines, each after a line end, and one behind
    lines  (n + 1,) where each line end is
    keys   (n,) hashes of the lines
    """

    first: int
    text: bytes
    lines: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]

    @property
    def after(self) -> int:
        return self.first + len(self.keys)

    @classmethod
    def of(cls, first: int, text: bytes) -> _Chunk:
        lines = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
        each = text.split(b"\n")[1:-1]
        return cls(first, text, lines, np.fromiter(map(hash, each), np.int64, len(each)))

    def at(self, needle: bytes) -> Iterator[int]:
        """Positions of the documents that have this in their line, ascending."""
        lines, at = self.lines.data, self.text.find(needle)  # twice as fast as the array
        while at >= 0:
            line = bisect_right(lines, at)
            yield self.first + line - 1
            at = self.text.find(needle, lines[line])


class Titles:
    """The titles of an index and of what was written to it since; safe to share between threads.

    They are read when they are first asked for: 3 µs a document, and its title and 16 bytes of
    memory. What came later is read on its own.
    """

    def __init__(self, analyzer: Analyzer, chunks: Sequence[_Chunk] = ()) -> None:
        self._analyzer = analyzer
        self._chunks = list(chunks)
        self._lock = lock_free_in_children()

    def going_on(self) -> Titles:
        """Return titles that go on with these, and share what was read."""
        return Titles(self._analyzer, self._read())

    def find(
        self, typed: str, documents: DocumentReader, living: npt.NDArray[np.bool_]
    ) -> list[TitleMatch]:
        """Titles with this in them, a word's beginning at its end, the best first.

        living  (N,) of which documents
        Those that begin so, then the shortest. Of each that several documents have, the first.
        Cost: 1 ns a byte of all titles, at most.
        """
        needle = self._line(" " + typed.replace("\n", " ")).encode(errors="replace")
        if not needle.strip():
            return []
        chunks = self._upto(len(living), documents)
        found: dict[int, tuple[tuple[bool, int, int], TitleMatch]] = {}
        for begins in (True, False):
            looked_at = 0
            for chunk in chunks:
                for position in chunk.at(b"\n" + needle if begins else needle):
                    if position >= len(living) or looked_at == LOOKED_AT:
                        break
                    line = position - chunk.first
                    length = int(chunk.lines[line + 1] - chunk.lines[line])
                    if not living[position] or length > LONGEST:
                        continue
                    looked_at += 1
                    key = int(chunk.keys[line])
                    order = (not begins, length, position)
                    found.setdefault(key, (order, TitleMatch(position, key)))
        return [each for _, each in sorted(found.values())]

    def count(self, key: int, living: npt.NDArray[np.bool_]) -> int:
        """How many documents have a title. Cost: 1 ns a document."""
        count = 0
        for chunk in self._read():
            own = living[chunk.first : chunk.after]
            count += int(np.count_nonzero((chunk.keys[: len(own)] == key) & own))
        return count

    def _read(self) -> list[_Chunk]:
        with self._lock:
            return self._chunks[:]

    def _upto(self, size: int, documents: DocumentReader) -> list[_Chunk]:
        """Read the titles of all positions below a size that were not read before."""
        chunks = self._read()
        after = chunks[-1].after if chunks else 0
        if after >= size:
            return chunks
        titles = [title.replace("\n", " ") for title in documents.titles(range(after, size))]
        text = "".join(f"\n {title}" for title in titles) + "\n"
        new = _Chunk.of(after, self._line(text).encode())
        with self._lock:
            if self._chunks[-1:] == chunks[-1:]:  # no other thread did it meanwhile
                self._chunks.append(new)
                self._join_small()
        return [*chunks, new]

    def _join_small(self) -> None:
        """Join the last ones while they are of like size, so that there are never many."""
        while len(self._chunks) > 1 and len(self._chunks[-1].keys) >= len(self._chunks[-2].keys):
            last = self._chunks.pop()
            before = self._chunks.pop()
            self._chunks.append(_Chunk.of(before.first, before.text[:-1] + last.text))

    def _line(self, text: str) -> str:
        folded = self._analyzer.folded(text)
        if not folded.isascii():
            folded = _UNSPACED.sub(r" \g<0>", folded)
        return _BETWEEN.sub(" ", folded)
