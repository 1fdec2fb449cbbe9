"""The table of rankers: functions that score every document for a query.

CONTRIBUTING.md says how to add one. Other packages add rankers as plug-ins: `klsa_search.plugins`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal

from klsa_search.core.array_types import Scores
from klsa_search.core.parameters import RankingSettings
from klsa_search.lowrank.sparse_expansion import is_multiple_of_kernel
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.boosted_bm25 import boosted_bm25
from klsa_search.search.rankers.feedback import RM3, ROCCHIO, Feedback, rank_expanded
from klsa_search.search.rankers.klsa import rank_klsa
from klsa_search.search.rankers.reader import IndexReader, plugin_ranker


@dataclass(frozen=True, kw_only=True)
class Ranker:
    """A ranker, and what other modules need to know about it.

    scores      function of snapshot, query terms, parameters and the evidence of all documents:
                (N,) float32
    parameters  names of the parameters that it uses, as results report them
    scores_by   what the scores come from, by which they are explained: the "kernel" of documents,
                sums of BM25 over "words", the coordinates of "lsi", which take O(N · k) time and
                eigenvectors (see `needs_eigenvectors`), or an "index" reader, as of plug-ins: it
                may be slow, and is explained by ranking for one word at a time
    feedback    method that expands the query before BM25 scores it, if any
    adds_up     whether partitions add up all that it reads of other documents, as `Evidence` does
    """

    scores: Callable[[Snapshot, QueryTerms, RankingSettings, Evidence], Scores]
    parameters: tuple[str, ...]
    scores_by: Literal["kernel", "words", "lsi", "index"]
    feedback: Feedback | None = None
    adds_up: bool = False

    @property
    def is_heavy(self) -> bool:
        """Return whether a query takes long on a large index."""
        return self.scores_by in ("lsi", "index")

    def share_of_expansion(self, alpha: float) -> float:
        """Return how much of its scores comes from words that are not in the query, from 0 to 1.

        That of the default ranking is α; all others but BM25 count as 1.
        """
        if self.scores_by == "kernel":
            return alpha
        return 0.0 if self.scores_by == "words" and self.feedback is None else 1.0


_BOOSTS: Final = ("boosts",)
_OF_KLSA: Final = tuple(
    name for name in RankingSettings.model_fields if name not in ("ranker", "passage_weight")
)

_LSI: Final = Ranker(
    scores=lambda snapshot, query, parameters, _: snapshot.lsi.scores(query, parameters),
    parameters=("dimensions",),
    scores_by="lsi",
)

RANKERS: Final[dict[str, Ranker]] = {
    "klsa": Ranker(scores=rank_klsa, parameters=_OF_KLSA, scores_by="kernel", adds_up=True),
    "bm25": Ranker(
        scores=lambda snapshot, query, parameters, _: boosted_bm25(snapshot, query, parameters),
        parameters=_BOOSTS,
        scores_by="words",
        adds_up=True,
    ),
    "rm3": Ranker(
        scores=partial(rank_expanded, RM3),
        parameters=_BOOSTS,
        scores_by="words",
        feedback=RM3,
        adds_up=True,
    ),
    "rocchio": Ranker(
        scores=partial(rank_expanded, ROCCHIO),
        parameters=_BOOSTS,
        scores_by="words",
        feedback=ROCCHIO,
        adds_up=True,
    ),
    "lsi": _LSI,
    "lsi-cosine": _LSI,
}


def needs_eigenvectors(settings: RankingSettings) -> Literal["ranker", "spectral", "head"] | None:
    """Return the setting by which a ranking reads the eigenvectors of all documents, if one does.

    Without them D can only be a multiple of K. Later documents have none. PluginFailed.
    """
    if ranker_of(settings.ranker).scores_by == "lsi":
        return "ranker"
    if is_multiple_of_kernel(settings.spectral, settings.gamma, settings.head):
        return None
    return "head" if settings.head else "spectral"


def ranker_of(name: str) -> Ranker:
    """Return a built-in ranker, or that of a plug-in; PluginFailed."""
    return RANKERS[name] if name in RANKERS else ranker_of_plugin(name)


@cache
def ranker_of_plugin(name: str) -> Ranker:
    rank = plugin_ranker(name)
    return Ranker(
        scores=lambda snapshot, query, parameters, _: rank(
            IndexReader(snapshot, parameters), query
        ),
        parameters=_OF_KLSA,
        scores_by="index",
    )


__all__ = ["RANKERS", "Ranker", "needs_eigenvectors", "ranker_of"]
