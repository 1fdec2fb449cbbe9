"""The table of rankers: functions that score every document for a query.

To add one, write a module, a row of `RANKERS`, and its name in `RankerName` of
`klsa_search.core.config`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from klsa_search.core.array_types import Scores
from klsa_search.core.config import RankerName, SearchSettings
from klsa_search.search.query.terms import QueryTerms
from klsa_search.search.rankers.bm25 import rank_bm25
from klsa_search.search.rankers.feedback import RM3, ROCCHIO, Feedback, rank_rm3, rank_rocchio
from klsa_search.search.rankers.klsa import rank_klsa
from klsa_search.search.rankers.lsi import rank_lsi, rank_lsi_cosine
from klsa_search.search.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """A ranker, and what other modules need to know about it.

    scores      function of snapshot, query terms, parameters and dimensions: (N,) float32
    parameters  names of the parameters that it uses, as results report them
    feedback    method that expands the query before BM25 scores it, if any
    uses_lsi    whether it reads the LSI coordinates of all documents: this needs stored
                eigenvectors, which a large index with a sparse D does not have, and O(N · k) time
    """

    scores: Callable[[Snapshot, QueryTerms, SearchSettings, int], Scores]
    parameters: tuple[str, ...]
    feedback: Feedback | None = None
    uses_lsi: bool = False


_BOOSTS: Final = ("boosts",)
_OF_KLSA: Final = (
    *(name for name in SearchSettings.model_fields if name not in ("ranker", "passage_weight")),
    "dimensions",
)

RANKERS: Final[dict[RankerName, Ranker]] = {
    "klsa": Ranker(scores=rank_klsa, parameters=_OF_KLSA),
    "bm25": Ranker(scores=rank_bm25, parameters=_BOOSTS),
    "rm3": Ranker(scores=rank_rm3, parameters=_BOOSTS, feedback=RM3),
    "rocchio": Ranker(scores=rank_rocchio, parameters=_BOOSTS, feedback=ROCCHIO),
    "lsi": Ranker(scores=rank_lsi, parameters=("dimensions",), uses_lsi=True),
    "lsi-cosine": Ranker(scores=rank_lsi_cosine, parameters=("dimensions",), uses_lsi=True),
}

__all__ = ["RANKERS", "Ranker"]
