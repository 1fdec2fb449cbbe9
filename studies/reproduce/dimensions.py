"""Score against dimension: a machine in the first k dimensions of a kernel, for every k.

All three kernels of a split are computed once: the coordinates of fewer dimensions are the first
columns of those of all. What has to be chosen beforehand, C for the full space and one dimension a
method, is chosen by cross-validation within the training part of the first split, and then kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from klsa_search.core.array_types import Matrix
from klsa_search.estimators import GramSchmidtKernel, Kernel, LatentSemanticKernel, PolynomialKernel
from studies.reproduce.machine import (
    Labels,
    Measure,
    Split,
    best_capacity,
    folds,
    predict,
)

FOLDS = 5
METHODS: Mapping[str, Callable[[Kernel | None], Kernel]] = {
    "LSK": lambda base: LatentSemanticKernel(base=base),
    "GSK": lambda base: GramSchmidtKernel(base=base),
}


@dataclass(frozen=True)
class Protocol:
    """What is done on every split.

    features    makes a fresh transformer of points, fitted to the training points; None for none
    degree      of the polynomial kernel (k + 1)^degree; 1 is k itself
    methods     names of METHODS
    dimensions  ascending; beyond the rank of a split's kernel all of it is taken
    capacities  C to choose from, ascending
    of_corpus   make features, spectra and pivots of all points, without any label, and not of the
                training points alone
    """

    features: Callable[[], Any] | None
    degree: int
    methods: tuple[str, ...]
    dimensions: tuple[int, ...]
    capacities: tuple[float, ...]
    measure: Measure
    of_corpus: bool = False


@dataclass(frozen=True)
class Curves:
    """Scores on the test points.

    capacity  C, chosen for the full space
    full      (splits,) in the full space
    reduced   method → (splits, dimensions)
    chosen    method → position of the dimension chosen beforehand
    """

    capacity: float
    full: npt.NDArray[np.float64]
    reduced: dict[str, Matrix]
    chosen: dict[str, int]


class _Space(NamedTuple):
    """Kernels of one split: the full one, and coordinates of the others."""

    gram: Matrix  # (m, m)
    rows: Matrix  # (n, m)
    places: dict[str, tuple[Matrix, Matrix]]  # method → (m, T) and (n, T)


_SpaceOf = Callable[[Split], _Space]


def measure_curves(
    points: Any,
    targets: Mapping[str, Labels],
    splits: Sequence[Split],
    protocol: Protocol,
    told: Callable[[], object],
) -> dict[str, Curves]:
    """Measure each target in the full space and in each number of dimensions.

    points   (N, F) dense or sparse
    targets  name → (N,) labels
    told     called after each split

    Cost a split: one spectrum of all m training points, O(m³), and a machine for each target,
    method and dimension. Of the corpus: one spectrum in all.
    """
    space_of = _spaces(points, protocol)
    capacities, chosen = _choices(space_of, targets, splits[0], protocol)
    full: dict[str, list[float]] = {name: [] for name in targets}
    reduced: dict[str, list[dict[str, list[float]]]] = {name: [] for name in targets}
    for split in splits:
        space = space_of(split)
        for name, labels in targets.items():
            actual = labels[split.train], labels[split.test]
            full[name].append(_full_score(space, *actual, protocol, capacities[name]))
            reduced[name].append(_scores(space, *actual, protocol, capacities[name]))
        told()
    return {
        name: Curves(
            capacities[name],
            np.array(full[name]),
            {method: np.array([s[method] for s in reduced[name]]) for method in protocol.methods},
            chosen[name],
        )
        for name in targets
    }


def _choices(
    space_of: _SpaceOf, targets: Mapping[str, Labels], split: Split, protocol: Protocol
) -> tuple[dict[str, float], dict[str, dict[str, int]]]:
    """Choose C and dimensions of each target within the training part of one split."""
    capacities, chosen = {}, {}
    for name, labels in targets.items():
        spaces = list(_folded(space_of, labels, split))
        means = [
            float(np.mean([_full_score(*fold, protocol, capacity) for fold in spaces]))
            for capacity in protocol.capacities
        ]
        capacities[name] = best_capacity(protocol.capacities, protocol.measure, means)
        scores = [_scores(*fold, protocol, capacities[name]) for fold in spaces]
        chosen[name] = {
            method: protocol.measure.best(np.mean([s[method] for s in scores], axis=0))
            for method in protocol.methods
        }
    return capacities, chosen


def _folded(
    space_of: _SpaceOf, labels: Labels, split: Split
) -> Iterator[tuple[_Space, Labels, Labels]]:
    for fold in folds(labels[split.train], FOLDS):
        within = Split(split.train[fold.train], split.train[fold.test])
        yield space_of(within), labels[within.train], labels[within.test]


def _spaces(points: Any, protocol: Protocol) -> _SpaceOf:
    """Return the function split → its kernels."""
    if not protocol.of_corpus:
        return lambda split: _space(points[split.train], points[split.test], protocol)
    gram, _, places = _space(points, points[:1], protocol)

    def part(split: Split) -> _Space:
        return _Space(
            gram[np.ix_(split.train, split.train)],
            gram[np.ix_(split.test, split.train)],
            {
                name: (placed[split.train], placed[split.test])
                for name, (placed, _) in places.items()
            },
        )

    return part


def _space(train: Any, test: Any, protocol: Protocol) -> _Space:
    if protocol.features is not None:
        features = protocol.features().fit(train)
        train, test = features.transform(train), features.transform(test)
    linear = protocol.degree == 1
    whole = PolynomialKernel(protocol.degree, offset=0.0 if linear else 1.0).fit(train)
    places = {}
    for method in protocol.methods:
        kernel = METHODS[method](None if linear else whole).fit(train)
        places[method] = kernel.transform(train), kernel.transform(test)
    return _Space(whole.kernel(train), whole.kernel(test, train), places)


def _full_score(
    space: _Space, trained: Labels, actual: Labels, protocol: Protocol, capacity: float
) -> float:
    return protocol.measure.of(actual, predict(space.gram, trained, space.rows, capacity))


def _scores(
    space: _Space, trained: Labels, actual: Labels, protocol: Protocol, capacity: float
) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {method: [] for method in space.places}
    with threadpool_limits(limits=1, user_api="blas"):  # once: every change of it costs
        for method, (train, test) in space.places.items():
            gram, rows, reached = np.zeros_like(space.gram), np.zeros_like(space.rows), 0
            for dimension in protocol.dimensions:
                known, new = train[:, reached:dimension], test[:, reached:dimension]
                gram, rows, reached = gram + known @ known.T, rows + new @ known.T, dimension
                predicted = predict(gram, trained, rows, capacity)
                scores[method].append(protocol.measure.of(actual, predicted))
    return scores
