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
from klsa_search.search import Index

ALPHAS = tuple(tenths / 10 for tenths in range(11))
SEEDS = (1, 5, 10, 20, 50)
"""The α and the z of the figure."""


@dataclass(frozen=True)
class Grid:
    """MAP over α and z on one collection, and the two base lines.

    `points` maps z to one MAP for each of `alphas`.
    """

    collection: str
    bm25: float
    lsi: float
    alphas: tuple[float, ...]
    points: dict[int, tuple[float, ...]]

    def best(self) -> tuple[int, float, float]:
        """Find z, α and MAP of the highest point; of equals the first, small z before large."""
        flat = [
            (z, alpha, value)
            for z, values in self.points.items()
            for alpha, value in zip(self.alphas, values, strict=True)
        ]
        return max(flat, key=lambda point: point[2])

    def as_json(self) -> dict[str, Any]:
        """Give the grid as a value for JSON."""
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
    """Measure Kernel LSA at every point of the figure, BM25 and LSI on the same index.

    `progress` is told ("points", done, total). Cost: 57 runs over the judged queries.
    CollectionError if the collection has no judgements.
    """
    judge = Judge(collection.judgements(), measures=("map",))
    queries = judged_queries(collection, judge)
    told = steps(progress, "points", len(ALPHAS) * len(SEEDS) + 2)

    def mean(parameters: SearchParameters) -> float:
        value = judge.measure(rank_best(index, queries, **parameters)).means()["map"]
        told()
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
