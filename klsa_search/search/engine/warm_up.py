"""Compile what searching needs, without an index."""

from __future__ import annotations

import numpy as np

from klsa_search.kernels.postings import DEPTHS, Postings
from klsa_search.kernels.query_kernel import QueryKernel


def compile_search() -> None:
    """Compile what a query to an index of one document needs, with read-only arrays."""
    kernel = _kernel()
    kernel.steps(np.zeros(1, np.int64), np.ones(1, np.float32))


def _kernel() -> QueryKernel:
    """Return the query kernel of an index of one document with one word."""
    postings = Postings(
        1.2,
        np.array([1, 16]),
        np.array([0, 1]),
        np.array([1], np.uint32),
        np.array([0, 1]),
        np.array([[0, 0, 1]], np.uint16),
        np.ones((1, len(DEPTHS)), np.uint16),
        np.array([1]),
    )
    for array in (postings.starts, postings.entries, postings.run_starts, postings.runs):
        array.flags.writeable = False
    return QueryKernel.of(postings)
