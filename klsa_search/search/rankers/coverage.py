"""Coverage: how much of the query a document and its nearest documents contain together.

    T(d) = Σ_t v(t,q) · g(sat(t,d) + β Σ_n W(d,n) · sat(t,n)),   g(y) = y / (y + 1)

with v(t,q) the weight of the term in k_q and sat(t,d) its share of k_q(d) divided by v(t,q). Only
the best documents of the query kernel count, as d and as n. A document without a query word gets
part of it from neighbours that contain it. Since g saturates, covering many terms counts more than
one term in all neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Numbers, Scores, values_at
from klsa_search.kernels.postings import UNIT
from klsa_search.kernels.query_kernel import QueryKernel

if TYPE_CHECKING:
    from scipy import sparse


NEIGHBOURHOOD = 4.0  # β
HALF = 1.0  # saturation at which g is 0.5
POWER = 6  # exponent of the coverage in the weight of a seed
BEST = 300
"""Number of best documents of the query kernel whose terms count.

100 rank nearly as well, all documents slightly worse: most matches of low rank are random.
"""


def impacts_of(
    kernel: QueryKernel, terms: Numbers, query_weights: npt.NDArray[np.float32], documents: DocIds
) -> npt.NDArray[np.float32]:
    """Return the shares of terms in k_q of documents, ascending: (n, terms).

    terms          (t,) term numbers of the query
    query_weights  (t,) f(t, q)
    Cost: a binary search for each document and term.
    """
    impacts = np.zeros((len(documents), len(terms)), dtype=np.float32)
    for column, term in enumerate(terms.tolist()):
        holders = kernel.impacts_of(term, float(query_weights[column]))
        impacts[:, column] = values_at(documents, *holders)
    return impacts


def coverage(
    kernel: QueryKernel,
    neighbours: sparse.csr_array,
    terms: Numbers,
    query_weights: npt.NDArray[np.float32],
    best: tuple[DocIds, npt.NDArray[np.float32]],
) -> Scores:
    """Return T: (N,) float32, not negative.

    kernel         the query kernel
    neighbours     W: (N, M), rows of sum 1; columns from N on are documents of other partitions
    terms          (n,) term numbers of the query
    query_weights  (n,) f(t, q)
    best           columns of the documents whose terms count, and their impacts: see `impacts_of`
    Cost: one pass over the edges of W.
    """
    rows = np.full(neighbours.shape[1], -1, dtype=np.int32)
    columns, impacts = best
    rows[columns] = np.arange(len(columns))
    half = (HALF * kernel.quantised_weights(terms, query_weights) / UNIT).astype(np.float32)
    weights = query_weights * kernel.term_weights(terms)
    near, size = rows[neighbours.indices], neighbours.shape[0]
    edges = np.flatnonzero(near >= 0)
    documents = np.searchsorted(neighbours.indptr, edges, side="right") - 1
    shares = neighbours.data[edges].astype(np.float32, copy=False)
    covered = np.zeros(size, np.float32)
    for term, weight in enumerate(weights):
        sums = np.zeros(size, np.float32)
        np.add.at(sums, documents, shares * impacts[near[edges], term])  # in the order of the edges
        sums *= np.float32(NEIGHBOURHOOD)
        local = np.flatnonzero(rows[:size] >= 0)
        sums[local] += impacts[rows[local], term]
        covered += weight * (sums / (sums + half[term]))
    return covered
