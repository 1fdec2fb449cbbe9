"""How much of what is near in the latent space is near on a map.

Of the ten nearest of each document in the latent space, the share that is among its ten and its
thirty nearest in the plane: by the first two eigenvectors alone, and by the layout of
`klsa_search.mining`. Of Reuters also the share of the ten nearest in the plane that have the same
first topic, beside that in the latent space.

python -m studies.maps [cran med reuters] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from klsa_search import Index, build
from klsa_search.collection import open_collection
from klsa_search.core.array_types import Matrix
from klsa_search.mining.clusters import k_means
from klsa_search.mining.map_layout import ClusterLayout
from studies.datasets import reuters_folder
from studies.effectiveness.reuters import labelled

NEAR, WIDER = 10, 30
CLUSTERS = 20


def by_eigenvectors(points: Matrix) -> Matrix:
    return points[:, :2]


def by_clusters(points: Matrix) -> Matrix:
    exact = points.astype(np.float64)
    centres, labels = k_means(exact, CLUSTERS, 0)
    used, labels = np.unique(labels, return_inverse=True)
    return ClusterLayout.of(exact, centres[used], labels).places(exact, labels)


def nearest(points: Matrix, count: int) -> np.ndarray:
    """The nearest of each point of length 1, without itself: (n, count)."""
    found = []
    for begin in range(0, len(points), 1000):
        cosines = points[begin : begin + 1000] @ points.T
        rows = np.arange(len(cosines))
        cosines[rows, begin + rows] = -2
        found.append(np.argsort(-cosines, axis=1, kind="stable")[:, :count])
    return np.concatenate(found)


WAYS: dict[str, Callable[[Matrix], Matrix]] = {
    "two eigenvectors": by_eigenvectors,
    "the map": by_clusters,
}


def kept(near: np.ndarray, places: Matrix, count: int) -> float:
    """Share of the near that are among so many nearest in the plane."""
    found = in_the_plane(places, count)
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(near, found, strict=True)]))


def in_the_plane(places: Matrix, count: int) -> np.ndarray:
    """The nearest of each point, without itself: (n, count)."""
    found = cKDTree(places).query(places, count + 1)[1]
    rest = [row[row != own][:count] for own, row in enumerate(found)]
    return np.array(rest)


def same_topic(near: np.ndarray, topics: np.ndarray) -> float:
    """Share of the near with the topic of the document, over those that have one."""
    has = topics != ""
    return float((topics[near[has]] == topics[has][:, None]).mean())


def report(index: Index, topics: dict[str, str]) -> None:
    coordinates = np.asarray(index.arrays.latent.documents)
    placed = np.flatnonzero(coordinates.any(axis=1))
    points = coordinates[placed]
    known = np.array([topics.get(one, "") for one in index.ids(placed)])
    near = nearest(points, NEAR)
    told = f", {same_topic(near, known):.3f} of the {NEAR} nearest have its topic" if topics else ""
    print(f"{index.name}: {len(points):,} documents{told}")
    for way, draw in WAYS.items():
        begun = time.perf_counter()
        places = draw(points)
        seconds = time.perf_counter() - begun
        shares = f"{kept(near, places, NEAR):.3f} {kept(near, places, WIDER):.3f}"
        if topics:
            shares += f" {same_topic(in_the_plane(places, NEAR), known):.3f}"
        print(f"  {way:16} {shares}  {seconds:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["cran", "med", "reuters"])
    home_of_data = Path(os.environ.get("KLSA_COLLECTIONS", "../shared/collections"))
    parser.add_argument("--data", type=Path, default=home_of_data, help="where the collections are")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        for name in asked.names:
            topics: dict[str, str] = {}
            if name == "reuters":
                stories = labelled(reuters_folder())
                topics = {s.document.id: s.topics[0] for s in stories if s.topics}
                source = [story.document for story in stories]
            else:
                source = list(open_collection(name, data=[asked.data]).documents())
            index = build(source, name=name, home=Path(home))
            report(index, topics)
            index.close()


if __name__ == "__main__":
    main()
