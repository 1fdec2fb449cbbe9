"""Reuters, five largest categories: F1 against dimension [LSK table 3; LSK 2002, its figures]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from klsa_search.core.progress import Progress, steps
from klsa_search.errors import CollectionError
from klsa_search.estimators import TfidfFeatures
from studies.datasets import Story
from studies.reproduce.dimensions import Curves, Protocol, measure_curves
from studies.reproduce.machine import F1, random_splits
from studies.reproduce.report import (
    Chart,
    Reproduction,
    Row,
    Value,
    curve_panel,
    curve_rows,
)
from studies.reproduce.texts import TEXT_CHOICE, term_counts

SPLITS: Final = 10
TOPICS: Final = ("earn", "acq", "money-fx", "grain", "crude")
STORIES: Final = (2000, 1000)
"""To train and to test."""
DIMENSIONS: Final = (10, 25, 50, 100, 200, 400, 700, 1000)
CAPACITIES: Final = (0.3, 1.0, 3.0, 10.0)
PUBLISHED: Final = {"LSK": Value(0.874, 0.04), "full": Value(0.867, 0.038)}
CHOICES: Final = (
    TEXT_CHOICE,
    "Weights: log(1 + tf) log(m / df), unit length; document frequencies, spectra and pivots are "
    "those of the training stories alone.",
    "Stories: of the 12,902 of the ModApte split, drawn anew for each split, 2,000 to train and "
    "1,000 to test; the text of the source has lost its numbers.",
    "C: for each topic the best of 0.3, 1, 3, 10 for the full space in 5-fold cross-validation "
    "within the training part of the first split, the largest of equals.",
    "Mean and deviation: F1 is averaged over the five topics of a split, mean and deviation are "
    "over splits. 'best k' is the best one for that average on the test stories, which is what the "
    "source reports; 'chosen k' was chosen for each topic as its C was.",
)


def reproduce_reuters(
    stories: Iterable[Story],
    *,
    splits: int = SPLITS,
    sizes: tuple[int, int] = STORIES,
    dimensions: tuple[int, ...] = DIMENSIONS,
    progress: Progress | None = None,
) -> Reproduction:
    """Measure F1 of a machine in the full space, and with LSK and GSK in k dimensions.

    Cost a split: a spectrum and all Gram-Schmidt steps of 2,000 stories, and 17 machines a topic.
    CollectionError where there are fewer stories than that.
    """
    labelled = [story for story in stories if story.part is not None]
    train, test = sizes
    if len(labelled) < train + test:
        raise CollectionError(
            f"Reuters has {len(labelled)} stories of the ModApte split here, {train + test} are "
            "needed: give all 22 files"
        )
    counts = term_counts(f"{story.title}\n{story.text}" for story in labelled)
    targets = {t: np.array([t in story.topics for story in labelled]) for t in TOPICS}
    parted = random_splits(len(labelled), train=train, test=test, count=splits)
    told = steps(progress, "splits", splits)

    protocol = Protocol(TfidfFeatures, 1, ("LSK", "GSK"), dimensions, CAPACITIES, F1)
    curves = measure_curves(counts, targets, parted, protocol, told)
    rows = _mean_rows(curves, protocol)
    for topic in TOPICS:
        rows += curve_rows(topic, curves[topic], protocol, {})
    chart = Chart(
        "reuters",
        f"Reuters: F1 against dimension, mean of {splits} splits",
        "dimension k",
        "F1",
        tuple(curve_panel(topic, {"": curves[topic]}, protocol) for topic in TOPICS),
        logarithmic=True,
    )
    return Reproduction("reuters", "LSK, table 3", splits, tuple(rows), CHOICES, (chart,))


def _mean_rows(curves: Mapping[str, Curves], protocol: Protocol) -> list[Row]:
    """Rows of the mean over topics: one dimension for all of them, and each with its own."""
    full = np.mean([c.full for c in curves.values()], axis=0)
    rows = [Row("mean of 5", "full space", F1.name, PUBLISHED["full"], Value.of(full))]
    for method in protocol.methods:
        reduced = np.mean([c.reduced[method] for c in curves.values()], axis=0)
        best = F1.best(reduced.mean(axis=0))
        chosen = [c.reduced[method][:, c.chosen[method]] for c in curves.values()]
        for name, published, scores in (
            (
                f"{method}, best k = {protocol.dimensions[best]}",
                PUBLISHED.get(method),
                reduced[:, best],
            ),
            (f"{method}, chosen k of each", None, np.mean(chosen, axis=0)),
        ):
            rows.append(Row("mean of 5", name, F1.name, published, Value.of(scores)))
    return rows
