"""Nearest neighbours of new documents among all earlier documents.

As in `kernels.candidates`, partial sums select the candidates; here over single terms and the
postings of the query kernel. A term t of document d adds

    S φ(d)_t · w(t)^p · saturation(t,x)

to every document x that contains it, and the sum is multiplied by S(x) · K(x,x)^-¼. Terms are
processed by descending weight. At most a fixed number of postings of the build is read for a
document; a term with more postings than are left of it is skipped, and its postings in later
documents are not read either. So the result depends on the build and
the documents before, not on segments. Most later documents are in an inverted file and the last
ones in linked lists, which makes an append O(1).

K is then computed exactly for the candidates. Sums over features are integers, and the rest is
computed as in the query engine, so an entry has the same bits wherever it is computed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.core.compiling import compiled, inlined
from klsa_search.core.growable_array import GrowableArray
from klsa_search.core.selection import LOW, select_largest, sort_ascending
from klsa_search.delta.statistics import BuildStatistics
from klsa_search.kernels import bm25
from klsa_search.kernels.postings import UNIT
from klsa_search.lowrank.sparse_expansion import DOCUMENT_SCALARS, LEVELS

FILTER: Final = 1 << 14
"""Bytes of the filter that saves lookups; fits the L1 cache."""

MAX_CHAINED: Final = 512
"""Limit of documents in linked lists."""


class KnownDocuments:
    """Appendable arrays over all later documents, and 12 bytes a term."""

    def __init__(self, statistics: BuildStatistics) -> None:
        self._statistics = statistics
        self._starts = GrowableArray(np.int64)
        self._starts.extend(np.zeros(1, np.int64))
        self._features = GrowableArray(np.uint32)
        self._scalars = GrowableArray(np.float32, DOCUMENT_SCALARS)
        self._boosts = GrowableArray(np.float32)
        self._weakest = GrowableArray(np.float32)
        self._term_starts = GrowableArray(np.int64)
        self._term_starts.extend(np.zeros(1, np.int64))
        self._terms = GrowableArray(np.int32)
        self._shares = GrowableArray(np.uint16)
        self._inverted = 0  # documents in the inverted file
        self._invert()

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._boosts)

    @property
    def arrays(self) -> DocumentArrays:
        """Return the documents as arrays of the kernel."""
        return DocumentArrays(
            self._starts.rows, self._features.rows, self._scalars.rows, self._boosts.rows
        )

    @property
    def indexed(self) -> int:
        """Return the number of documents whose terms are indexed."""
        return len(self._term_starts) - 1

    @property
    def postings(self) -> DeltaPostings:
        """Return the postings of the later documents."""
        return DeltaPostings(*self._file, self._heads, self._links.rows)

    def append(
        self,
        starts: npt.NDArray[np.int64],
        features: npt.NDArray[np.uint32],
        vectors: npt.NDArray[np.int8],
        diagonals: npt.NDArray[np.float32],
    ) -> None:
        """Append documents as arrays of the kernel."""
        scalars = vectors.view(np.float32)[:, -DOCUMENT_SCALARS:]
        self._starts.extend(starts[1:] + len(self._features))
        self._features.extend(features)
        self._scalars.extend(scalars)
        self._boosts.extend(boosts(scalars, diagonals))

    def index(
        self,
        starts: npt.NDArray[np.int64],
        terms: npt.NDArray[np.int32],
        counts: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int32],
    ) -> None:
        """Index the terms of the next documents: counts by terms, and lengths."""
        if self.indexed + len(lengths) - self._inverted > MAX_CHAINED:
            self._invert()
        settings, first = self._statistics.settings, self.indexed
        norms = bm25.norms(lengths, self._statistics.quantised_length, k1=settings.k1, b=settings.b)
        sums = np.repeat(norms, np.diff(starts)) + counts
        shares = np.clip(np.rint(UNIT * (counts / sums)), 1, UNIT - 1).astype(np.uint16)
        self._term_starts.extend(starts[1:] - starts[0] + len(self._terms))
        self._terms.extend(terms)
        self._shares.extend(shares)
        links = np.empty((len(terms), 3), np.uint32)
        append_links(starts - starts[0], terms, shares, first, len(self._links), self._heads, links)
        self._links.extend(links)

    def _invert(self) -> None:
        """Rebuild the inverted file of all documents, with empty lists. Cost: O(V + nnz)."""
        size, terms = len(self._terms), self._statistics.terms
        since = np.zeros(terms + 1, np.int64)
        documents, shares = np.empty(size, np.int32), np.empty(size, np.uint16)
        invert(
            self._term_starts.rows, self._terms.rows, self._shares.rows, since, documents, shares
        )  # fmt: skip
        self._file = since, documents, shares
        self._heads = np.zeros(terms, np.int32)
        self._links = GrowableArray(np.uint32, 3)
        self._links.extend(np.zeros((1, 3), np.uint32))  # 0 ends a list
        self._inverted = self.indexed

    def append_rows(self, rows: npt.NDArray[np.uint32], scales: npt.NDArray[np.float32]) -> None:
        """Append the weakest entry of each row."""
        self._weakest.extend(weakest(rows, scales))

    def weakest(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return the weakest entry of rows of doc ids; 0 if a row is not full."""
        expansion, first = self._statistics.expansion, self._statistics.first
        values = np.empty(len(positions), np.float32)
        old = positions < first
        values[old] = weakest(expansion.rows[positions[old]], expansion.scales[positions[old]])
        values[~old] = self._weakest.rows[positions[~old] - first]
        return values


def boosts(
    scalars: npt.NDArray[np.float32], diagonals: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return S · K(x,x)^-¼: (n,); without it long documents dominate the candidates."""
    lengths = np.where(diagonals > 0, diagonals, 1)
    return np.where(diagonals > 0, scalars[:, 1] / np.sqrt(np.sqrt(lengths)), 0).astype(np.float32)


def weakest(
    rows: npt.NDArray[np.uint32], scales: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return the last entry of each row: (n,); 0 if the row is not full."""
    return (rows[:, -1] & np.uint32(LEVELS)).astype(np.float32) * scales[:, 0]


class CandidateTerms(NamedTuple):
    """Terms of new documents that select candidates: starts, terms and weights, as in CSR."""

    starts: npt.NDArray[np.int64]
    terms: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]


class DeltaPostings(NamedTuple):
    """Postings of later documents: an inverted file and linked lists.

    starts      (V + 1,) start of the documents of each term
    documents   int32, their numbers
    shares      uint16, saturations
    heads       (V,) the last link of each term, 0 for none
    links       (L, 3) uint32: previous link, number of the document, its saturation
    """

    starts: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int32]
    shares: npt.NDArray[np.uint16]

    heads: npt.NDArray[np.int32]
    links: npt.NDArray[np.uint32]


@compiled
def append_links(
    starts: Any, terms: Any, shares: Any, first: int, link: int, heads: Any, links: Any
) -> None:
    """Write the links of documents, numbered from `first`; the links are numbered from `link`."""
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
def accumulate(
    d: int, offset: int, query: Any, postings: Any, later: Any, first: int, left: int,
    sums: Any, touched: Any, order: Any,
) -> int:  # fmt: skip
    """Accumulate partial sums of document d, heaviest terms first; return how many are non-zero."""
    starts, terms, weights = query
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
    return touches + ((before == 0) & (sums[x] > 0))  # a weight may be 0


@compiled
def select_candidates(
    touches: int, old: Any, new: Any, first: int, candidates: int, sums: Any, touched: Any,
    keys: Any, one: Any, bits: Any,
) -> int:  # fmt: skip
    """Move the keys of the best candidates to the front; return how many there are."""
    old_boosts, new_boosts = old[3], new[3]
    count, capacity = 0, 4 * candidates
    least = np.int64(0)
    for i in range(touches):
        x = np.int64(touched[i])
        boost = old_boosts[x] if x < first else new_boosts[x - first]
        one[0] = sums[x] * boost
        sums[x] = 0
        key = (np.int64(bits[0]) << 32) | (LOW - x)
        if key > least:
            keys[count] = key
            count += 1
            if count == capacity:
                select_largest(keys, count, candidates)
                count = candidates
                least = keys[candidates - 1]
    if count > candidates:
        select_largest(keys, count, candidates)
        count = candidates
    return count


MAX_POSTINGS: Final = 60_000
"""Budget of postings of the build for one document."""

CANDIDATES: Final = 500
"""Candidates for which K is computed.

With both limits, the entries found have 0.995 of the sum of those from 2,000 candidates and all
postings, among 300,000 documents; with twice the postings 0.997, for a third more time.
"""


class DocumentArrays(NamedTuple):
    """Documents as arrays of the kernel.

    starts    (n + 1,)
    features  packed
    scalars   (n, 3) step, S and SΦμ
    boosts    (n,) S · K(x,x)^-¼
    """

    starts: npt.NDArray[np.int64]
    features: npt.NDArray[np.uint32]
    scalars: npt.NDArray[np.float32]
    boosts: npt.NDArray[np.float32]


class Workspace(NamedTuple):
    """Buffers of one thread; `sums`, `dense` and `present` are all 0 between documents."""

    sums: npt.NDArray[np.float32]
    touched: npt.NDArray[np.int32]
    order: npt.NDArray[np.int64]
    keys: npt.NDArray[np.int64]
    dense: npt.NDArray[np.uint8]
    present: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, doc_ids: int, features: int, longest: int) -> Workspace:
        """Allocate buffers for a number of doc ids, features, and terms of one document."""
        return cls(
            np.zeros(doc_ids, np.float32),
            np.zeros(doc_ids + 1, np.int32),
            np.zeros(max(longest, 1), np.int64),
            np.zeros(4 * CANDIDATES, np.int64),
            np.zeros(features, np.uint8),
            np.zeros(FILTER, np.bool_),
        )


@compiled
def search_rows(
    begin: int, end: int, offset: int, query: Any, postings: Any, later: Any, old: Any, new: Any,
    first: int, mean_square: Any, limits: Any, workspace: Any, values: Any, neighbours: Any,
) -> None:  # fmt: skip
    """Find the strongest entries of new documents begin..end among all documents before each.

    offset       number of the first document of `query`
    postings     starts, entries, run_starts, runs, bits
    first        doc id of new document 0
    limits       budget of postings, number of candidates
    values       (n, entries) float32, strongest first, then 0; their doc ids in `neighbours`
    """
    sums, touched, order, keys, dense, present = workspace
    one = np.zeros(1, np.float32)
    bits = one.view(np.int32)
    for d in range(begin, end):
        touches = accumulate(
            d, offset, query, postings, later, first, limits[0], sums, touched, order
        )
        count = select_candidates(
            touches, old, new, first, limits[1], sums, touched, keys, one, bits
        )
        size = _entries(d, keys, count, old, new, first, mean_square, dense, present, one, bits)
        row = d - offset
        width = min(size, values.shape[1])
        if size > width:
            select_largest(keys, size, width)
        sort_ascending(keys, 0, width)
        for i in range(width):
            key = keys[width - 1 - i]
            bits[0] = key >> 32
            values[row, i] = one[0]
            neighbours[row, i] = LOW - (key & LOW)


@compiled
def _entries(
    d: int, keys: Any, count: int, old: Any, new: Any, first: int, mean_square: Any,
    dense: Any, present: Any, one: Any, bits: Any,
) -> int:  # fmt: skip
    """Replace candidate keys by keys of the positive entries of row d; return how many."""
    old_starts, old_features, old_scalars, _ = old
    new_starts, new_features, new_scalars, _ = new
    mask = np.uint32(FILTER - 1)
    level = np.uint32(LEVELS)
    for p in range(new_starts[d], new_starts[d + 1]):
        feature = new_features[p] >> np.uint32(8)
        dense[feature] = new_features[p] & level
        present[feature & mask] = True
    step, scale, dot = new_scalars[d, 0], new_scalars[d, 1], new_scalars[d, 2]
    size = 0
    for i in range(count):
        x = LOW - (keys[i] & LOW)
        if x < first:
            total = _product(old_starts[x], old_starts[x + 1], old_features, dense, present)
            own_step, own_scale, own_dot = old_scalars[x, 0], old_scalars[x, 1], old_scalars[x, 2]
        else:
            j = x - first
            total = _product(new_starts[j], new_starts[j + 1], new_features, dense, present)
            own_step, own_scale, own_dot = new_scalars[j, 0], new_scalars[j, 1], new_scalars[j, 2]
        value = np.float64(step) * own_step * total
        value -= np.float64(dot) * own_scale
        value -= np.float64(scale) * (own_dot - own_scale * mean_square)
        one[0] = value
        if one[0] > 0:
            keys[size] = (np.int64(bits[0]) << 32) | (LOW - x)
            size += 1
    for p in range(new_starts[d], new_starts[d + 1]):
        feature = new_features[p] >> np.uint32(8)
        dense[feature] = 0
        present[feature & mask] = False
    return size


@compiled
def _product(begin: int, end: int, features: Any, dense: Any, present: Any) -> Any:
    """Return the sum of products of levels, an integer."""
    mask = np.uint32(FILTER - 1)
    total: Any = 0
    for p in range(begin, end):
        feature = features[p] >> np.uint32(8)
        if present[feature & mask]:
            total += np.int64(dense[feature]) * np.int64(features[p] & np.uint32(LEVELS))
    return total
