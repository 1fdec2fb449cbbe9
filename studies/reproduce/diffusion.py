"""Medline query 20: von Neumann and exponential kernels, γ by alignment [KSC tables 1 and 2]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from klsa_search.collection import Collection
from klsa_search.core.array_types import Integers, Matrix
from klsa_search.core.progress import Progress, steps
from klsa_search.estimators import LatentSemanticKernel, TfidfFeatures, alignment
from klsa_search.estimators.base import inner_products
from klsa_search.lowrank.eigensolver import Decomposition
from klsa_search.lowrank.expansion_matrix import SPECTRAL_FUNCTIONS
from studies.reproduce.machine import (
    ERROR,
    F1,
    Labels,
    Split,
    best_capacity,
    folds,
    predict,
    random_splits,
    stratified_splits,
)
from studies.reproduce.report import Chart, Line, Panel, Reproduction, Row, Value
from studies.reproduce.texts import TEXT_CHOICE, judged_documents

SPLITS: Final = 10
QUERY: Final = "20"
SHARES: Final = (80, 50, 20)
"""Percent of the documents to train with; the others are tested."""
FOLDS: Final = 10
CAPACITIES: Final = tuple(10.0**power for power in range(-1, 9))
BAG: Final = "bag of words"
KERNELS: Final[Mapping[str, tuple[str, tuple[float, ...]]]] = {
    BAG: ("truncation", (0.0,)),  # of nothing: the whole spectrum is kept
    "von Neumann": ("von-neumann", tuple((1 - np.logspace(0, -4, 33)).tolist())),
    "exponential": ("exponential", (0.0, *np.geomspace(0.1, 20, 32).tolist())),
}
"""Name → its function of the spectrum, and the γ of the line search."""


class _Scaling(NamedTuple):
    """What is scaled to unit length: the features, and the documents in the space of a kernel."""

    features: bool
    kernel: bool


WEIGHTS: Final = {
    "as they are": _Scaling(features=False, kernel=False),
    "unit length": _Scaling(features=True, kernel=False),
    "unit length, K̂ too": _Scaling(features=True, kernel=True),
}


def _published(*figures: tuple[float, float]) -> tuple[Value, ...]:
    return tuple(Value(*figure) for figure in figures)


# Alignment, F1, error and λ.
PUBLISHED: Final = {
    (BAG, 80): _published((0.423, 0.007), (0.256, 0.351), (0.022, 0.007)),
    (BAG, 50): _published((0.390, 0.009), (0.456, 0.265), (0.024, 0.004)),
    (BAG, 20): _published((0.325, 0.009), (0.349, 0.209), (0.030, 0.005)),
    ("von Neumann", 80): _published((0.758, 0.015), (0.765, 0.020), (0.017, 0.004), (0.032, 0.001)),
    ("von Neumann", 50): _published((0.766, 0.025), (0.701, 0.066), (0.018, 0.005), (0.039, 0.008)),
    ("von Neumann", 20): _published((0.728, 0.012), (0.376, 0.089), (0.028, 0.004), (0.029, 0.07)),
    ("exponential", 80): _published((0.851, 0.012), (0.795, 0.060), (0.017, 0.005), (0.197, 0.004)),
    ("exponential", 50): _published((0.863, 0.025), (0.783, 0.074), (0.018, 0.006), (0.185, 0.008)),
    ("exponential", 20): _published((0.867, 0.029), (0.731, 0.089), (0.019, 0.004), (0.147, 0.04)),
}
CHOICES: Final = (
    "Weights: log(1 + tf) log(m / df), thrice: 'as they are', for the source mentions no other; "
    "'unit length', which its λ agree with; and 'K̂ too', where each document is scaled to unit "
    "length once more in the space of the kernel, which its alignments agree with.",
    "Documents of the kernels: all 1,033, of which only the training documents have labels; the "
    "source infers similarity from the corpus.",
    "γ: for each split the largest alignment with the labels of the training documents, between "
    "them, among 33 values. The source's λ is γ divided by the first eigenvalue.",
    "C: for each kernel and share the best F1 among 0.1, 1, ... 1e8 in 10-fold "
    "cross-validation within the training part of the first split (fewer folds where fewer "
    "documents than that are relevant), the largest of equals; Gram matrices are first divided by "
    "their mean diagonal, so that C means the same for every γ.",
)


class _Measured(NamedTuple):
    """C, the mean alignment at each γ, and (splits, 4) alignment, F1, error and λ of the chosen."""

    capacity: float
    alignments: tuple[float, ...]
    scores: Matrix


class _Family(NamedTuple):
    """A kernel at every γ of its line search, between all documents."""

    gammas: tuple[float, ...]
    grams: list[Matrix]
    first: float  # eigenvalue of the features: λ = γ / first

    def measure(
        self, splits: Sequence[Split], labels: Labels, told: Callable[[], object]
    ) -> _Measured:
        """Choose γ on every split and C on the first; `told` is called after each."""
        curves = [self._alignments(split, labels) for split in splits]
        chosen = [int(np.argmax(curve)) for curve in curves]
        capacity = _capacity(self.grams[chosen[0]], splits[0].train, labels)
        scores = []
        for split, curve, best in zip(splits, curves, chosen, strict=True):
            actual = labels[split.test]
            predicted = _predicted(self.grams[best], split, labels, capacity)
            f1, error = F1.of(actual, predicted), ERROR.of(actual, predicted)
            scores.append((curve[best], f1, error, self.gammas[best] / self.first))
            told()
        means = tuple(np.mean(curves, axis=0).tolist())
        return _Measured(capacity, means, np.array(scores))

    def _alignments(self, split: Split, labels: Labels) -> list[float]:
        trained = np.ix_(split.train, split.train)
        return [alignment(gram[trained], labels[split.train]) for gram in self.grams]


def reproduce_diffusion(
    collection: Collection,
    *,
    splits: int = SPLITS,
    shares: Sequence[int] = SHARES,
    min_df: int = 1,
    stratified: bool = False,
    progress: Progress | None = None,
) -> Reproduction:
    """Measure alignment, F1, error and λ, with the γ that the alignment chose.

    min_df      documents that a term is in, at least, to be counted
    stratified  as many of the relevant documents to train with as of the others, in percent

    Cost: thrice a whole spectrum and 67 Gram matrices of all N documents, O(N³) each, of which 33
    are held, 8 N² bytes each; for every share and kernel 100 machines to choose C, one a split.
    CollectionError where nothing is relevant to query 20.
    """
    counts, judged = judged_documents(collection, [QUERY], min_df=min_df)
    labels = judged[QUERY]
    rows: list[Row] = []
    curves: dict[tuple[str, int], dict[str, Line]] = {}
    total = sum(len(_kernels(scaling)) for scaling in WEIGHTS.values()) * len(shares) * splits
    told = steps(progress, "splits", total)

    for weights, scaling in WEIGHTS.items():
        features = TfidfFeatures(unit_length=scaling.features).fit_transform(counts)
        spectrum = LatentSemanticKernel().fit(features).spectrum_
        for name in _kernels(scaling):
            family = family_of(spectrum, *KERNELS[name], normalised=scaling.kernel)
            for share in shares:
                parted = _splits(labels, share, splits, stratified=stratified)
                found = family.measure(parted, labels, told)
                rows += _rows(name, weights, share, found)
                line = Line(weights, family.gammas, found.alignments)
                curves.setdefault((name, share), {})[weights] = line
    charts = tuple(_chart(name, shares, curves, splits) for name in KERNELS if name != BAG)
    return Reproduction(
        "diffusion",
        "KSC, tables 1 and 2",
        splits,
        tuple(rows),
        _choices(min_df, stratified=stratified),
        charts,
    )


def _splits(labels: Labels, share: int, count: int, *, stratified: bool) -> list[Split]:
    """Splits with that percentage of the documents to train with; the others are tested."""
    if stratified:
        relevant, others = int(labels.sum()), int((~labels).sum())
        train = round(relevant * share / 100), round(others * share / 100)
        test = relevant - train[0], others - train[1]
        return stratified_splits(labels, train=train, test=test, count=count)
    trained = round(len(labels) * share / 100)
    return random_splits(len(labels), train=trained, test=len(labels) - trained, count=count)


def _choices(min_df: int, *, stratified: bool) -> tuple[str, ...]:
    terms = "all of them" if min_df == 1 else f"those of at least {min_df} documents"
    parts = (
        "with the same share of relevant documents in both parts"
        if stratified
        else "whatever the share of relevant documents, which the deviations of the published "
        "alignments agree with"
    )
    return (TEXT_CHOICE, f"Terms: {terms}.", f"Splits: at random, {parts}.", *CHOICES)


def _kernels(scaling: _Scaling) -> list[str]:
    """Names of the kernels that a scaling changes: a bag of words of unit length has it already."""
    return [name for name in KERNELS if name != BAG or not scaling.kernel]


def family_of(
    spectrum: Decomposition, function: str, gammas: tuple[float, ...], *, normalised: bool
) -> _Family:
    vectors, values = spectrum.eigenvectors, spectrum.eigenvalues
    grams: list[Matrix] = []
    for gamma in gammas:
        factors = values * SPECTRAL_FUNCTIONS[function](gamma).of(values / values[0])
        gram = inner_products(vectors * factors, vectors)
        squares = gram.diagonal()
        lengths = np.sqrt(squares if normalised else np.full(len(gram), squares.mean()))
        grams.append(gram / np.multiply.outer(lengths, lengths))
    return _Family(gammas, grams, float(values[0]))


def _capacity(gram: Matrix, train: Integers, labels: Labels) -> float:
    """Choose C by F1 within the training documents."""
    means = []
    parts = [Split(train[fold.train], train[fold.test]) for fold in folds(labels[train], FOLDS)]
    for capacity in CAPACITIES:
        scores = [
            F1.of(labels[part.test], _predicted(gram, part, labels, capacity)) for part in parts
        ]
        means.append(float(np.mean(scores)))
    return best_capacity(CAPACITIES, F1, means)


def _predicted(gram: Matrix, split: Split, labels: Labels, capacity: float) -> Labels:
    trained, rows = np.ix_(split.train, split.train), np.ix_(split.test, split.train)
    return predict(gram[trained], labels[split.train], gram[rows], capacity)


def _rows(name: str, weights: str, share: int, found: _Measured) -> list[Row]:
    """Rows of one kernel and share. A bag of words has no λ."""
    task, method = f"{share} % to train, {weights}", f"{name}, C = {found.capacity:g}"
    measures = ("alignment", F1.name, ERROR.name, "λ")
    return [
        Row(task, method, measure, published, Value.of(of_measure))
        for measure, published, of_measure in zip(
            measures, PUBLISHED[name, share], found.scores.T, strict=False
        )
    ]


def _chart(
    name: str,
    shares: Sequence[int],
    curves: Mapping[tuple[str, int], Mapping[str, Line]],
    splits: int,
) -> Chart:
    """Alignment against γ of one kernel, a panel a share."""
    panels = tuple(
        Panel(
            f"{share} % to train",
            tuple(curves[name, share].values()),
            {f"{BAG}, {weights}": line.y[0] for weights, line in curves[BAG, share].items()},
        )
        for share in shares
    )
    return Chart(
        f"diffusion-{name.lower().replace(' ', '-')}",
        f"Medline query {QUERY}: {name} kernel, mean of {splits} splits",
        "γ, in units of 1/λ₁",
        "alignment with the labels",
        panels,
        logarithmic=False,
    )
