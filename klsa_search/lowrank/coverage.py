"""Coverage: how much of the query a document and its nearest documents contain together.

    T(d) = Σ_t v(t,q) · g(sat(t,d) + β Σ_n W(d,n) · sat(t,n)),   g(y) = y / (y + 1)

with v(t,q) what the term counts for in k_q, sat(t,d) what it adds to k_q of the document over that,
and d and n among the best documents of the query kernel; what any other document holds counts for
nothing, and most of them have nothing near them that counts. A document that misses a word its
nearest use is given part of it, term by term; g grows ever slower, so that covering many terms
counts more than one term held by all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Positions, Scores, values_at
from klsa_search.kernels.postings import UNIT
from klsa_search.kernels.query_kernel import QueryKernel

if TYPE_CHECKING:
    from scipy import sparse


def effective_alpha(alpha: float, hold_back: float, share: float) -> float:
    """α(q) = α · (1 - hold_back · c³): the share of the expansion in a query's scores.

    share  c, how much of the query the first document of the query kernel holds, from 0 to 1
    Where one document holds the whole query, what others say of its words adds little; where none
    does, expansion has to find what was meant.

    >>> effective_alpha(0.7, 0.7, 0.0), round(effective_alpha(0.7, 0.7, 1.0), 2)
    (0.7, 0.21)
    """
    return alpha * (1 - hold_back * (share * share * share))


NEIGHBOURHOOD = 4.0  # β
HALF = 1.0  # saturation at which g is one half
POWER = 6  # a seed counts by this power of its coverage
BEST = 300
"""Documents of the query kernel whose terms count.

100 rank nearly as well, and all of them a little worse: far down the list a term of the query is
mostly an accident.
"""


def coverage(
    kernel: QueryKernel,
    neighbours: sparse.csr_array,
    terms: npt.NDArray[np.int64],
    query_weights: npt.NDArray[np.float32],
    best: Positions,
) -> Scores:
    """T: (N,) float32, not negative.

    kernel         the query kernel
    neighbours     W: (N, N), rows of sum 1
    terms          (n,) term numbers of the query
    query_weights  (n,) f(t, q)
    best           documents whose terms count
    Cost: the edges of W, once; a binary search for each of the best and each term.
    """
    places = np.full(kernel.size, -1, dtype=np.int32)
    ascending = np.sort(best)
    places[ascending] = np.arange(len(best))
    impacts = np.zeros((len(best), len(terms)), dtype=np.float32)
    for column, term in enumerate(terms.tolist()):
        holders = kernel.impacts_of(term, float(query_weights[column]))
        impacts[:, column] = values_at(ascending, *holders)
    half = (HALF * kernel.quantised_weights(terms, query_weights) / UNIT).astype(np.float32)
    return _coverage(places, impacts, query_weights * kernel.term_weights[terms], half, neighbours)


def _coverage(
    places: npt.NDArray[np.int32],
    impacts: npt.NDArray[np.float32],
    term_weights: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    neighbours: sparse.csr_array,
) -> Scores:
    """T of each document, from its own terms and those of its neighbours: (N,) float32."""
    near = places[neighbours.indices]
    edges = np.flatnonzero(near >= 0)
    documents = np.searchsorted(neighbours.indptr, edges, side="right") - 1
    shares = neighbours.data[edges].astype(np.float32, copy=False)
    covered = np.zeros(len(places), np.float32)
    for term in range(len(term_weights)):
        held = np.zeros(len(places), np.float32)
        np.add.at(held, documents, shares * impacts[near[edges], term])  # in the order of the edges
        held *= np.float32(NEIGHBOURHOOD)
        own = np.flatnonzero(places >= 0)
        held[own] += impacts[places[own], term]
        covered += term_weights[term] * (held / (held + half[term]))
    return covered
