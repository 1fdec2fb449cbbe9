"""Counting: terms and adjacent pairs of each piece, what all of them sum up to, shared pairs.

A pair is a feature where two documents of the whole hold it. Each piece has its pairs once, in the
order of their keys; a step for a range of keys finds those that are shared, and a pair's number is
its place among all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.cluster.analysing import blocks_of, terms_of
from klsa_search.cluster.files import mapped, note, noted
from klsa_search.cluster.work import Made
from klsa_search.features.counting import count_block
from klsa_search.store.arrays import ArrayWriter, write_arrays
from klsa_search.store.forward import ranks_of

KEYS: Final = 2**21
"""Keys of pairs that one step looks through for shared ones, about."""

_SAMPLED: Final = 97

_Keys = npt.NDArray[np.int64]


def count(out: Path, piece: Made, vocabulary: Made, number: int, title_weight: int) -> None:
    """Step: count the documents of a piece, by numbers of all terms.

    sizes, columns, counts          entries of each document, their terms, f(t, d)
    key_sizes, keys, key_counts     the same of pairs
    lengths, content                (n,) tokens of each document, and without common terms
    terms, frequencies, occurrences of terms that are there: documents, and how often in all
    pairs, held                     keys of pairs that are there, ascending, and documents
    Memory: 24 bytes a word of a block, 16 a pair, 12 a term of all.
    """
    V = terms_of(vocabulary)
    common = mapped(vocabulary, "common")
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
            found = count_block(block, paired, title_weight)
            for name, writer in writers.items():
                writer.append(getattr(found, name))
            frequencies += np.bincount(found.columns, minlength=V)
            occurrences += np.bincount(found.columns, found.counts, minlength=V).astype(np.int64)
            lengths.append(_sums(found.sizes, found.counts))
            content.append(_sums(found.sizes, found.counts * paired[found.columns]))
    there = np.flatnonzero(frequencies)
    pairs, held = np.unique(mapped(out, "keys"), return_counts=True)
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
    note(out, entries=int(frequencies.sum()), documents=sum(map(len, lengths)))


def sum_up(out: Path, pieces: Sequence[Made], vocabulary: Made) -> None:
    """Step: what the pieces know of all documents together.

    frequencies, occurrences  (V,) of terms
    forward_ranks             (V,) as of the forward index
    limits                    of ranges of keys, of some `KEYS` in all pieces, each a multiple of V
    facts                     documents, entries, tokens in all, and without common terms
    """
    V = terms_of(vocabulary)
    frequencies, occurrences = np.zeros(V, np.int64), np.zeros(V, np.int64)
    facts = {"documents": 0, "entries": 0, "length": 0, "content": 0}
    keys, sample = 0, [np.zeros(0, np.int64)]
    for piece in pieces:
        there = mapped(piece, "terms")
        frequencies[there] += mapped(piece, "frequencies")
        occurrences[there] += mapped(piece, "occurrences")
        own = noted(piece)
        facts["documents"] += own["documents"]
        facts["entries"] += own["entries"]
        facts["length"] += int(mapped(piece, "lengths").sum())
        facts["content"] += int(mapped(piece, "content").sum())
        pairs = mapped(piece, "pairs")
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
    note(out, **facts)


def share(out: Path, pieces: Sequence[Made], low: int, high: int) -> None:
    """Step: find the pairs with keys from `low` to below `high` that two documents hold.

    keys  (p,) ascending
    held  (p,) documents that hold each
    Memory: 40 bytes a key of the pieces.
    """
    keys, held = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for piece in pieces:
        own = within(piece, low, high)
        keys.append(mapped(piece, "pairs")[own])
        held.append(mapped(piece, "held")[own])
    different, places = np.unique(np.concatenate(keys), return_inverse=True)
    sums = np.bincount(places, np.concatenate(held), minlength=len(different)).astype(np.int64)
    shared = sums > 1
    write_arrays(out, {"keys": different[shared], "held": sums[shared]})
    note(out, pairs=int(np.count_nonzero(shared)))


def within(piece: Made, low: int, high: int) -> slice:
    """Where the pairs of a piece with keys from `low` to below `high` are."""
    first, last = np.searchsorted(mapped(piece, "pairs"), (low, high))
    return slice(int(first), int(last))


def _sums(sizes: npt.NDArray[np.int32], counts: npt.NDArray[np.int32]) -> _Keys:
    """Sum of the counts of each document: (n,)."""
    sums = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))
    ends = np.cumsum(sizes, dtype=np.int64)
    return np.asarray(sums[ends] - sums[ends - sizes])
