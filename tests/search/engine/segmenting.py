"""Division of postings and sparse expansions into segments."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import sparse

from klsa_search.kernels.postings import UNIT, Postings, Segment, Segments
from klsa_search.lowrank.sparse_expansion import SegmentedExpansion


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
    """Segments of the documents between the cuts.

    counts  (N, V) sparse, what the postings were made of
    Every segment after the first has only the terms it holds, numbered in an order of its own.
    """
    matrix, rng = matrix_of(postings), np.random.default_rng(seed)
    bounds = [0, *sorted(cuts), postings.size]
    parts = []
    for first, after in pairwise(bounds):
        rows = matrix[first:after]
        occurrences = np.asarray(counts[first:after].sum(axis=0)).ravel().astype(np.int64)
        if parts:
            held = rng.permutation(np.unique(rows.indices))
            own = Postings.of(
                rows[:, held], np.ones(after - first), postings.k1, block_bits=block_bits
            )
            own = replace(own, occurrences=occurrences[held])
            parts.append(Segment.of(first, own, held))
        else:
            own = Postings.of(rows, np.ones(after - first), postings.k1, block_bits=block_bits)
            parts.append(Segment(first, replace(own, occurrences=occurrences)))
    return Segments(parts, len(postings.frequencies))


def expansion_cut_into(expansion: SegmentedExpansion, cuts):
    """The same expansion in segments of the documents between the cuts."""
    (joined,) = expansion.segments
    segments = []
    for first, after in pairwise([0, *sorted(cuts), len(joined.rows)]):
        documents = slice(first, after)
        starts = joined.starts[first : after + 1]
        segments.append(
            replace(
                joined,
                rows=joined.rows[documents],
                scales=joined.scales[documents],
                starts=starts - starts[0],
                features=joined.features[starts[0] : starts[-1]],
                document_vectors=joined.document_vectors[documents],
            )
        )
    return SegmentedExpansion(segments)
