"""Coverage: how much of the query a document and its nearest neighbours hold together.

    T(d) = Σ_t f(t,q) · w(t) · g(sat(t,d) + β Σ_n W(d,n) · sat(t,n)),   g(y) = y / (y + 2)

A document that misses a word its neighbours use is given part of it, term by term; g grows ever
slower, so that covering many terms counts more than one term held by all the neighbours.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from klsa_search.arrays import Scores
from klsa_search.kernel import Postings

NEIGHBOURHOOD = 4.0  # β
HALF = 2.0  # saturation at which g is one half


def coverage(
    postings: Postings,
    neighbours: sparse.csr_array,
    terms: npt.NDArray[np.int64],
    query_weights: npt.NDArray[np.float32],
    idf: npt.NDArray[np.float32],
) -> Scores:
    """T: (N,) float32, not negative.

    postings       of the BM25 query kernel: w(t) · sat(t,d)
    neighbours     W: (N, N), symmetric
    terms          (n,) term numbers of the query, ascending
    query_weights  (n,) f(t, q)
    idf            (V,) w(t)
    Cost: the postings of the terms, times the edges of a document.
    """
    starts, ends = postings.starts[terms], postings.starts[terms + 1]
    held = np.concatenate([np.arange(0), *map(np.arange, starts, ends)])
    impacts = sparse.csr_array(
        (
            postings.weights[held],
            postings.documents[held],
            np.concatenate(([0], np.cumsum(ends - starts))),
        ),
        shape=(len(terms), postings.size),
    )
    together = sparse.csr_array(impacts + np.float32(NEIGHBOURHOOD) * (impacts @ neighbours))
    sizes = np.diff(together.indptr)
    halves = np.repeat(np.float32(HALF) * idf[terms], sizes)
    worth = np.repeat(query_weights * idf[terms], sizes)
    parts = worth * together.data / (together.data + halves)
    covered = np.bincount(together.indices, weights=parts, minlength=postings.size)
    return covered.astype(np.float32)
