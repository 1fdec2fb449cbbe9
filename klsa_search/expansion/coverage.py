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
_BLOCK = 16  # terms at a time: 4 · 16 · N bytes, however long the query


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
    Cost O(e · n + N · n) for the e edges of the documents that hold a term of the query.
    """
    covered = np.zeros(postings.size, dtype=np.float32)
    for begin in range(0, len(terms), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        worth = query_weights[block] * idf[terms[block]]
        covered += _covered(postings, neighbours, terms[block], worth, idf)
    return covered


def _covered(
    postings: Postings,
    neighbours: sparse.csr_array,
    terms: npt.NDArray[np.int64],
    worth: npt.NDArray[np.float32],
    idf: npt.NDArray[np.float32],
) -> Scores:
    held = np.zeros((postings.size, len(terms)), dtype=np.float32)
    holds = np.zeros(postings.size, dtype=bool)
    for column, term in enumerate(terms.tolist()):
        entries = slice(postings.starts[term], postings.starts[term + 1])
        documents = postings.documents[entries]
        held[documents, column] = postings.weights[entries]
        holds[documents] = True
    holders = np.flatnonzero(holds)
    # W is symmetric: its columns are its rows, turned over.
    together = held + np.float32(NEIGHBOURHOOD) * (neighbours[holders].T @ held[holders])
    shares = together / (together + np.float32(HALF) * idf[terms])
    return np.asarray(np.einsum("nt,t->n", shares, worth))
