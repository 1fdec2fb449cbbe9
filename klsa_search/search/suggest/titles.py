"""Titles and IDs of an index, in large texts that are searched as bytes.

Each is a line of its folded words with a blank before each, so that a search for a blank and
the typed text finds words that begin with it.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.analysis.analyzer import Analyzer
from klsa_search.analysis.segmentation import WITHOUT_SPACES_PATTERN
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.storage.documents import DocumentReader

MAX_CANDIDATES: Final = 128
"""Titles of which the best are returned: the first by doc id."""

MAX_TITLE_BYTES: Final = 1_000
"""Bytes of a suggested title, at most."""

_WITHOUT_SPACES: Final = re.compile(WITHOUT_SPACES_PATTERN)
"""Scripts in which any character may begin a word."""
Part = Literal["all", "end", "inside"]
"""Part of a line."""

_BETWEEN: Final = re.compile(r"[^\w\n]+|_+")


class TitleMatch(NamedTuple):
    """A title or ID that contains the typed text; the smallest is the best.

    is_inside  whether it does not begin with the text
    length     in bytes, of `folded`
    ordinal    of its document
    folded     in which titles are equal that differ in case and punctuation only
    """

    is_inside: bool
    length: int
    ordinal: int
    folded: bytes
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class _Chunk:
    """Titles of consecutive documents.

    text   lines, each after a line end, and one line end at the end
    lines  (n + 1,) offsets of the line ends
    """

    first: int
    text: bytes
    lines: npt.NDArray[np.int64]

    @property
    def after(self) -> int:
        return self.first + len(self.lines) - 1

    @classmethod
    def of(cls, first: int, text: bytes) -> _Chunk:
        return cls(first, text, np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")))

    def line(self, doc_id: int) -> bytes:
        begin, end = self.lines[doc_id - self.first : doc_id - self.first + 2].tolist()
        return self.text[begin + 1 : end]

    def at(self, needle: bytes) -> Iterator[int]:
        """Yield the doc ids of lines that contain this, ascending."""
        lines, at = self.lines.data, self.text.find(needle)  # twice as fast as the array
        while at >= 0:
            line = bisect_right(lines, at)
            yield self.first + line - 1
            at = self.text.find(needle, lines[line])

    def matching(self, pattern: re.Pattern[bytes]) -> Iterator[int]:
        """Yield the doc ids of lines with a match of this, ascending."""
        for match in pattern.finditer(self.text):
            yield self.first + bisect_right(self.lines.data, match.end() - 1) - 1


class Lines:
    """Titles, or IDs, of an index and of its delta; thread-safe.

    read  returns them for doc ids, "" for those without a document
    They are read at the first use, in 3 µs a document. Memory: their texts, and 8 bytes a document.
    """

    def __init__(
        self,
        analyzer: Analyzer,
        read: Callable[[DocumentReader, Iterable[int]], list[str]],
        chunks: Sequence[_Chunk] = (),
    ) -> None:
        self._analyzer, self._texts = analyzer, read
        self._chunks = list(chunks)
        self._lock = threading.Lock()

    def extended(self) -> Lines:
        """Return a copy for more documents that shares what was read."""
        return Lines(self._analyzer, self._texts, self._read())

    def find(
        self,
        typed: str,
        k: int,
        documents: DocumentReader,
        snapshot: Snapshot,
        live: npt.NDArray[np.bool_],
    ) -> tuple[TitleMatch, ...]:
        """Return the k best titles that contain the typed text at a beginning of words.

        live  (N,) which documents are live
        Titles that begin with it come first, then the shortest. Of equal titles the first document
        counts. Cost: at most 1 ns a byte of all titles.
        """
        needle = self._folded(typed).encode(errors="replace")
        if not needle.strip():
            return ()
        chunks = self._read_until(len(live), documents)
        matches: dict[bytes, tuple[bool, int]] = {}  # whether inside, and the doc id
        for is_inside in (False, True):
            candidates = 0
            for chunk in chunks:
                for doc_id in chunk.at(needle if is_inside else b"\n" + needle):
                    if doc_id >= len(live) or candidates == MAX_CANDIDATES:
                        break
                    line = chunk.line(doc_id)
                    if live[doc_id] and len(line) < MAX_TITLE_BYTES:
                        candidates += 1
                        matches.setdefault(line, (is_inside, doc_id))
        best = sorted(
            (is_inside, len(line), doc_id, line) for line, (is_inside, doc_id) in matches.items()
        )[:k]
        doc_ids = [doc_id for _, _, doc_id, _ in best]
        ordinals = snapshot.ordinals_of(np.array(doc_ids, np.int64)).tolist()
        texts = self._texts(documents, doc_ids)
        return tuple(
            TitleMatch(is_inside, length, ordinal, line, text)
            for (is_inside, length, _, line), ordinal, text in zip(
                best, ordinals, texts, strict=True
            )
        )

    def with_runs(
        self,
        runs: Sequence[str],
        documents: DocumentReader,
        live: npt.NDArray[np.bool_],
        part: Part,
    ) -> list[int]:
        """Return the first two live documents with runs of letters or digits, joined or apart.

        part  of the line that they are: all, its end, or what other words follow
        Neither a letter stands before the first run if that has letters, nor a digit before digits.
        Cost: see `find`.
        """
        first, *others = (re.escape(self._folded(run).strip().encode()) for run in runs)
        same = b"0-9" if runs[0].isdecimal() else b"^ \n0-9"
        begin = b"\n " if part == "all" else b""
        before = b"" if part == "all" else b"(?<![" + same + b"]" + first + b")"
        after = b"(?= [^\n])" if part == "inside" else b"(?= ?\n)"
        pattern = re.compile(
            begin + first + before + b"".join(b" ?" + run for run in others) + after
        )
        chunks = self._read_until(len(live), documents)
        doc_ids = (doc_id for chunk in chunks for doc_id in chunk.matching(pattern))
        is_live = (doc_id for doc_id in doc_ids if doc_id < len(live) and live[doc_id])
        return list(islice(dict.fromkeys(is_live), 2))

    def _folded(self, title: str) -> str:
        """Return what equal titles have in common."""
        return self._line(" " + title.replace("\n", " "))

    def _read(self) -> list[_Chunk]:
        with self._lock:
            return self._chunks[:]

    def _read_until(self, size: int, documents: DocumentReader) -> list[_Chunk]:
        """Read titles that were not read yet, of doc ids below a size."""
        chunks = self._read()
        after = chunks[-1].after if chunks else 0
        if after >= size:
            return chunks
        texts = self._texts(documents, range(after, size))
        titles = [text.replace("\n", " ") for text in texts]
        text = "".join(f"\n {title}" for title in titles) + "\n"
        new = _Chunk.of(after, self._line(text).encode())
        with self._lock:
            if self._chunks[-1:] == chunks[-1:]:  # unless another thread has added it
                self._chunks.append(new)
                self._merge_small()
        return [*chunks, new]

    def _merge_small(self) -> None:
        """Merge the last chunks while they are of similar size, so that they remain few."""
        while len(self._chunks) > 1 and len(self._chunks[-1].lines) >= len(self._chunks[-2].lines):
            last = self._chunks.pop()
            before = self._chunks.pop()
            self._chunks.append(_Chunk.of(before.first, before.text[:-1] + last.text))

    def _line(self, text: str) -> str:
        folded = self._analyzer.folded(text)
        if not folded.isascii():
            folded = _WITHOUT_SPACES.sub(r" \g<0>", folded)
        return _BETWEEN.sub(" ", folded)
