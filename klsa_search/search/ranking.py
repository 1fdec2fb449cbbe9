"""A ranking of one query: the k best documents of a mask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.search.engine.engine import TopDocs
from klsa_search.search.engine.mask import Mask

Rank = Callable[[int, Mask | None], TopDocs]
"""Returns the k best documents of a mask, and how many match."""


def scores_of(rank: Rank, doc_ids: DocIds, size: int) -> Scores:
    """Return the scores of documents: (n,) float32, 0 for those that do not match.

    size  number of doc ids
    """
    scores = np.zeros(size, np.float32)
    if len(doc_ids):
        allowed = np.zeros(size, np.bool_)
        allowed[doc_ids] = True
        top = rank(len(doc_ids), Mask(allowed))
        scores[top.doc_ids] = top.scores
    return scores[doc_ids]
