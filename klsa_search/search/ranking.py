"""A ranking of one query: the k best documents of a mask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from klsa_search.core.array_types import DocIds
from klsa_search.search.engine.engine import TopDocs
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
