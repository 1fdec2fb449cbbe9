"""The forward index: the terms of each document in order, as codes of one byte or two.

    forward_codes.npy   uint8   codes of all documents
    forward_starts.npy  int64   (N + 1,) start of the codes of each document
    forward_ranks.npy   int32   (V,) rank of each term, the most frequent first

A document is the number of words in each of its parts but the last, then its words, part by part:
title, other searched fields, text. A code below 8
is a gap of one to eight words without a term; any other code is the rank of a term plus 8. Codes
are unsigned LEB128. So the index gives the position of each word, with gaps counted, and the
counts of terms.

About 110 bytes for a document of 87 words, as much as the counts alone; at most 5 bytes a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds
from klsa_search.core.cached import lazy_property
from klsa_search.core.compiling import compiled, wait_until_compiled
from klsa_search.core.field_weights import SearchedFields
from klsa_search.kernels.counts import Block, TermCounts
from klsa_search.storage.arrays import ArrayWriter, open_array, write_arrays

if TYPE_CHECKING:
    from scipy import sparse

GAPS: Final = 8
"""Longest gap of words without a term that one code can store."""

MAX_CODE_BYTES: Final = 5
"""Longest code."""

UNLIMITED: Final = 2**62
"""End of the last part of a document, which is not stored."""

_BATCH_BYTES: Final = 2**21
"""Codes counted at a time, approximately."""

Codes = npt.NDArray[np.uint8]


def write_forward(generation: Path, blocks: Iterable[Block], counts: TermCounts) -> None:
    """Write the forward index of all blocks of documents. Cost: 3 ns a word."""
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
    """Return the rank of each term, the most frequent first, from its number of occurrences."""
    ranks = np.empty(len(occurrences), np.int32)
    ranks[np.argsort(-occurrences, kind="stable")] = np.arange(len(ranks), dtype=np.int32)
    return ranks


def encoded(block: Block, ranks: npt.NDArray[np.int32]) -> tuple[Codes, npt.NDArray[np.int64]]:
    """Return the codes of documents of equally many parts, and their sizes. Cost: 3 ns a word."""
    codes = np.empty(MAX_CODE_BYTES * (len(block.words) + len(block.lengths)), np.uint8)
    sizes = np.zeros(len(block.parts), np.int64)
    end = _encode(block.words, block.lengths, ranks, codes, sizes)
    return codes[:end], sizes


class Forward:
    """Reads the forward index of documents.

    codes   uint8, of all documents
    starts  (N + 1,) start of the codes of each document
    ranks   (V,) rank of each term
    fields  names and weights of the parts of a document
    """

    def __init__(
        self,
        codes: Codes,
        starts: npt.NDArray[np.int64],
        ranks: npt.NDArray[np.int32],
        fields: SearchedFields,
    ) -> None:
        self.codes, self.starts, self.ranks = codes, starts, ranks
        self.fields = fields
        self._weights = np.array(fields.weights, np.int64)

    @classmethod
    def open(cls, generation: Path, fields: SearchedFields) -> Forward:
        """Open the forward index of a generation, memory-mapped."""
        return cls(
            open_array(generation, "forward_codes"),
            open_array(generation, "forward_starts"),
            open_array(generation, "forward_ranks"),
            fields,
        )

    def counts(self, documents: DocIds) -> sparse.csr_array:
        """Return f(t,d) of some documents: (n, V) sparse float32, terms ascending.

        Cost: 30 ns a word. Memory: 20 bytes a pair of term and document, and 16 MiB.
        """
        from scipy import sparse

        begins, ends = self._bounds(documents), self._bounds(documents + 1)
        splits = np.flatnonzero(np.diff(np.cumsum(ends - begins) // _BATCH_BYTES)) + 1
        batches = zip(np.split(begins, splits), np.split(ends, splits), strict=True)
        counted = [self._counts(*each) for each in batches]
        terms, counts, sizes = map(np.concatenate, zip(*counted, strict=True))
        starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        return sparse.csr_array((counts, terms, starts), shape=(len(documents), len(self.ranks)))

    def term_counts(self, term: int, documents: DocIds) -> npt.NDArray[np.int64]:
        """Return f(t,d) of one term in some documents: (n,). Cost: 3 ns a word."""
        counts = np.zeros(len(documents), np.int64)
        given = (self.codes, self._bounds(documents), self._bounds(documents + 1))
        wait_until_compiled(_count_term)
        _count_term(*given, int(self.ranks[term]) + GAPS, self._weights, counts)
        return counts

    def _bounds(self, documents: DocIds) -> npt.NDArray[np.int64]:
        """Return the starts of documents, clipped to the codes if the array is damaged."""
        return np.clip(self.starts[documents], 0, len(self.codes))

    def _counts(
        self, begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Return the terms of some documents, their counts, and the number of each document."""
        capacity = max(self.fields.weights) * int(np.maximum(ends - begins, 0).sum())
        keys = np.empty(capacity, np.int64)
        count = _keys_of(self.codes, begins, ends, self.terms, self._weights, keys)
        keys = keys[:count]
        keys.sort()
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        pairs = keys[firsts]
        counts = np.diff(firsts, append=len(keys)).astype(np.float32)
        sizes = np.bincount(pairs >> 32, minlength=len(begins))
        return (pairs & 0xFFFFFFFF).astype(np.int32), counts, sizes

    @lazy_property
    def terms(self) -> npt.NDArray[np.int32]:
        """Return the term of each rank."""
        return np.argsort(self.ranks).astype(np.int32)


@compiled
def _encode(
    words: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int32],
    ranks: npt.NDArray[np.int32],
    codes: Codes,
    sizes: npt.NDArray[np.int64],
) -> int:
    """Write the codes of documents of equally many parts, and their sizes; return the total."""
    at, word = 0, 0
    parts = len(lengths) // max(len(sizes), 1)
    for document in range(len(sizes)):
        begin = at
        first = parts * document
        for part in range(first, first + parts - 1):
            at = write_code(codes, at, lengths[part])
        gap = 0
        for _ in range(lengths[first : first + parts].sum()):
            term = words[word]
            word += 1
            if term < 0:
                gap += 1
                continue
            at = _write_gap(codes, at, gap)
            at = write_code(codes, at, ranks[term] + GAPS)
            gap = 0
        sizes[document] = at - begin
    return at


@compiled
def _write_gap(codes: Codes, at: int, gap: int) -> int:
    while gap > 0:
        codes[at] = min(gap, GAPS) - 1
        gap -= GAPS
        at += 1
    return at


@compiled
def write_code(codes: Codes, at: int, code: Any) -> int:
    """Write a code below 2^35, of at most `MAX_CODE_BYTES`; return the start of the next one."""
    while code >= 0x80:
        codes[at] = code & 0x7F | 0x80
        code >>= 7
        at += 1
    codes[at] = code
    return at + 1


@compiled
def read_code(codes: Codes, at: int, end: int) -> tuple[int, int]:
    """Return the code that starts at `at`, before `end`, and the start of the next one."""
    code: Any = 0
    shift = 0
    while at < end:
        part = codes[at]
        at += 1
        code |= np.int64(part & 0x7F) << shift
        shift += 7
        if part < 0x80 or shift == 7 * MAX_CODE_BYTES:
            break
    return code, at


@compiled
def read_ends(codes: Codes, at: int, end: int, ends: npt.NDArray[np.int64]) -> int:
    """Read where each part of a document ends, in words; return the start of its words.

    ends  output: the words up to the end of each part; the last part is unlimited
    """
    words: Any = 0
    for part in range(len(ends) - 1):
        count, at = read_code(codes, at, end)
        words += count
        ends[part] = words
    ends[-1] = UNLIMITED
    return at


@compiled
def _keys_of(
    codes: Codes,
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    terms: npt.NDArray[np.int32],
    weights: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
) -> int:
    """Write document << 32 | term for every word that has a term; return how many.

    Words are repeated by the weight of their part. Damaged codes never cause a read outside of
    them.
    """
    count = 0
    part_ends = np.empty(len(weights), np.int64)
    for document in range(len(begins)):
        at, end = begins[document], ends[document]
        at = read_ends(codes, at, end, part_ends)
        position: Any = 0
        part = 0
        while at < end:
            code, at = read_code(codes, at, end)
            if code < GAPS:
                position += code + 1
                continue
            while position >= part_ends[part]:
                part += 1
            position += 1
            if code - GAPS < len(terms):
                for _ in range(weights[part]):
                    keys[count] = np.int64(document) << 32 | np.int64(terms[code - GAPS])
                    count += 1
    return count


@compiled
def _count_term(
    codes: Codes,
    begins: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    wanted: int,
    weights: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
) -> None:
    """Add the occurrences of a code in documents to their counts, by the weight of their part."""
    part_ends = np.empty(len(weights), np.int64)
    for document in range(len(begins)):
        at, end = begins[document], ends[document]
        at = read_ends(codes, at, end, part_ends)
        position: Any = 0
        part = 0
        while at < end:
            code, at = read_code(codes, at, end)
            while position >= part_ends[part]:
                part += 1
            if code == wanted:
                counts[document] += weights[part]
            position += code + 1 if code < GAPS else 1


@compiled
def table_of(codes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return a hash table of the codes of some terms: each slot has a code or 0, and its number.

    Linear probing from the code modulo the size. At most one slot in eight is used, so that one
    look-up decides for most words.
    """
    size = 64
    while size < 8 * len(codes):
        size *= 2
    table, numbers = np.zeros(size, np.int64), np.zeros(size, np.int32)
    for number in range(len(codes)):
        slot = codes[number] & (size - 1)
        while table[slot]:
            slot = (slot + 1) & (size - 1)
        table[slot], numbers[slot] = codes[number], number
    return table, numbers


@compiled
def find_words(
    codes: Codes,
    begin: int,
    end: int,
    parts: int,
    table: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int32],
    positions: npt.NDArray[np.int32],
    which: npt.NDArray[np.int32],
) -> int:
    """Find the first words of a document's text that are among the terms of a table.

    begin, end  bounds of its codes
    parts       number of parts of a document, of which the last is the text
    positions   output: ascending positions in the text, gaps counted, at most as many as fit
    which       output: the numbers of their terms
    Return how many. Cost: 3 ns a word.
    """
    last, end = len(table) - 1, min(end, len(codes))
    at: Any = max(begin, 0)
    position: Any = 0
    for _ in range(parts - 1):
        words, at = read_code(codes, at, end)
        position -= words
    count = 0
    while at < end and count < len(positions):
        # Most codes have one byte or two; a branch costs more than reading both.
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
                if position >= 0:
                    positions[count], which[count] = position, numbers[slot]
                    count += 1
                break
            slot = (slot + 1) & last
        position += code + 1 if code < GAPS else 1
    return count
