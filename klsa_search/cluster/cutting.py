"""Cutting: what of a collection is a shard, a piece, a range of terms."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from klsa_search.cluster.files import mapped
from klsa_search.cluster.source import MOST
from klsa_search.cluster.work import Made
from klsa_search.spectrum.slices import ROWS
from klsa_search.store.documents import STARTS

PIECE: Final = 2**24
"""Bytes of records that one step analyses and counts, about, unless there are too many."""

Cut = list[list[tuple[int, int]]]
"""Of each shard its pieces: their first document, and that after the last."""


def cut_records(records: Made, documents: int, shards: int) -> Cut:
    """Cut all documents into shards, and each of them into pieces.

    All shards but the last have a multiple of `ROWS` documents; there is at least one.
    """
    starts = mapped(records, STARTS)
    size = max(PIECE, -(-int(starts[-1]) // MOST))
    slices = -(-documents // ROWS)
    edges = sorted({min(ROWS * (slices * i // shards), documents) for i in range(1, shards)})
    edges = [0, *(edge for edge in edges if 0 < edge < documents), documents]
    cut = []
    for first, last in pairwise(edges):
        number = max(1, -(-int(starts[last] - starts[first]) // size))
        inner = starts[first] + (starts[last] - starts[first]) * np.arange(1, number) // number
        places = {*np.searchsorted(starts[first:last], inner).tolist()} - {0, last - first}
        bounds = [first, *(first + place for place in sorted(places)), last]
        cut.append(list(pairwise(bounds)))
    return cut


def cut_terms(sums: Made, number: int) -> list[tuple[int, int]]:
    """Cut all terms into ranges of about as many postings."""
    ends = np.cumsum(mapped(sums, "frequencies"))
    if not len(ends):
        return [(0, 0)]
    edges = np.searchsorted(ends, int(ends[-1]) * np.arange(1, number) // number) + 1
    bounds = [0, *sorted({*edges.tolist()} - {0, len(ends)}), len(ends)]
    return list(pairwise(bounds))
