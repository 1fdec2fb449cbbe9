"""The machine of the papers, an SVM with 1-norm soft margin: how it is trained and scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from klsa_search.core.array_types import Integers, Matrix


@dataclass(frozen=True)
class Measure:
    """How good predictions are: `of(actual, predicted)`, and whether more of it is better."""

    name: str
    of: Callable[[Labels, Labels], float]
    more_is_better: bool

    def best(self, values: npt.ArrayLike) -> int:
        """Position of the best of means: of equals the first."""
        signed = np.asarray(values) if self.more_is_better else -np.asarray(values)
        return int(np.argmax(np.round(signed, 12)))


def _error(actual: Labels, predicted: Labels) -> float:
    return float((actual != predicted).mean())


def _f1(actual: Labels, predicted: Labels) -> float:
    """2pr / (p + r); 0 where no positive is found."""
    found = int((actual & predicted).sum())
    return 2 * found / max(1, int(actual.sum()) + int(predicted.sum()))


ERROR: Final = Measure("error", _error, more_is_better=False)
F1: Final = Measure("F1", _f1, more_is_better=True)


def best_capacity(capacities: Sequence[float], measure: Measure, means: Sequence[float]) -> float:
    """Return the C of the best mean; of equals the largest.

    The shorter the vectors, the larger the C that they need: so it hampers reduced kernels least.
    """
    return capacities[::-1][measure.best(means[::-1])]


def predict(gram: Matrix, labels: Labels, rows: Matrix, capacity: float) -> Labels:
    """Train on the Gram matrix (m, m) of m labelled points, and label points by their rows (n, m).

    capacity  C of the machine
    """
    machine = SVC(kernel="precomputed", C=capacity).fit(gram, labels)
    return np.asarray(machine.predict(rows), dtype=np.bool_)


def folds(labels: Labels, count: int) -> list[Split]:
    """Part m labelled points into folds with the same share of positives, each tested once.

    count  of folds; fewer where fewer points than that are positive. Positions are within the m.
    """
    rarest = int(min(labels.sum(), (~labels).sum()))
    folded = StratifiedKFold(min(count, rarest), shuffle=True, random_state=0)
    return [Split(train, test) for train, test in folded.split(labels, labels)]


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
