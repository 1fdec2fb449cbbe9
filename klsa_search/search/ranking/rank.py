"""Rankings of one query, the k best documents of a mask, and what changes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, DocumentMask, Scores
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.engine.engine import ALL_CANDIDATES, TopDocs
from klsa_search.search.engine.mask import Mask

Rank = Callable[[int, Mask | None], TopDocs]
"""Returns the k best documents of a mask, and how many match."""


def ranked(rank: Rank, doc_ids: DocIds, size: int) -> TopDocs:
    """Return documents in the order given, with score 0 if they do not match.

    size  number of doc ids of the index
    """
    allowed = np.zeros(size, np.bool_)
    allowed[doc_ids] = True
    top = rank(max(len(doc_ids), 1), Mask(allowed))
    every = top.joined(top.unscored(np.setdiff1d(doc_ids, top.doc_ids)))
    order = np.argsort(every.doc_ids)
    return every.at(order[np.searchsorted(every.doc_ids, doc_ids, sorter=order)])


def top_docs(scores: Scores, k: int) -> TopDocs:
    """Return the k best by the scores of all documents."""
    doc_ids, best = largest_entries(scores, k)
    return TopDocs(doc_ids, best, int(np.count_nonzero(scores > 0)))


def best_of(scores: Scores, k: int, mask: Mask | None) -> TopDocs:
    """Return the k best documents of a mask by the scores of all documents."""
    return top_docs(scores if mask is None else scores * mask.allowed, k)


def boosted(rank: Rank, factors: npt.NDArray[np.float64]) -> Rank:
    """Return a ranking by the scores times the factors of the documents.

    factors  (N,)
    Cost: a ranking of all matches, now.
    """
    total = rank(1, None).total
    # Compared scores are those of a deep ranking, even for few matches.
    every = rank(max(total, ALL_CANDIDATES), None)
    scores = (every.scores * factors[every.doc_ids]).astype(np.float32)
    order = np.lexsort((every.doc_ids, -scores))[: np.count_nonzero(scores)]
    every = every.at(order).rescored(scores[order], len(order))

    def by_factors(k: int, mask: Mask | None) -> TopDocs:
        top = every if mask is None else every.at(mask.allowed[every.doc_ids])
        return top.at(slice(k))._replace(total=len(top.doc_ids))

    return by_factors


def leading_first(rank: Rank, leading: DocumentMask) -> Rank:
    """Return a ranking in which some documents that match come before all others.

    leading  (N,) which
    Cost: a second ranking.
    """

    def with_leading(k: int, mask: Mask | None) -> TopDocs:
        allowed = np.ones(len(leading), np.bool_) if mask is None else mask.allowed
        first, following = (rank(k, Mask(allowed & part)) for part in (leading, ~leading))
        top = first.joined(following).at(slice(k))
        return top._replace(total=first.total + following.total)

    return with_leading


def named_first(rank: Rank, named: int, size: int) -> Rank:
    """Return a ranking in which a document comes first if the mask allows it, match or not.

    size  number of doc ids of the index
    """

    def with_named(k: int, mask: Mask | None) -> TopDocs:
        top = rank(k, mask)
        if mask is not None and named not in mask:
            return top
        is_named, total = top.doc_ids == named, top.total
        first = top.at(is_named)
        if not is_named.any():
            first = ranked(rank, np.full(1, named), size)
            total += int(first.scores[0] == 0)
        return first.joined(top.at(~is_named)).at(slice(k))._replace(total=total)

    return with_named
