"""Counts of terms and of adjacent pairs of terms in documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.analysis.terms import LAST_STOP_CODE
from klsa_search.core.array_types import Numbers, Spool, narrow_indptr, starts_of
from klsa_search.core.parallel import map_in_order, processors
from klsa_search.kernels.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy import sparse


_INT32 = npt.NDArray[np.int32]

BLOCK = 1_000_000
"""Words of a block."""
CHUNK = 1 << 20  # keys read at a time
SORTED = 1 << 23  # keys sorted at a time
_OF_TERMS = -1  # name of the dictionary of documents given as terms
_NEGATIVE = LAST_STOP_CODE + 1  # numbers of words without a term, down from -1


class Block(NamedTuple):
    """Consecutive documents as term numbers.

    words    term numbers of all parts in order; below 0 for a word without a term: -1, or for a
             stop word -1 less its code
    lengths  number of words of each part
    parts    number of parts of each document
    """

    words: _INT32
    lengths: _INT32
    parts: _INT32


class BlockCounts(NamedTuple):
    """Counts in document order, and by column within a document.

    sizes       (documents,) distinct terms
    columns     their numbers; `counts`: their frequencies, times the weights of the parts
    key_sizes   (documents,) distinct pairs
    keys        lesser term · V + greater term; `key_counts`: their frequencies
    """

    sizes: _INT32
    columns: _INT32
    counts: _INT32
    key_sizes: _INT32
    keys: Numbers
    key_counts: _INT32

    def without_pairs(self) -> BlockCounts:
        """Return the same without pairs."""
        sizes = np.zeros_like(self.key_sizes)
        return self._replace(key_sizes=sizes, keys=self.keys[:0], key_counts=self.key_counts[:0])


def count_block(
    block: Block, paired: npt.NDArray[np.bool_], weights: Sequence[int] = ()
) -> BlockCounts:
    """Count one block. O(T log t) for T words in documents of t words; at most 24 bytes per word.

    paired   (V,) whether a term makes pairs; other terms are skipped
    weights  of a word in each part of a document with so many parts; 1 in documents
             with another number of parts
    """
    return BlockCounts(*_native.count_block(*block, paired, np.array(weights, np.int64)))


@dataclass(frozen=True)
class TermCounts:
    """Counts of a collection.

    vocabulary  V terms, sorted
    matrix      (N, V) sparse, int32: f(t, d), columns in order within each row
    pairs       (N, P) sparse, int32: frequencies of adjacent pairs, in either order, of different
                terms that are not common, if at least two documents contain the pair
    pair_keys   (P,) ascending: lesser term · V + greater term
    common      numbers of the common terms, ascending, which document features leave out
    words       number of words in all documents
    tokens      number of words that have a term
    """

    vocabulary: Vocabulary
    matrix: sparse.csr_array
    pairs: sparse.csr_array
    pair_keys: Numbers
    common: Numbers
    words: int
    tokens: int

    @property
    def content(self) -> TermCounts:
        """Return the counts without the common terms in the matrix. Cost O(nnz)."""
        if not len(self.common):
            return self
        return replace(self, matrix=without_columns(self.matrix, self.common))

    @property
    def lengths(self) -> Numbers:
        """Return dl(d): (N,) tokens of each document, times the weights of their parts."""
        return np.asarray(self.matrix.sum(axis=1, dtype=np.int64)).ravel()

    @property
    def document_frequencies(self) -> Numbers:
        """Return n_t: (V,) document frequencies."""
        return np.bincount(self.matrix.indices, minlength=len(self.vocabulary)).astype(np.int64)


def without_columns(matrix: sparse.csr_array, columns: Numbers) -> sparse.csr_array:
    """Return a matrix of the same shape without the entries of some columns. Cost O(nnz)."""
    from scipy import sparse

    kept = np.ones(matrix.shape[1], np.bool_)
    kept[columns] = False
    entry_kept = kept[matrix.indices]
    starts = starts_of(entry_kept)[matrix.indptr]
    starts = starts.astype(matrix.indptr.dtype)
    entries = (matrix.data[entry_kept], matrix.indices[entry_kept], starts)
    content = sparse.csr_array(entries, shape=matrix.shape)
    content.has_sorted_indices = True
    return content


class CountsBuilder:
    """Counts documents, given as terms or as term numbers; 4 bytes per word until `finish`.

    spool         returns what stores words and counts of a type, in memory or in a file
    threads       number of threads, by default that of processors; does not change the result
    weights       of a word in each part of a document: see `count_block`
    common        terms that are skipped when making pairs
    first         terms that have the first numbers, whether documents contain them or not
    """

    def __init__(
        self,
        spool: Callable[[npt.DTypeLike], Spool] = Spool,
        *,
        threads: int | None = None,
        weights: Sequence[int] = (),
        common: Set[str] = frozenset(),
        first: Sequence[str] = (),
    ) -> None:
        self._spool = spool
        self._weights, self._common, self._first = tuple(weights), common, first
        self._tokens = 0
        self._threads = threads or processors()
        self._numberings: dict[int, dict[str, int]] = {}
        self._sorted_numbers: dict[int, npt.NDArray[np.int32]] = {}  # by dictionary and number
        self._words = self._spool(np.int32)
        self._segments: list[tuple[int, int]] = []  # dictionary, end of its words
        self._lengths = self._spool(np.int32)  # words of each part
        self._parts = self._spool(np.int32)  # parts of each document

    def add(self, *parts: Sequence[str]) -> None:
        """Add a document, given as the terms of its parts, such as title and text."""
        numbering = self._numberings.setdefault(_OF_TERMS, {})
        tokens = [numbering.setdefault(term, len(numbering)) for term in chain(*parts)]
        lengths = np.array([len(part) for part in parts], np.int32)
        self.extend(_OF_TERMS, np.array(tokens, np.int32), lengths, len(parts), ())

    def extend(
        self,
        numbering: int,
        words: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int32],
        parts: int,
        terms: Iterable[str],
    ) -> None:
        """Add documents, given as term numbers.

        numbering  name of the dictionary of the numbers
        words      term numbers in order; below 0 for a word without a term
        lengths    number of words of each part
        parts      number of parts of each document
        terms      terms new to the dictionary, in the order of their numbers
        """
        numbers = self._numberings.setdefault(numbering, {})
        for term in terms:
            numbers[term] = len(numbers)
        self._tokens += int(np.count_nonzero(words >= 0))
        self._words.append(words)
        self._segments.append((numbering, len(self._words)))
        self._lengths.append(lengths)
        documents = len(lengths) // parts if parts else 1
        self._parts.append(np.full(documents, parts, np.int32))

    def finish(
        self,
        counted: Callable[[int, int], None] | None = None,
        on_block: Callable[[BlockCounts, npt.NDArray[np.bool_]], None] | None = None,
    ) -> TermCounts:
        """Sort the vocabulary and return the counts.

        counted  called with the amount done and the total, 2 per document: terms, then pairs
        on_block  called with the counts of each block, and whether each term makes pairs; pairs are
                 left out of the result then
        Cost O(T log T) for T words, on all threads; memory besides the result and the spools about
        40 bytes per word of the blocks in work.
        """
        terms = self._sort()
        common = np.flatnonzero([term in self._common for term in terms])
        paired = np.ones(len(terms), np.bool_)
        paired[common] = False
        N = len(self._parts)
        report = counted or (lambda done, total: None)
        counts = _SpooledCounts(self._spool)
        with ThreadPoolExecutor(self._threads) as threads:
            for block in map_in_order(
                lambda block: threads.submit(count_block, block, paired, self._weights),
                self.blocks(),
                ahead=self._threads,
            ):
                if on_block is not None:
                    on_block(block, paired)
                    block = block.without_pairs()
                counts.append(block)
                report(counts.documents, 2 * N)
        matrix = _matrix(np.concatenate(counts.sizes), counts.columns, counts.counts, len(terms))
        shared = counts.shared_pairs()
        pairs = counts.pairs(
            shared, len(terms), self._threads, lambda documents: report(N + documents, 2 * N)
        )
        vocabulary, first = Vocabulary(self._first or terms), len(self._first)
        if first:
            vocabulary = vocabulary.extended(terms[first:])
        return TermCounts(vocabulary, matrix, pairs, shared, common, len(self._words), self._tokens)

    def blocks(self) -> Iterator[Block]:
        """Yield the documents again, after `finish`, in blocks of about `BLOCK` words."""
        parts = self._parts.read()
        lengths = self._lengths.read()
        part_ends = starts_of(parts)
        ends = starts_of(lengths)[part_ends]
        segment_ends = np.array([end for _, end in self._segments], np.int64)
        first, N = 0, len(parts)
        while first < N:
            last = int(np.searchsorted(ends, ends[first] + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), N)
            words = self._words.read(ends[first], ends[last])
            begin = 0
            at = int(np.searchsorted(segment_ends, ends[first], side="right"))
            while begin < len(words):
                name, end = self._segments[at]
                piece = slice(begin, min(end - int(ends[first]), len(words)))
                words[piece] = self._sorted_numbers[name][words[piece]]
                begin, at = piece.stop, at + 1
            within = slice(part_ends[first], part_ends[last])
            yield Block(words, lengths[within], parts[first:last])
            first = last

    def close(self) -> None:
        """Close the spools of the documents."""
        for spool in (self._words, self._lengths, self._parts):
            spool.close()

    def _sort(self) -> list[str]:
        """Sort the terms of all dictionaries, and map their numbers to the sorted ones."""
        other_terms = set().union(*self._numberings.values()).difference(self._first)
        terms = [*self._first, *sorted(other_terms)]
        number_of = {term: number for number, term in enumerate(terms)}
        for name, numbering in self._numberings.items():
            numbers = np.empty(len(numbering) + _NEGATIVE, np.int32)
            terms_of = map(number_of.__getitem__, numbering)
            numbers[: len(numbering)] = np.fromiter(terms_of, np.int32, len(numbering))
            numbers[len(numbering) :] = np.arange(-_NEGATIVE, 0)  # at negative indexes
            self._sorted_numbers[name] = numbers
        self._numberings.clear()
        return terms


class _SpooledCounts:
    """The counts of all blocks, in order."""

    def __init__(self, spool: Callable[[npt.DTypeLike], Spool]) -> None:
        self.documents = 0
        self.columns, self.counts = spool(np.int32), spool(np.int32)
        self._spool = spool
        self._keys, self._key_counts = spool(np.int64), spool(np.int32)
        self.sizes, self._key_sizes = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]

    def append(self, block: BlockCounts) -> None:
        self.columns.append(block.columns)
        self.counts.append(block.counts)
        self._keys.append(block.keys)
        self._key_counts.append(block.key_counts)
        self.sizes.append(block.sizes)
        self._key_sizes.append(block.key_sizes)
        self.documents += len(block.sizes)

    def shared_pairs(self) -> Numbers:
        """Return the keys of pairs that several documents contain, in order.

        Keys are sorted range by range, with ranges from a sample, so about 64 MB suffice for any
        number of keys. Cost O(K log K) for K keys, and one pass over them per `SORTED` keys.
        """
        pieces = -(-len(self._keys) // SORTED)
        if pieces <= 1:
            return _repeated(self._keys.read())
        sample = np.sort(np.concatenate([chunk[::97].copy() for chunk in self._chunks()]))
        limits = sample[np.arange(1, pieces) * len(sample) // pieces]
        shared = []
        for piece in range(pieces):
            low = limits[piece - 1] if piece else np.iinfo(np.int64).min
            high = limits[piece] if piece < pieces - 1 else np.iinfo(np.int64).max
            within = [chunk[(chunk >= low) & (chunk < high)] for chunk in self._chunks()]
            shared.append(_repeated(np.concatenate(within)))
        return np.concatenate(shared)

    def pairs(
        self, shared: Numbers, terms: int, threads: int, numbered: Callable[[int], None]
    ) -> sparse.csr_array:
        """Return the counts of the shared pairs, numbered in order: (N, P); close the spools.

        terms     V
        numbered  called with the number of documents done
        """
        starts = np.searchsorted(shared, np.arange(terms + 1, dtype=np.int64) * terms)
        numbers, counts = self._spool(np.int32), self._spool(np.int32)
        sizes, done = [np.zeros(0, np.int32)], 0
        with ThreadPoolExecutor(threads) as pool:

            def submit(block: tuple[_INT32, Numbers, _INT32]) -> Future[tuple[_INT32, ...]]:
                return pool.submit(_native.number_pairs, shared, starts, *block)

            for of_block in map_in_order(submit, self._blocks_of_pairs(), ahead=threads):
                block_sizes, block_numbers, block_counts = of_block
                sizes.append(block_sizes)
                numbers.append(block_numbers)
                counts.append(block_counts)
                done += len(block_sizes)
                numbered(done)
        self._keys.close()
        self._key_counts.close()
        return _matrix(np.concatenate(sizes), numbers, counts, len(shared))

    def _blocks_of_pairs(self) -> Iterator[tuple[_INT32, Numbers, _INT32]]:
        first = 0
        for size in self._key_sizes:
            last = first + int(size.sum())
            yield size, self._keys.read(first, last), self._key_counts.read(first, last)
            first = last

    def _chunks(self) -> Iterator[Numbers]:
        for first in range(0, len(self._keys), CHUNK):
            yield self._keys.read(first, min(first + CHUNK, len(self._keys)))


def _repeated(keys: Numbers) -> Numbers:
    """Sort the keys in place and return those that occur more than once."""
    keys.sort()
    again: Numbers = keys[1:][keys[1:] == keys[:-1]]
    first = np.ones(len(again), np.bool_)
    first[1:] = again[1:] != again[:-1]
    return np.asarray(again[first])


def _matrix(
    sizes: npt.NDArray[np.int32], columns: Spool, counts: Spool, width: int
) -> sparse.csr_array:
    """Return a sparse matrix with rows of these sizes, and close the spools."""
    from scipy import sparse

    starts = narrow_indptr(starts_of(sizes))
    matrix = sparse.csr_array((counts.read(), columns.read(), starts), shape=(len(sizes), width))
    matrix.has_sorted_indices = True
    columns.close()
    counts.close()
    return matrix
