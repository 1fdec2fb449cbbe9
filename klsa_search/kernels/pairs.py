"""Pairs of terms in at least two documents, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from klsa_search import _native
from klsa_search.core.parallel import map_in_order
from klsa_search.kernels.spool import Spool, Spools

_INT32 = npt.NDArray[np.int32]
_KEYS = npt.NDArray[np.int64]
CHUNK = 1 << 20  # keys read at a time
SORTED = 1 << 23  # keys sorted at a time


def shared_pairs(keys: Spool) -> _KEYS:
    """Return the keys that occur more than once in the spool, in order.

    The spool has one key per pair and document. Keys are sorted range by range, with ranges from a
    sample, so about 64 MB suffice for any number of keys.
    Cost O(K log K) for K keys, and one pass over the spool per `SORTED` keys.
    """
    pieces = -(-len(keys) // SORTED)
    if pieces <= 1:
        return _repeated(keys.read().copy())
    sample = np.sort(np.concatenate([chunk[::97].copy() for chunk in _chunks(keys)]))
    limits = sample[np.arange(1, pieces) * len(sample) // pieces]
    shared = []
    for piece in range(pieces):
        low = limits[piece - 1] if piece else np.iinfo(np.int64).min
        high = limits[piece] if piece < pieces - 1 else np.iinfo(np.int64).max
        within = [chunk[(chunk >= low) & (chunk < high)] for chunk in _chunks(keys)]
        shared.append(_repeated(np.concatenate(within)))
    return np.concatenate(shared)


def number_pairs(
    shared: _KEYS,
    terms: int,
    sizes: list[_INT32],
    keys: Spool,
    counts: Spool,
    spools: Spools,
    threads: int,
    numbered: Callable[[int], None],
) -> tuple[_INT32, Spool, Spool]:
    """Return the shared pairs of each document as sizes (N,), numbers and counts.

    shared        (P,) keys in order; the number of a pair is its index here
    terms         V
    sizes         for each block of documents, the number of pairs of each document
    keys, counts  of all pairs, document by document, in order within each
    numbered      called with the number of documents done
    """
    starts = np.searchsorted(shared, np.arange(terms + 1, dtype=np.int64) * terms)
    numbers, kept_counts = spools.spool(np.int32), spools.spool(np.int32)
    kept_sizes = [np.zeros(0, np.int32)]
    done = 0

    def blocks() -> Iterator[tuple[_INT32, _KEYS, _INT32]]:
        first = 0
        for size in sizes:
            last = first + int(size.sum())
            yield size, keys.read(first, last), counts.read(first, last)
            first = last

    with ThreadPoolExecutor(threads) as pool:

        def submit(block: tuple[_INT32, _KEYS, _INT32]) -> Future[tuple[_INT32, _INT32, _INT32]]:
            return pool.submit(_native.number_pairs, shared, starts, *block)

        for block_sizes, block_numbers, block_counts in map_in_order(
            submit, blocks(), ahead=threads
        ):
            kept_sizes.append(block_sizes)
            done += len(block_sizes)
            numbered(done)
            numbers.append(block_numbers)
            kept_counts.append(block_counts)
    return np.concatenate(kept_sizes), numbers, kept_counts


def _chunks(keys: Spool) -> Iterator[_KEYS]:
    for first in range(0, len(keys), CHUNK):
        yield keys.read(first, min(first + CHUNK, len(keys)))


def _repeated(keys: _KEYS) -> _KEYS:
    """Sort the keys in place and return those that occur more than once."""
    keys.sort()
    again: _KEYS = keys[1:][keys[1:] == keys[:-1]]
    first = np.ones(len(again), np.bool_)
    first[1:] = again[1:] != again[:-1]
    return np.asarray(again[first])
