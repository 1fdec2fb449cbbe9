"""Medline query 20: von Neumann and exponential kernels, γ by alignment [KSC tables 1 and 2]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from klsa_search.arrays import Matrix, Positions
from klsa_search.collection import Collection
from klsa_search.estimators import (
    LatentSemanticKernel,
    TfidfFeatures,
    alignment,
)
from klsa_search.estimators.kernel import inner_products
from klsa_search.evaluation.reproduce.machine import (
    ERROR,
    F1,
    best_capacity,
    folds,
    predict,
)
from klsa_search.evaluation.reproduce.report import Chart, Line, Panel, Reproduction, Row, Value
from klsa_search.evaluation.reproduce.splits import Labels, Split, stratified_splits
from klsa_search.evaluation.reproduce.texts import TEXT_CHOICE, judged_documents
from klsa_search.progress import Progress
from klsa_search.spectrum import SPECTRAL_FUNCTIONS, Spectrum

SPLITS: Final = 10
QUERY: Final = "20"
SHARES: Final = (80, 50, 20)
"""Percent of the documents to train with; the others are tested."""
FOLDS: Final = 10
CAPACITIES: Final = (0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
BAG: Final = "bag of words"
KERNELS: Final[Mapping[str, tuple[str, tuple[float, ...]]]] = {
    BAG: ("truncation", (0.0,)),  # of nothing: the whole spectrum is kept
    "von Neumann": ("von-neumann", tuple((1 - np.logspace(0, -4, 33)).tolist())),
    "exponential": ("exponential", (0.0, *np.geomspace(0.1, 20, 32).tolist())),
}
"""Name → its function of the spectrum, and the γ of the line search."""
WEIGHTS: Final = {"as they are": False, "unit length": True}
"""Name → whether features are scaled to unit length."""


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
    TEXT_CHOICE,
    "Weights: log(1 + tf) log(m / df), twice: 'as they are', for the source mentions no other, and "
    "'unit length', which the λ of its exponential kernel agree with.",
    "Documents of the kernels: all 1,033, of which only the training documents have labels; the "
    "source infers similarity from the corpus.",
    "γ: for each split the largest alignment with the labels of the training documents, between "
    "them, among 33 values. The source's λ is γ divided by the first eigenvalue.",
    "Splits: the same share of relevant documents in both parts.",
    "C: for each kernel and share the best F1 among 0.1, 1, ... 10,000 in 10-fold cross-validation "
    "within the training part of the first split (8-fold at 20 %, of 8 relevant documents), the "
    "largest of equals; Gram matrices are first divided by their mean diagonal, so that C means "
    "the same for every γ.",
)


class _Family(NamedTuple):
    """A kernel at every γ of its line search, between all documents."""

    grams: list[Matrix]
    first: float  # eigenvalue of the features: λ = γ / first

    def alignments(self, split: Split, labels: Labels) -> list[float]:
        trained = np.ix_(split.train, split.train)
        return [alignment(gram[trained], labels[split.train]) for gram in self.grams]


def reproduce_diffusion(
    collection: Collection,
    *,
    splits: int = SPLITS,
    shares: Sequence[int] = SHARES,
    progress: Progress | None = None,
) -> Reproduction:
    """Measure alignment, F1, error and λ, with the γ that the alignment chose.

    Cost: twice a whole spectrum and 67 Gram matrices of all N documents, O(N³) each, of which 33
    are held, 8 N² bytes each; for every share and kernel 60 machines to choose C, one a split.
    CollectionError where nothing is relevant to query 20.
    """
    counts, judged = judged_documents(collection, [QUERY])
    labels = judged[QUERY]
    rows: list[Row] = []
    curves: dict[tuple[str, int], dict[str, Line]] = {}
    total, done = len(WEIGHTS) * len(KERNELS) * len(shares) * splits, 0
    for weights, unit_length in WEIGHTS.items():
        features = TfidfFeatures(unit_length=unit_length).fit_transform(counts)
        spectrum = LatentSemanticKernel().fit(features).spectrum_
        for name, (function, gammas) in KERNELS.items():
            family = _family(spectrum, function, gammas)
            for share in shares:
                parted = _splits(labels, share, splits)
                found = [family.alignments(split, labels) for split in parted]
                chosen = [int(np.argmax(curve)) for curve in found]
                capacity = _capacity(family.grams[chosen[0]], parted[0].train, labels)
                scores = []
                for split, curve, best in zip(parted, found, chosen, strict=True):
                    actual = labels[split.test]
                    predicted = _predicted(family.grams[best], split, labels, capacity)
                    scores.append(
                        (
                            curve[best],
                            F1.of(actual, predicted),
                            ERROR.of(actual, predicted),
                            gammas[best] / family.first,
                        )
                    )
                    done += 1
                    if progress is not None:
                        progress("splits", done, total)
                rows += _rows(name, weights, share, capacity, np.array(scores))
                means = np.mean(found, axis=0).tolist()
                curves.setdefault((name, share), {})[weights] = Line(weights, gammas, tuple(means))
    charts = tuple(_chart(name, shares, curves, splits) for name in KERNELS if name != BAG)
    return Reproduction("diffusion", "KSC, tables 1 and 2", splits, tuple(rows), CHOICES, charts)


def _splits(labels: Labels, share: int, count: int) -> list[Split]:
    positives, negatives = int(labels.sum()), int((~labels).sum())
    train = round(positives * share / 100), round(negatives * share / 100)
    test = positives - train[0], negatives - train[1]
    return stratified_splits(labels, train=train, test=test, count=count)


def _family(spectrum: Spectrum, function: str, gammas: tuple[float, ...]) -> _Family:
    vectors, values = spectrum.eigenvectors, spectrum.eigenvalues
    grams = []
    for gamma in gammas:
        factors = values * SPECTRAL_FUNCTIONS[function](gamma).of(values / values[0])
        gram = inner_products(vectors * factors, vectors)
        grams.append(gram / gram.diagonal().mean())
    return _Family(grams, float(values[0]))


def _capacity(gram: Matrix, train: Positions, labels: Labels) -> float:
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


def _rows(name: str, weights: str, share: int, capacity: float, scores: Matrix) -> list[Row]:
    """Rows of one kernel and share: `scores` is (splits, 4). A bag of words has no λ."""
    task, method = f"{share} % to train, {weights}", f"{name}, C = {capacity:g}"
    measures = ("alignment", F1.name, ERROR.name, "λ")
    return [
        Row(task, method, measure, published, Value.of(of_measure))
        for measure, published, of_measure in zip(
            measures, PUBLISHED[name, share], scores.T, strict=False
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
