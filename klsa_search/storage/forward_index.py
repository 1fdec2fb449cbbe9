"""The forward index: the terms of each document in their order, as codes of a byte or two.

    forward_codes.npy   uint8   the codes of all documents
    forward_starts.npy  int64   (N + 1,) where those of each begin
    forward_ranks.npy   int32   (V,) the rank of each term, the most frequent first

A document is the number of words in its title, then its words, title and text: a code below 8 is
that many words and one more that make no term, any other a term of that rank and 8. Each is an
unsigned LEB128: seven bits a byte, the lowest first, the eighth says that more follow. So a word's
place in its document is known, left-out ones counted, and so are the counts of its terms.

About 110 bytes a document of 87 words, as much as counts alone would take; at most 5 a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Positions
from klsa_search.core.cached import lazy_property
from klsa_search.core.compiling import compiled
from klsa_search.kernels.counts import Block, TermCounts
from klsa_search.storage.arrays import ArrayWriter, open_array, write_arrays

if TYPE_CHECKING:
    from scipy import sparse

GAPS: Final = 8
"""Words without a term that one code passes over at most."""

LONGEST: Final = 5
"""Bytes of a code at most."""

_TOGETHER: Final = 2**21
"""Bytes of codes that are counted at a time, about."""

Codes = npt.NDArray[np.uint8]


def write_forward(generation: Path, blocks: Iterable[Block], counts: TermCounts) -> None:
    """Write the documents of all blocks, each of two parts. Cost: 3 ns a word."""
    matrix = counts.matrix
    ranks = ranks_of(np.bincount(matrix.indices, matrix.data, minlength=matrix.shape[1]))
    sizes = [np.zeros(1, np.int64)]
    with ArrayWriter(generation, "forward_codes", np.uint8) as writer:
        for block in blocks:
            codes, of_each = encoded(block, ranks)
            sizes.append(of_each)
            writer.append(codes)
    starts = np.cumsum(np.concatenate(sizes))
    write_arrays(generation, {"forward_starts": starts, "forward_ranks": ranks})


def ranks_of(occurrences: npt.NDArray[np.number]) -> npt.NDArray[np.int32]:
    """Rank of each term, the most frequent first, of how often each stands in all documents."""
    ranks = np.empty(len(occurrences), np.int32)
    ranks[np.argsort(-occurrences, kind="stable")] = np.arange(len(ranks), dtype=np.int32)
    return ranks


def encoded(block: Block, ranks: npt.NDArray[np.int32]) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Encode documents of two parts: their codes, and the bytes of each. Cost: 3 ns a word."""
    codes = np.empty(LONGEST * (len(block.words) + len(block.parts)), np.uint8)
    sizes = np.zeros(len(block.parts), np.int64)
    end = _encode(block.words, block.lengths, ranks, codes, sizes)
    return codes[:end], sizes


class Forward:
    """Reads the forward index of documents.

    codes   uint8, of all documents
    starts  (N + 1,) where those of each begin
    ranks   (V,) of each term
    title_weight  how often the words of a title are counted
    """

    def __init__(
        self,
        codes: Codes,
        starts: npt.NDArray[np.int64],
        ranks: npt.NDArray[np.int32],
        title_weight: int,
    ) -> None:
        self.codes, self.starts, self.ranks = codes, starts, ranks
        self.title_weight = title_weight

    @classmethod
    def open(cls, generation: Path, title_weight: int) -> Forward:
        """Open that of a generation, mapped into memory."""
        return cls(
            open_array(generation, "forward_codes"),
            open_array(generation, "forward_starts"),
            open_array(generation, "forward_ranks"),
            title_weight,
        )

    def counts(self, documents: Positions) -> sparse.csr_array:
        """f(t,d) of some documents: (n, V) sparse float32, terms ascending. Cost: 30 ns a word.

        Memory: 20 bytes a pair of a term and a document, and 16 MiB.
        """
        from scipy import sparse

        begins, ends = self._places(documents), self._places(documents + 1)
        pieces = np.flatnonzero(np.diff(np.cumsum(ends - begins) // _TOGETHER)) + 1
        both = zip(np.split(begins, pieces), np.split(ends, pieces), strict=True)
        found = [self._counts(*each) for each in both]
        terms, counts, sizes = map(np.concatenate, zip(*found, strict=True))
        starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        return sparse.csr_array((counts, terms, starts), shape=(len(documents), len(self.ranks)))

    def _places(self, documents: Positions) -> npt.NDArray[np.int64]:
        """Where documents begin, whatever a damaged array says of it."""
        return np.clip(self.starts[documents], 0, len(self.codes))

    def _counts(
        self, begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Terms of some documents, how often each is there, and how many each document has."""
        room = self.title_weight * int(np.maximum(ends - begins, 0).sum())
        keys = np.empty(room, np.int64)
        count = _keys_of(self.codes, begins, ends, self.terms, self.title_weight, keys)
        keys = keys[:count]
        keys.sort()
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        held = keys[firsts]
        counts = np.diff(firsts, append=len(keys)).astype(np.float32)
        sizes = np.bincount(held >> 32, minlength=len(begins))
        return (held & 0xFFFFFFFF).astype(np.int32), counts, sizes

    @lazy_property
    def terms(self) -> npt.NDArray[np.int32]:
        """Term of each rank."""
        return np.argsort(self.ranks).astype(np.int32)


@compiled
def _encode(
    words: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int32],
    ranks: npt.NDArray[np.int32],
    codes: Codes,
    sizes: npt.NDArray[np.int64],
) -> int:
    """Write the codes of documents of two parts, and the size of each; returns the bytes."""
    at, word = 0, 0
    for document in range(len(sizes)):
        begin = at
        title = lengths[2 * document]
        at = write_code(codes, at, title)
        gap = 0
        for _ in range(title + lengths[2 * document + 1]):
            term = words[word]
            word += 1
            if term < 0:
                gap += 1
                continue
            at = _pass_over(codes, at, gap)
            at = write_code(codes, at, ranks[term] + GAPS)
            gap = 0
        sizes[document] = at - begin
    return at


@compiled
def _pass_over(codes: Codes, at: int, gap: int) -> int:
    while gap > 0:
        codes[at] = min(gap, GAPS) - 1
        gap -= GAPS
        at += 1
    return at


@compiled
def write_code(codes: Codes, at: int, code: Any) -> int:
    """Write a code, of `LONGEST` bytes at most below 2^35; returns where the next one begins."""
    while code >= 0x80:
        codes[at] = code & 0x7F | 0x80
        code >>= 7
        at += 1
    codes[at] = code
    return at + 1


@compiled
def read_code(codes: Codes, at: int, end: int) -> tuple[int, int]:
    """Read the code at a place before `end`, and where the next one begins."""
    code: Any = 0
    shift = 0
    while at < end:
        part = codes[at]
        at += 1
        code |= np.int64(part & 0x7F) << shift
        shift += 7
        if part < 0x80 or shift == 7 * LONGEST:
            break
    return code, at


@compiled
def _keys_of(
    codes: Codes,
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    terms: npt.NDArray[np.int32],
    title_weight: int,
    keys: npt.NDArray[np.int64],
) -> int:
    """Write document << 32 | term of every word that makes a term; returns how many.

    Those of the title several times. Whatever the codes are, nothing outside of them is read.
    """
    found = 0
    for document in range(len(begins)):
        at, end = begins[document], ends[document]
        title, at = read_code(codes, at, end)
        place: Any = 0
        while at < end:
            code, at = read_code(codes, at, end)
            if code < GAPS:
                place += code + 1
                continue
            times = title_weight if place < title else 1
            place += 1
            if code - GAPS < len(terms):
                for _ in range(times):
                    keys[found] = np.int64(document) << 32 | np.int64(terms[code - GAPS])
                    found += 1
    return found


@compiled
def table_of(codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Make a table of the codes of some terms: for each place a code, 0 for none, and its number.

    A code is at its own place, modulo the length, or at the first free one behind it. Most places
    are free, so that one look-up decides for most words.
    """
    size = 64
    while size < 8 * len(codes):
        size *= 2
    table, numbers = np.zeros(size, np.int64), np.zeros(size, np.int32)
    for number in range(len(codes)):
        place = codes[number] & (size - 1)
        while table[place]:
            place = (place + 1) & (size - 1)
        table[place], numbers[place] = codes[number], number
    return table, numbers


@compiled
def find_words(
    codes: Codes,
    begin: int,
    end: int,
    table: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int32],
    places: npt.NDArray[np.int32],
    which: npt.NDArray[np.int32],
) -> int:
    """Find the first words of a document's text that are among the terms of a table.

    begin, end  where its codes are
    places      their places in the text are written here, left-out words counted, ascending;
                no more than there is room for
    which       the numbers of their terms
    Returns how many. Cost: 3 ns a word.
    """
    last, end = len(table) - 1, min(end, len(codes))
    title, at = read_code(codes, max(begin, 0), end)
    place: Any = -title
    found = 0
    while at < end and found < len(places):
        # Most codes have one byte or two, and guessing which costs more than reading both.
        first: Any = np.int64(codes[at])
        second: Any = np.int64(codes[min(at + 1, end - 1)])
        long = first >> 7
        if long & second >> 7:
            code, at = read_code(codes, at, end)
        else:
            code = (first & 0x7F) | (second << 7) * long
            at += 1 + long
        slot = code & last
        while table[slot]:
            if table[slot] == code:
                if place >= 0:
                    places[found], which[found] = place, numbers[slot]
                    found += 1
                break
            slot = (slot + 1) & last
        place += code + 1 if code < GAPS else 1
    return found
