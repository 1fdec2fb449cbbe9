"""The machine of the papers, an SVM with 1-norm soft margin, and how it is scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from klsa_search.core.array_types import Matrix
from studies.reproduce.splits import Labels, Split


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
