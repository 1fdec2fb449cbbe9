"""Candidates for the strong entries of a new document's row of K: its pool.

As in `kernel.pool` partial sums choose it; but by single terms alone, over the postings of the
query kernel, which are there anyway. A term of a document adds

    S φ(d)_t · w(t)^p · saturation(t,x),  in the end times S(x) · K(x,x)^-¼

to every x that holds it. The heaviest terms are asked first, and those with more postings in the
epoch than are left to be asked are passed over, among later documents too: what is found hangs on
the epoch and the documents before, not on how they are kept. Most later documents stand in an
inverted file, the last of them in chains: to append one takes no time.

    link_up(...), invert(...): make what `Later` holds;  add_up(...), choose(...)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.compiling import compiled, inlined
from klsa_search.selection import LOW, select_largest, sort_ascending


class Asked(NamedTuple):
    """Terms of new documents that ask for a pool: where each document's begin, terms, weights."""

    starts: npt.NDArray[np.int64]
    terms: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


class Later(NamedTuple):
    """The later documents that hold a term: an inverted file, and chains.

    starts      (V + 1,) where the documents of each term begin
    documents   int32, their numbers
    shares      uint16, saturations
    heads       (V,) the last link of each term, 0 for none
    links       (L, 3) uint32: the link before, the number of the document, its saturation
    """

    starts: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    shares: npt.NDArray[np.uint16]

    heads: npt.NDArray[np.int32]
    links: npt.NDArray[np.uint32]


@compiled
def link_up(
    starts: Any, terms: Any, shares: Any, first: int, link: int, heads: Any, links: Any
) -> None:
    """Write the links of documents, numbered from `first`; theirs are numbered from `link`."""
    for d in range(len(starts) - 1):
        for p in range(starts[d], starts[d + 1]):
            links[p, 0] = heads[terms[p]]
            links[p, 1] = first + d
            links[p, 2] = shares[p]
            heads[terms[p]] = link + p


@compiled
def invert(starts: Any, terms: Any, shares: Any, since: Any, documents: Any, values: Any) -> None:
    """Write the inverted file of all documents; `since` is (V + 1,) zeros at first."""
    for p in range(starts[len(starts) - 1]):
        since[terms[p] + 1] += 1
    for term in range(len(since) - 1):
        since[term + 1] += since[term]
    for d in range(len(starts) - 1):
        for p in range(starts[d], starts[d + 1]):
            place = since[terms[p]]
            documents[place], values[place] = d, shares[p]
            since[terms[p]] = place + 1
    for term in range(len(since) - 1, 0, -1):
        since[term] = since[term - 1]
    since[0] = 0


@compiled
def add_up(
    d: int, offset: int, asking: Any, postings: Any, later: Any, first: int, left: int,
    sums: Any, touched: Any, order: Any,
) -> int:  # fmt: skip
    """Add up what the terms of a document say, heaviest first; returns how many are touched."""
    starts, terms, weights = asking
    places, entries, run_starts, runs, block_bits = postings
    since, documents, shares, heads, links = later
    weight_bits = weights.view(np.int32)
    begin, size = starts[d - offset], starts[d - offset + 1] - starts[d - offset]
    for i in range(size):
        order[i] = (np.int64(weight_bits[begin + i]) << 32) | (LOW - i)
    sort_ascending(order, 0, size)
    touches = 0
    for i in range(size - 1, -1, -1):
        at = begin + LOW - (order[i] & LOW)
        term, weight = terms[at], weights[at]
        place, stop = places[term], places[term + 1]
        if stop - place > left:
            continue
        left -= stop - place
        for run in range(run_starts[term], run_starts[term + 1]):
            base = np.int64(runs[run, 0]) << block_bits
            after = place + np.int64(runs[run, 1]) + 1
            for p in range(place, after):
                x = base + np.int64(entries[p] >> np.uint32(16))
                share = entries[p] & np.uint32(0xFFFF)
                touches = _add(x, weight * np.float32(share), sums, touched, touches)
            place = after
        for p in range(since[term], since[term + 1]):
            share = np.float32(shares[p])
            touches = _add(first + documents[p], weight * share, sums, touched, touches)
        link = np.int64(heads[term])
        while link > 0:
            x = np.int64(links[link, 1])
            if x < d:
                share = np.float32(links[link, 2])
                touches = _add(first + x, weight * share, sums, touched, touches)
            link = np.int64(links[link, 0])
    return touches


@inlined
def _add(x: Any, value: Any, sums: Any, touched: Any, touches: Any) -> Any:
    before = sums[x]
    touched[touches] = x
    sums[x] = before + value
    return touches + (before == 0)


@compiled
def choose(
    touches: int, old: Any, new: Any, first: int, pool: int, sums: Any, touched: Any, keys: Any,
    one: Any, bits: Any,
) -> int:  # fmt: skip
    """Put the keys of the pool to the front; returns how many there are."""
    of_old, of_new = old[3], new[3]
    held, room = 0, 4 * pool
    least = np.int64(0)
    for i in range(touches):
        x = np.int64(touched[i])
        boost = of_old[x] if x < first else of_new[x - first]
        one[0] = sums[x] * boost
        sums[x] = 0
        key = (np.int64(bits[0]) << 32) | (LOW - x)
        if key > least:
            keys[held] = key
            held += 1
            if held == room:
                select_largest(keys, held, pool)
                held = pool
                least = keys[pool - 1]
    if held > pool:
        select_largest(keys, held, pool)
        held = pool
    return held
