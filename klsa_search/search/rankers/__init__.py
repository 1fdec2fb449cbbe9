"""The rankers: functions that score every document for a query.

A ranker takes a snapshot, the query's terms, search parameters and the number of dimensions. To add
one, write a module and add it to `RANKERS`.
"""

from collections.abc import Callable
from typing import Final

from klsa_search.core.array_types import Scores
from klsa_search.core.config import RankerName, SearchSettings
from klsa_search.search.query.terms import QueryTerms
from klsa_search.search.rankers.bm25 import rank_bm25
from klsa_search.search.rankers.feedback import rank_rm3, rank_rocchio
from klsa_search.search.rankers.klsa import rank_klsa
from klsa_search.search.rankers.lsi import rank_lsi, rank_lsi_cosine
from klsa_search.search.snapshot import Snapshot

Ranker = Callable[[Snapshot, QueryTerms, SearchSettings, int], Scores]

RANKERS: dict[RankerName, Ranker] = {
    "bm25": rank_bm25,
    "klsa": rank_klsa,
    "lsi": rank_lsi,
    "lsi-cosine": rank_lsi_cosine,
    "rm3": rank_rm3,
    "rocchio": rank_rocchio,
}

BOOSTS: Final = ("title_boost", "text_boost")

REPORTED_PARAMETERS: dict[str, tuple[str, ...]] = {
    "bm25": BOOSTS,
    "klsa": (*(name for name in SearchSettings.model_fields if name != "ranker"), "dimensions"),
    "lsi": ("dimensions",),
    "lsi-cosine": ("dimensions",),
    "rm3": BOOSTS,
    "rocchio": BOOSTS,
}
"""Parameters that each ranker uses, as results report them."""

__all__ = ["RANKERS", "REPORTED_PARAMETERS", "Ranker"]
