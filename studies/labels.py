"""How often labels from a few examples are right, and the nearest of the same topic, on Reuters.

Stories of a single topic, some of each.

python -m studies.labels [--draws 5]
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable

import numpy as np

from klsa_search import Index, build
from klsa_search.mining import classify
from klsa_search.mining.classification import RIDGE
from klsa_search.mining.similar import similar
from studies.datasets import reuters_folder
from studies.effectiveness.reuters import Labelled, labelled

WORLDS = {
    "8 topics": (("acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade"), 500),
    "4 topics": (("crude", "interest", "ship", "trade"), 75),
}
"""Topics, and the most stories of each."""
EXAMPLES = (1, 3, 10, 20)
NEIGHBOURS_OF = 200

Scorer = Callable[[Index, dict[str, str], np.ndarray, list[str]], np.ndarray]


def by_latent(
    index: Index, labels: dict[str, str], topics: np.ndarray, names: list[str]
) -> np.ndarray:
    found = {one.id: one.label for one in classify(index, labels)}
    return np.array([found.get(identifier, "") for identifier in index.ids()])


def by_kernel(
    index: Index, labels: dict[str, str], topics: np.ndarray, names: list[str]
) -> np.ndarray:
    """Kernel ridge on the normalised K."""
    kernel, known = index.arrays.kernel, np.array(index.doc_ids(labels))
    lengths = np.sqrt(np.maximum(kernel.diagonal, 1e-12))
    rows = kernel.rows(known) / lengths[known][:, None] / lengths
    wanted = (topics[known][:, None] == np.array(names)).astype(float)
    dual = np.linalg.solve(rows[:, known] + RIDGE * np.eye(len(known)), wanted)
    given: np.ndarray = np.array(names)[(dual.T @ rows).argmax(axis=0)]
    return given


def by_centroid(
    index: Index, labels: dict[str, str], topics: np.ndarray, names: list[str]
) -> np.ndarray:
    places, known = np.asarray(index.arrays.latent.documents), np.array(index.doc_ids(labels))
    middles = np.array([places[known[topics[known] == name]].mean(axis=0) for name in names])
    middles /= np.linalg.norm(middles, axis=1, keepdims=True)
    given: np.ndarray = np.array(names)[(places @ middles.T).argmax(axis=1)]
    return given


METHODS: dict[str, Scorer] = {
    "latent": by_latent,
    "normalised K": by_kernel,
    "nearest centroid": by_centroid,
}


def chosen(stories: list[Labelled], names: tuple[str, ...], most: int) -> list[Labelled]:
    """At most so many stories of each topic, by chance."""
    single = [story for story in stories if len(story.topics) == 1 and story.topics[0] in names]
    random.Random(0).shuffle(single)
    of_topic: dict[str, list[Labelled]] = {}
    for story in single:
        of_topic.setdefault(story.topics[0], []).append(story)
    return [story for held in of_topic.values() for story in held[:most]]


def same_topic(index: Index, ids: np.ndarray, topics: np.ndarray, kernel: str) -> float:
    """Share of the ten nearest to each of some stories that have its topic."""
    topic_of = dict(zip(ids.tolist(), topics.tolist(), strict=True))
    asked = np.random.default_rng(0).choice(ids, NEIGHBOURS_OF, replace=False).tolist()
    return float(
        np.mean(
            [
                topic_of[hit.id] == topic_of[one]
                for one in asked
                for hit in similar(index, one, 10, kernel=kernel)
            ]
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    draws = parser.parse_args().draws
    stories = labelled(reuters_folder())
    with tempfile.TemporaryDirectory() as home:
        for world, (names, most) in WORLDS.items():
            held = chosen(stories, names, most)
            index = build([s.document for s in held], name="stories", home=home, replace=True)
            topics = np.array([story.topics[0] for story in held])
            ids = np.array(index.ids())
            for kernel in ("latent", "document"):
                print(f"{kernel}: {same_topic(index, ids, topics, kernel):.3f} of the ten nearest")
            print(f"{len(held)} stories, {world}: examples a topic, share right")
            for count in EXAMPLES:
                right: dict[str, list[float]] = {method: [] for method in METHODS}
                for draw in range(draws):
                    rng = np.random.default_rng(draw)
                    some = np.concatenate(
                        [rng.choice(np.flatnonzero(topics == n), count, False) for n in names]
                    )
                    labels = dict(zip(ids[some].tolist(), topics[some].tolist(), strict=True))
                    rest = np.setdiff1d(np.arange(len(ids)), some)
                    for method, scorer in METHODS.items():
                        answers = scorer(index, labels, topics, list(names))
                        right[method].append(float(np.mean(answers[rest] == topics[rest])))
                shares = ", ".join(f"{m} {np.mean(r):.3f}" for m, r in right.items())
                print(f"  {count:3d}  {shares}", flush=True)
            index.close()


if __name__ == "__main__":
    main()
