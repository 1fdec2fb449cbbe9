"""Count terms and pairs of terms, for each piece and in all.

A pair is a feature if at least two documents of the collection contain it. Each piece lists its
distinct pairs by key; a step for a range of keys finds the shared ones, and the number of a pair is
its rank among all shared pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.cluster.analysing import blocks_of, terms_of
from klsa_search.cluster.work import StepResult, map_array, read_facts, write_facts
from klsa_search.core.array_types import narrow_indptr
from klsa_search.kernels.counts import count_block
from klsa_search.kernels.pairs import number_block
from klsa_search.storage.arrays import ArrayWriter, write_arrays
from klsa_search.storage.forward_index import ranks_of

ENTRIES: Final = 2**19
"""Entries of documents that are weighted at a time."""

_Ints = npt.NDArray[np.int32]
_Numbers = npt.NDArray[np.int64]


class Rows(NamedTuple):
    """Counts of consecutive documents of a piece.

    matrix     (n, V) counts of terms
    lengths    (n,) lengths without common terms
    key_sizes  (n,) numbers of pairs; `keys` and `key_counts` are theirs
    """

    matrix: sparse.csr_array
    lengths: _Numbers
    key_sizes: _Ints
    keys: _Numbers
    key_counts: _Ints

    @classmethod
    def of(cls, piece: StepResult, V: int) -> Iterator[Rows]:
        """Yield the counts of a piece, block by block."""
        names = "sizes", "columns", "counts", "content", "key_sizes", "keys", "key_counts"
        array = {name: map_array(piece, name) for name in names}
        ends, key_ends = _ends(array["sizes"]), _ends(array["key_sizes"])
        first, N = 0, len(array["sizes"])
        while first < N:
            last = int(np.searchsorted(ends, ends[first] + ENTRIES, side="right")) - 1
            last = min(max(last, first + 1), N)
            entries = slice(ends[first], ends[last])
            keys = slice(key_ends[first], key_ends[last])
            starts = narrow_indptr(ends[first : last + 1] - ends[first])
            columns, counts = (
                array["columns"][entries],
                array["counts"][entries],
            )
            matrix = sparse.csr_array((counts, columns, starts), shape=(last - first, V))
            matrix.has_sorted_indices = True
            yield cls(
                matrix,
                array["content"][first:last],
                array["key_sizes"][first:last],
                array["keys"][keys],
                array["key_counts"][keys],
            )
            first = last


class Pairs(NamedTuple):
    """The shared pairs of a piece.

    keys     (p,) ascending
    starts   (V + 1,) starts by first term
    numbers  (p,) numbers among all shared pairs
    held     (p,) document frequencies in the collection
    """

    keys: _Numbers
    starts: _Numbers
    numbers: _Ints
    held: _Numbers

    @classmethod
    def of(cls, piece: StepResult, limits: _Numbers, ranges: Sequence[StepResult], V: int) -> Pairs:
        """Return the shared pairs of a piece, looked up by ranges of keys."""
        keys, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        held, before = [np.zeros(0, np.int64)], 0
        for low, high, made in zip(limits[:-1], limits[1:], ranges, strict=True):
            own = map_array(piece, "pairs")[within(piece, low, high)]
            shared = map_array(made, "keys")
            places = np.searchsorted(shared, own)
            there = places < len(shared)
            there[there] = shared[places[there]] == own[there]
            keys.append(own[there])
            numbers.append((before + places[there]).astype(np.int32))
            held.append(map_array(made, "held")[places[there]])
            before += len(shared)
        found = np.concatenate(keys)
        starts = np.searchsorted(found, np.arange(V + 1, dtype=np.int64) * V)
        return cls(found, starts, np.concatenate(numbers), np.concatenate(held))

    def counts(self, rows: Rows) -> sparse.csr_array:
        """Return the counts of these pairs in documents: (n, p)."""
        sizes, columns, counts = number_block(
            self.keys,
            self.starts,
            len(self.starts) - 1,
            rows.key_sizes,
            rows.keys,
            rows.key_counts,
        )
        matrix = sparse.csr_array(
            (counts, columns, narrow_indptr(_ends(sizes))), shape=(len(sizes), len(self.keys))
        )
        matrix.has_sorted_indices = True
        return matrix


def _ends(sizes: npt.NDArray[np.int32]) -> _Numbers:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))


KEYS: Final = 2**21
"""Keys of pairs that one step looks through for shared ones, about."""

_SAMPLED: Final = 97

_Keys = npt.NDArray[np.int64]


def count(
    out: Path, piece: StepResult, vocabulary: StepResult, number: int, weights: Sequence[int]
) -> None:
    """Step: count the documents of a piece, by numbers of all terms.

    sizes, columns, counts          entries of each document, their terms, f(t, d)
    key_sizes, keys, key_counts     the same of pairs
    lengths, content                (n,) tokens of each document, and without common terms
    terms, frequencies, occurrences of terms that are there: documents, and how often in all
    pairs, held                     keys of pairs that are there, ascending, and documents
    Memory: 24 bytes a word of a block, 16 a pair, 12 a term of all.
    """
    V = terms_of(vocabulary)
    common = map_array(vocabulary, "common")
    paired = np.ones(V, np.bool_)
    paired[common] = False
    frequencies, occurrences = np.zeros(V, np.int64), np.zeros(V, np.int64)
    lengths, content = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    kinds = {
        "sizes": np.int32, "columns": np.int32, "counts": np.int32,
        "key_sizes": np.int32, "keys": np.int64, "key_counts": np.int32,
    }  # fmt: skip
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(ArrayWriter(out, name, kind)) for name, kind in kinds.items()
        }
        for block in blocks_of(piece, vocabulary, number):
            found = count_block(block, paired, weights)
            for name, writer in writers.items():
                writer.append(getattr(found, name))
            frequencies += np.bincount(found.columns, minlength=V)
            occurrences += np.bincount(found.columns, found.counts, minlength=V).astype(np.int64)
            lengths.append(_sums(found.sizes, found.counts))
            content.append(_sums(found.sizes, found.counts * paired[found.columns]))
    there = np.flatnonzero(frequencies)
    pairs, held = np.unique(map_array(out, "keys"), return_counts=True)
    arrays: dict[str, npt.NDArray[Any]] = {
        "lengths": np.concatenate(lengths),
        "content": np.concatenate(content),
        "terms": there,
        "frequencies": frequencies[there],
        "occurrences": occurrences[there],
        "pairs": pairs,
        "held": held,
    }
    write_arrays(out, arrays)
    write_facts(out, entries=int(frequencies.sum()), documents=sum(map(len, lengths)))


def sum_up(out: Path, pieces: Sequence[StepResult], vocabulary: StepResult) -> None:
    """Step: sums over all pieces.

    frequencies, occurrences  (V,) of terms
    forward_ranks             (V,) ranks of terms in the forward index
    limits                    multiples of V that divide the keys into ranges of about `KEYS`
    facts                     numbers of documents, entries and tokens (all, and not common)
    """
    V = terms_of(vocabulary)
    frequencies, occurrences = np.zeros(V, np.int64), np.zeros(V, np.int64)
    facts = {"documents": 0, "entries": 0, "length": 0, "content": 0}
    keys, sample = 0, [np.zeros(0, np.int64)]
    for piece in pieces:
        there = map_array(piece, "terms")
        frequencies[there] += map_array(piece, "frequencies")
        occurrences[there] += map_array(piece, "occurrences")
        own = read_facts(piece)
        facts["documents"] += own["documents"]
        facts["entries"] += own["entries"]
        facts["length"] += int(map_array(piece, "lengths").sum())
        facts["content"] += int(map_array(piece, "content").sum())
        pairs = map_array(piece, "pairs")
        keys += len(pairs)
        sample.append(np.array(pairs[::_SAMPLED]))
    ranges = -(-keys // KEYS)
    sampled = np.sort(np.concatenate(sample))
    chosen = sampled[np.arange(1, ranges) * len(sampled) // max(ranges, 1)] // max(V, 1) * V
    limits = np.concatenate(([0], np.unique(chosen[chosen > 0]), [V * V])).astype(np.int64)
    arrays: dict[str, npt.NDArray[Any]] = {
        "frequencies": frequencies,
        "occurrences": occurrences,
        "forward_ranks": ranks_of(occurrences),
        "limits": limits,
    }
    write_arrays(out, arrays)
    write_facts(out, **facts)


def share(out: Path, pieces: Sequence[StepResult], low: int, high: int) -> None:
    """Step: find the pairs with keys in [low, high) that at least two documents contain.

    keys  (p,) ascending
    held  (p,) document frequencies
    Memory: 40 bytes for each key of the pieces.
    """
    keys, held = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for piece in pieces:
        own = within(piece, low, high)
        keys.append(map_array(piece, "pairs")[own])
        held.append(map_array(piece, "held")[own])
    different, places = np.unique(np.concatenate(keys), return_inverse=True)
    sums = np.bincount(places, np.concatenate(held), minlength=len(different)).astype(np.int64)
    shared = sums > 1
    write_arrays(out, {"keys": different[shared], "held": sums[shared]})
    write_facts(out, pairs=int(np.count_nonzero(shared)))


def within(piece: StepResult, low: int, high: int) -> slice:
    """Return the slice of the pairs of a piece with keys in [low, high)."""
    first, last = np.searchsorted(map_array(piece, "pairs"), (low, high))
    return slice(int(first), int(last))


def _sums(sizes: npt.NDArray[np.int32], counts: npt.NDArray[np.int32]) -> _Keys:
    """Return the sum of the counts of each document: (n,)."""
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.asarray(sums[ends] - sums[ends - sizes])
