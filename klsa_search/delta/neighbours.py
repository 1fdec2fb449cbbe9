"""Nearest neighbours of new documents among all earlier ones.

As in `kernels.candidates` partial sums choose it; but by single terms alone, over the postings of the
query kernel, which are there anyway. A term of a document adds

    S φ(d)_t · w(t)^p · saturation(t,x),  in the end times S(x) · K(x,x)^-¼

to every x that holds it. The heaviest terms are asked first, and those with more postings in the
epoch than are left to be asked are passed over, among later documents too: what is found hangs on
the epoch and the documents before, not on how they are kept. Most later documents stand in an
inverted file, the last of them in chains: to append one takes no time.

    link_up(...), invert(...): make what `Later` holds;  add_up(...), choose(...)

Those of a pool of candidates: see `candidates`. Sums over features are whole numbers, and the rest
is as the query engine has it, so an entry is the same bits wherever it is computed.

    search_rows(begin, end, ...) finds those of documents begin..end
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled, inlined
from klsa_search.core.selection import LOW, GrowableArray, select_largest, sort_ascending
from klsa_search.delta.statistics import BuildStatistics
from klsa_search.kernels import bm25
from klsa_search.kernels.nearest_neighbours import FILTER
from klsa_search.kernels.postings import UNIT
from klsa_search.lowrank.sparse_expansion import DOCUMENT_SCALARS, LEVELS

CHAINED: Final = 512
"""Documents that stand in chains at most."""


class KnownDocuments:
    """Arrays over all documents that came later, each appended to; and 12 bytes per term."""

    def __init__(self, epoch: BuildStatistics) -> None:
        self._epoch = epoch
        self._starts = GrowableArray(np.int64)
        self._starts.extend(np.zeros(1, np.int64))
        self._features = GrowableArray(np.uint32)
        self._facts = GrowableArray(np.float32, DOCUMENT_SCALARS)
        self._boosts = GrowableArray(np.float32)
        self._weakest = GrowableArray(np.float32)
        self._term_starts = GrowableArray(np.int64)
        self._term_starts.extend(np.zeros(1, np.int64))
        self._terms = GrowableArray(np.int32)
        self._shares = GrowableArray(np.uint16)
        self._inverted = 0  # documents in the inverted file
        self._invert()

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self._boosts)

    @property
    def held(self) -> Held:
        """The documents as the kernel compares them."""
        return Held(self._starts.rows, self._features.rows, self._facts.rows, self._boosts.rows)

    @property
    def linked(self) -> int:
        """How many documents are found by their terms."""
        return len(self._term_starts) - 1

    @property
    def later(self) -> Later:
        """The documents that are found by their terms."""
        return Later(*self._file, self._heads, self._links.rows)

    def append(
        self,
        starts: npt.NDArray[np.int64],
        features: npt.NDArray[np.uint32],
        cards: npt.NDArray[np.int8],
        diagonals: npt.NDArray[np.float32],
    ) -> None:
        """Append documents as the kernel compares them."""
        facts = cards.view(np.float32)[:, -DOCUMENT_SCALARS:]
        self._starts.extend(starts[1:] + len(self._features))
        self._features.extend(features)
        self._facts.extend(facts)
        self._boosts.extend(boosts(facts, diagonals))

    def link(
        self,
        starts: npt.NDArray[np.int64],
        terms: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int32],
    ) -> None:
        """Link the next documents up, given their counts and their lengths."""
        if self.linked + len(lengths) - self._inverted > CHAINED:
            self._invert()
        settings, first = self._epoch.settings, self.linked
        norms = bm25.norms(lengths, self._epoch.standing, k1=settings.k1, b=settings.b)
        sums = np.repeat(norms, np.diff(starts)) + counts
        shares = np.clip(np.rint(UNIT * (counts / sums)), 1, UNIT - 1).astype(np.uint16)
        self._term_starts.extend(starts[1:] - starts[0] + len(self._terms))
        self._terms.extend(terms)
        self._shares.extend(shares)
        links = np.empty((len(terms), 3), np.uint32)
        link_up(starts - starts[0], terms, shares, first, len(self._links), self._heads, links)
        self._links.extend(links)

    def _invert(self) -> None:
        """Make the inverted file of all documents; the chains are empty then. Cost O(V + nnz)."""
        size, terms = len(self._terms), self._epoch.terms
        since = np.zeros(terms + 1, np.int64)
        documents, shares = np.empty(size, np.int32), np.empty(size, np.uint16)
        invert(
            self._term_starts.rows, self._terms.rows, self._shares.rows, since, documents, shares
        )  # fmt: skip
        self._file = since, documents, shares
        self._heads = np.zeros(terms, np.int32)
        self._links = GrowableArray(np.uint32, 3)
        self._links.extend(np.zeros((1, 3), np.uint32))  # which is none
        self._inverted = self.linked

    def append_rows(self, rows: npt.NDArray[np.uint32], scales: npt.NDArray[np.float32]) -> None:
        """Append how strong the weakest entry of each row is."""
        self._weakest.extend(weakest(rows, scales))

    def weakest(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The weakest entry of the rows of documents, old and new; 0 where there is room."""
        cut, first = self._epoch.cut, self._epoch.first
        found = np.empty(len(positions), np.float32)
        old = positions < first
        found[old] = weakest(cut.rows[positions[old]], cut.scales[positions[old]])
        found[~old] = self._weakest.rows[positions[~old] - first]
        return found


def boosts(
    facts: npt.NDArray[np.float32], diagonals: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """S · K(x,x)^-¼: (n,); without it long documents crowd every pool."""
    lengths = np.where(diagonals > 0, diagonals, 1)
    return np.where(diagonals > 0, facts[:, 1] / np.sqrt(np.sqrt(lengths)), 0).astype(np.float32)


def weakest(
    rows: npt.NDArray[np.uint32], scales: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """The last entry of each row: (n,); 0 where it has fewer than there is room for."""
    return (rows[:, -1] & np.uint32(LEVELS)).astype(np.float32) * scales[:, 0]


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


POSTINGS: Final = 60_000
"""Postings of the epoch that are added for a document."""

POOL: Final = 500
"""Documents whose K is computed.

With both the entries that are found have .995 of the sum of those that 2,000 documents and all
postings would give, among 300,000 documents; with twice the postings .997, for a third more time.
"""


class Held(NamedTuple):
    """Documents as the kernel compares them.

    starts    (n + 1,)
    features  packed
    facts     (n, 3) step, S and SΦμ
    boosts    (n,) S · K(x,x)^-¼
    """

    starts: npt.NDArray[np.int64]
    features: npt.NDArray[np.uint32]
    facts: npt.NDArray[np.float32]
    boosts: npt.NDArray[np.float32]


class Scratch(NamedTuple):
    """Memory of one thread; `wide` is all 0 between documents, and so are sums and `asked`."""

    sums: npt.NDArray[np.float32]
    touched: npt.NDArray[np.int32]
    order: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    wide: npt.NDArray[np.uint8]
    asked: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, positions: int, features: int, longest: int) -> Scratch:
        """Make it for so many positions and features, and terms of one document."""
        return cls(
            np.zeros(positions, np.float32),
            np.zeros(positions + 1, np.int32),
            np.zeros(max(longest, 1), np.int64),
            np.zeros(4 * POOL, np.int64),
            np.zeros(features, np.uint8),
            np.zeros(FILTER, np.bool_),
        )


@compiled
def search_rows(
    begin: int, end: int, offset: int, asking: Any, postings: Any, later: Any, old: Any, new: Any,
    first: int, mean_square: Any, limits: Any, scratch: Any, values: Any, found: Any,
) -> None:  # fmt: skip
    """Find the strongest entries of new documents begin..end, those numbered less than each.

    offset       number of the first of `asking`
    postings     starts, entries, run_starts, runs, bits
    first        position of new document 0
    limits       postings and pool
    values       (n, entries) float32, strongest first, then 0; their positions in `found`
    """
    sums, touched, order, keys, wide, asked = scratch
    one = np.zeros(1, np.float32)
    bits = one.view(np.int32)
    for d in range(begin, end):
        touches = add_up(d, offset, asking, postings, later, first, limits[0], sums, touched, order)
        held = choose(touches, old, new, first, limits[1], sums, touched, keys, one, bits)
        size = _entries(d, keys, held, old, new, first, mean_square, wide, asked, one, bits)
        row = d - offset
        width = min(size, values.shape[1])
        if size > width:
            select_largest(keys, size, width)
        sort_ascending(keys, 0, width)
        for i in range(width):
            key = keys[width - 1 - i]
            bits[0] = key >> 32
            values[row, i] = one[0]
            found[row, i] = LOW - (key & LOW)


@compiled
def _entries(
    d: int, keys: Any, held: int, old: Any, new: Any, first: int, mean_square: Any,
    wide: Any, asked: Any, one: Any, bits: Any,
) -> int:  # fmt: skip
    """Turn keys of the pool into those of the positive entries of row d; returns how many."""
    old_starts, old_features, old_facts, _ = old
    new_starts, new_features, new_facts, _ = new
    mask = np.uint32(FILTER - 1)
    level = np.uint32(LEVELS)
    for p in range(new_starts[d], new_starts[d + 1]):
        feature = new_features[p] >> np.uint32(8)
        wide[feature] = new_features[p] & level
        asked[feature & mask] = True
    step, scale, towards = new_facts[d, 0], new_facts[d, 1], new_facts[d, 2]
    size = 0
    for i in range(held):
        x = LOW - (keys[i] & LOW)
        if x < first:
            total = _product(old_starts[x], old_starts[x + 1], old_features, wide, asked)
            own_step, own_scale, own_towards = old_facts[x, 0], old_facts[x, 1], old_facts[x, 2]
        else:
            j = x - first
            total = _product(new_starts[j], new_starts[j + 1], new_features, wide, asked)
            own_step, own_scale, own_towards = new_facts[j, 0], new_facts[j, 1], new_facts[j, 2]
        value = np.float64(step) * own_step * total
        value -= np.float64(towards) * own_scale
        value -= np.float64(scale) * (own_towards - own_scale * mean_square)
        one[0] = value
        if one[0] > 0:
            keys[size] = (np.int64(bits[0]) << 32) | (LOW - x)
            size += 1
    for p in range(new_starts[d], new_starts[d + 1]):
        feature = new_features[p] >> np.uint32(8)
        wide[feature] = 0
        asked[feature & mask] = False
    return size


@compiled
def _product(begin: int, end: int, features: Any, wide: Any, asked: Any) -> Any:
    """Sum of products of levels, a whole number."""
    mask = np.uint32(FILTER - 1)
    total: Any = 0
    for p in range(begin, end):
        feature = features[p] >> np.uint32(8)
        if asked[feature & mask]:
            total += np.int64(wide[feature]) * np.int64(features[p] & np.uint32(LEVELS))
    return total
