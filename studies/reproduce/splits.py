"""Random splits into training and test points: the same for the same seed, however many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import Integers

Labels = npt.NDArray[np.bool_]
"""(N,) whether a point is of the class."""


@dataclass(frozen=True)
class Split:
    """Positions of the training and of the test points."""

    train: Integers
    test: Integers


def random_splits(size: int, *, train: int, test: int, count: int) -> list[Split]:
    """Draw `count` splits of `size` points: disjoint, of `train` and of `test` points each.

    Split number i depends on i alone, so that more splits begin with the same ones.
    """
    orders = (np.random.default_rng([0, number]).permutation(size) for number in range(count))
    return [Split(np.sort(order[test : test + train]), np.sort(order[:test])) for order in orders]


def stratified_splits(
    labels: Labels, *, train: tuple[int, int], test: tuple[int, int], count: int
) -> list[Split]:
    """Draw `count` splits with fixed numbers of (positives, negatives) in each of their parts."""
    positives, negatives = np.flatnonzero(labels), np.flatnonzero(~labels)
    of_positives = random_splits(len(positives), train=train[0], test=test[0], count=count)
    of_negatives = random_splits(len(negatives), train=train[1], test=test[1], count=count)
    return [
        Split(
            np.sort(np.concatenate([positives[p.train], negatives[n.train]])),
            np.sort(np.concatenate([positives[p.test], negatives[n.test]])),
        )
        for p, n in zip(of_positives, of_negatives, strict=True)
    ]
