"""BM25 with boosts: words of some fields weighted at query time.

    sat'(t,d) = f' / (K_d + f'),   f' = Σ boost_i · f_i(t,d)

as in BM25F [Robertson, Zaragoza & Taylor 2004]; f_i includes the weight of the field in the index,
and K_d and idf do not change. With r = f' / f

    sat' = r · sat / (1 - sat + r · sat)

so K_d need not be known, and r = 1 changes no bit. Only documents with the word in a part before
the text are counted: all others have r = boost of the text.

BM25 without boosts is in `kernels.bm25`; `Bm25Engine` (`native/engine/top_k.hpp`) sums it for the
best documents, `kernels.query_kernel` for all.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.deadlines import check_deadline
from klsa_search.core.parameters import RankingSettings
from klsa_search.kernels.postings import UNIT
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot


def boosted_bm25(snapshot: Snapshot, query: QueryTerms, parameters: RankingSettings) -> Scores:
    """Return k_q with the boosts of the parameters: (N,) float32.

    Cost: the postings of the query; with boosts also the parts before the text of the documents
    that contain its terms, and the texts of those whose other parts do, at 3 ns a word.
    """
    if not parameters.boost_factors:
        return snapshot.lexical(query)
    kernel = snapshot.query_kernel
    row = np.zeros(len(snapshot), np.int64)
    weights = kernel.quantised_weights(query.numbers, query.counts)
    for term, count, weight in zip(query.numbers.tolist(), query.counts, weights, strict=True):
        if count > 0:
            check_deadline()
            documents, saturations = boosted_postings(snapshot, term, parameters)
            row[documents] += 1 + ((weight * saturations.astype(np.int64)) >> 16)
    scores = (row * kernel.postings.step).astype(np.float32)
    return scores if snapshot.live is None else scores * snapshot.live.allowed


def boosted_postings(
    snapshot: Snapshot, term: int, parameters: RankingSettings
) -> tuple[DocIds, npt.NDArray[np.uint16]]:
    """Return the doc ids that contain a term, and its boosted saturations in 65,536ths."""
    documents, saturations = snapshot.query_kernel.postings.of_term(term)
    if not parameters.boost_factors:
        return documents, saturations
    forward = snapshot.forward
    names, weights = forward.fields
    counts = forward.part_counts(term, documents)
    factors = parameters.boost_factors
    boosts = np.array([factors.get(name, 1.0) for name in names])
    counts *= np.array(weights)
    counted = counts[:, :-1].any(axis=1)
    ratios = np.full(len(documents), boosts[-1])
    ratios[counted] = (counts[counted] * boosts).sum(axis=1) / counts[counted].sum(axis=1)
    share = saturations / UNIT
    scaled = np.rint(UNIT * ratios * share / (1 - share + ratios * share))
    return documents, np.clip(scaled, 1, UNIT - 1).astype(np.uint16)
