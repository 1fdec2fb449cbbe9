"""The grid of the paper's Figure 1: MAP against α for several z [KLSA section 4]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from klsa_search.collection import Collection
from klsa_search.evaluation.measures import Judge
from klsa_search.evaluation.rankings import rank_best
from klsa_search.evaluation.systems import judged_queries
from klsa_search.keywords import SearchParameters
from klsa_search.progress import Progress, steps
from klsa_search.search.index import Index

ALPHAS = tuple(tenths / 10 for tenths in range(11))
SEEDS = (1, 5, 10, 20, 50)
"""The α and the z of the figure."""


@dataclass(frozen=True)
class Grid:
    """MAP by α and z on one collection, and that of BM25 and LSI.

    `points` has one MAP for each of `alphas`, by z.
    """

    collection: str
    bm25: float
    lsi: float
    alphas: tuple[float, ...]
    points: dict[int, tuple[float, ...]]

    def best(self) -> tuple[int, float, float]:
        """Return z, α and MAP of the best point; of equal ones that with the smallest z."""
        flat = [
            (z, alpha, value)
            for z, values in self.points.items()
            for alpha, value in zip(self.alphas, values, strict=True)
        ]
        return max(flat, key=lambda point: point[2])

    def as_json(self) -> dict[str, Any]:
        """Return the grid as JSON."""
        return {
            "collection": self.collection,
            "bm25": self.bm25,
            "lsi": self.lsi,
            "alpha": list(self.alphas),
            "map": {str(z): list(values) for z, values in self.points.items()},
        }


def measure_grid(
    collection: Collection,
    index: Index,
    *,
    progress: Progress | None = None,
) -> Grid:
    """Return MAP of Kernel LSA by α and z, and of BM25 and LSI on the same index.

    progress  called with ("points", done, total)

    Cost: 57 runs of the judged queries. CollectionError if the collection has no judgements.
    """
    judge = Judge(collection.judgements(), measures=("map",))
    queries = judged_queries(collection, judge)
    step = steps(progress, "points", len(ALPHAS) * len(SEEDS) + 2)

    def mean(parameters: SearchParameters) -> float:
        value = judge.measure(rank_best(index, queries, **parameters)).means()["map"]
        step()
        return value

    return Grid(
        collection=collection.name,
        bm25=mean({"ranker": "bm25"}),
        lsi=mean({"ranker": "lsi"}),
        alphas=ALPHAS,
        points={
            z: tuple(mean({"ranker": "klsa", "alpha": alpha, "z": z}) for alpha in ALPHAS)
            for z in SEEDS
        },
    )
