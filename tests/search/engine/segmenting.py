"""Division of postings and sparse expansions into segments."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import sparse

from klsa_search.kernels.postings import UNIT, Postings
from klsa_search.kernels.segments import ALIGNED, Segment, Segments
from klsa_search.lowrank.sparse_expansion import SparseExpansion


def matrix_of(postings):
    """What `Postings.of` makes the same postings of, with norms of 1."""
    columns = [postings.of_term(term) for term in range(len(postings.frequencies))]
    matrix = sparse.csr_array(
        (
            np.concatenate([saturations for _, saturations in columns]).astype(np.float64),
            (np.concatenate([documents for documents, _ in columns]),
             np.repeat(np.arange(len(columns)), postings.frequencies)),
        ),
        shape=(postings.size, len(columns)),
    )  # fmt: skip
    matrix.data /= UNIT - matrix.data  # s = f / (1 + f)
    return matrix


def cut_into(postings, counts, cuts, *, block_bits, seed=0):
    """Segments of the documents between the cuts, and the position of each document.

    counts  (N, V) sparse, what the postings were made of
    Every segment after the first has only the terms it holds, numbered in an order of its own.
    """
    matrix, rng = matrix_of(postings), np.random.default_rng(seed)
    bounds = [0, *sorted(cuts), postings.size]
    parts, position, positions = [], 0, []
    for first, after in pairwise(bounds):
        rows = matrix[first:after]
        occurrences = np.asarray(counts[first:after].sum(axis=0)).ravel().astype(np.int64)
        if parts:
            held = rng.permutation(np.unique(rows.indices))
            own = Postings.of(
                rows[:, held], np.ones(after - first), postings.k1, block_bits=block_bits
            )
            own = replace(own, occurrences=occurrences[held])
            parts.append(Segment.of(position, own, held))
        else:
            own = Postings.of(rows, np.ones(after - first), postings.k1, block_bits=block_bits)
            parts.append(Segment(position, replace(own, occurrences=occurrences)))
        positions += range(position, position + after - first)
        position = -(-(position + after - first) // ALIGNED) * ALIGNED
    return Segments(parts, len(postings.frequencies)), np.array(positions, np.int64)


def spread(cut: SparseExpansion, positions, size):
    """The same expansion with its documents at other positions, nothing between them."""

    def at(array):
        spread = np.zeros((size, *array.shape[1:]), array.dtype)
        spread[positions] = array
        return spread

    levels = cut.rows & np.uint32(255)
    documents = np.append(positions, 0)[np.minimum(cut.rows >> np.uint32(8), len(positions))]
    rows = np.where(levels > 0, documents.astype(np.uint32) << np.uint32(8) | levels, 0)
    lengths = at(np.diff(cut.starts))
    return replace(
        cut,
        rows=at(rows.astype(np.uint32)),
        scales=at(cut.scales),
        starts=np.concatenate(([0], np.cumsum(lengths))),
        document_vectors=at(cut.document_vectors),
    )
