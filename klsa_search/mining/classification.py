"""Labels of documents and texts, learned from a few labelled documents.

Regularised least squares, one label against the others, on the unit coordinates of the latent
space: the latent semantic kernel as a linear classifier [LSK §4]. The coordinates come from all
documents, labelled or not, which is why few labels are enough. Those of vectors can be used instead
or be added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from klsa_search.core.array_types import DocIds, Matrix
from klsa_search.core.parallel import one_blas_thread
from klsa_search.errors import QueryError
from klsa_search.mining.similar import LATENT, document_coordinates, text_coordinates
from klsa_search.search.index import Index
from klsa_search.search.ranking.parameters import checked_integer

RIDGE: Final = 1.0  # ridge parameter; each labelled document has coordinates of length 1
_BLOCK: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """Label of a document or text.

    id      ID of the document; None for a text
    label   label with the highest score
    margin  difference to the second highest score
    scores  score of each label: about 1 if the document is similar to those with the label, 0 if
            not; their sum is 1
    """

    id: str | None
    label: str
    margin: float
    scores: Mapping[str, float]


def classify(
    index: Index,
    labels: Mapping[str, str],
    ids: Iterable[str] | None = None,
    *,
    k: int | None = None,
    kernel: str = LATENT,
) -> tuple[Classification, ...]:
    """Return labels of documents, learned from a few labelled documents.

    labels  labels of some documents by ID; at least two different labels
    ids     IDs of documents to label, in the order of the result; by default all documents without
            a label, by descending margin, then by doc id
    k       maximum number of results, if `ids` is not given
    kernel  "latent", "vectors:SPACE" or "sum:SPACE", the sum of both

    Method: regularised least squares on coordinates of length 1, one label against the others
    (Cristianini, Shawe-Taylor & Lodhi, JIIS 2002, section 4). Cost: O(n · m² + m³) for n labelled
    documents and m dimensions, and O(m) per label and result. DocumentNotFound; QueryError.

    >>> labels = {"heat": "engine", "tyre": "wheels"}
    >>> [(one.id, one.label) for one in classify(index, labels, ["pump", "grip"])]
    [('pump', 'engine'), ('grip', 'wheels')]
    >>> classify(index, labels, k=1)
    (Classification(id='copy', label='wheels', margin=..., scores={...}),)
    """
    most = None if k is None else checked_integer("k", k)
    coordinates = document_coordinates(index, kernel)
    classifier = _Classifier.of(index, labels, coordinates)
    if ids is not None:
        requested = list(ids)
        points = coordinates[index.arrays.rows_of(index.doc_ids(requested))]
        return _results(requested, classifier.names, classifier.scores(points))
    unlabelled = index.arrays.live_docs().copy()
    unlabelled[classifier.rows] = False
    rest = index.arrays.in_order(unlabelled)
    scores = np.concatenate(
        [np.zeros((0, len(classifier.names)))]
        + [
            classifier.scores(coordinates[rest[begin : begin + _BLOCK]])
            for begin in range(0, len(rest), _BLOCK)
        ]
    )
    order = np.argsort(-_margins(scores), kind="stable")[:most]
    ids_ = index.ids(index.arrays.doc_ids_at(rest[order]))
    return _results(ids_, classifier.names, scores[order])


def classify_texts(
    index: Index, labels: Mapping[str, str], texts: Iterable[str]
) -> tuple[Classification, ...]:
    """Return labels of texts, in order, learned from labelled documents. See `classify`.

    Texts have no vectors, so only words count. The scores of a text without a known term are the
    shares of the labels. Cost: that of `classify`, and of analysing the texts.

    >>> labels = {"heat": "engine", "tyre": "wheels"}
    >>> [one.label for one in classify_texts(index, labels, ["bald in the rain"])]
    ['wheels']
    """
    texts_ = list(texts)
    for text in texts_:
        if not isinstance(text, str):
            raise QueryError(f"texts contains {text!r}; give strings", field="texts")
    classifier = _Classifier.of(index, labels, document_coordinates(index, LATENT))
    scores = classifier.scores(text_coordinates(index, texts_))
    return _results([None] * len(texts_), classifier.names, scores)


@dataclass(frozen=True)
class _Classifier:
    """Scores x ↦ (x - mean) · weights + shares, one column for each name.

    rows     of the labelled documents
    mean     (m,) their mean
    weights  (m, c)
    shares   (c,) share of each label among them
    """

    names: tuple[str, ...]
    rows: DocIds
    mean: Matrix
    weights: Matrix
    shares: Matrix

    @classmethod
    def of(cls, index: Index, labels: Mapping[str, str], coordinates: Matrix) -> _Classifier:
        """Fit to labelled documents; QueryError for fewer than two labels.

        coordinates  (N, m) of all documents
        """
        names = _names(labels)
        rows = index.arrays.rows_of(index.doc_ids(list(labels)))
        points = coordinates[rows].astype(np.float64)
        targets = np.array([[float(label == name) for name in names] for label in labels.values()])
        mean, shares = points.mean(axis=0), targets.mean(axis=0)
        points, targets = points - mean, targets - shares
        # Not with BLAS, whose result depends on the number of threads.
        squares = np.einsum("nm,nl->ml", points, points) + RIDGE * np.eye(len(mean))
        with one_blas_thread():
            weights = np.linalg.solve(squares, np.einsum("nm,nc->mc", points, targets))
        return cls(names, rows, mean, weights, shares)

    def scores(self, points: Matrix) -> Matrix:
        """Return scores (n, c) of points (n, m); the shares of the labels for a point at 0."""
        exact = np.asarray(points, np.float64)
        scores = np.einsum("nm,mc->nc", exact - self.mean, self.weights) + self.shares
        return np.where(exact.any(axis=1, keepdims=True), scores, self.shares)


def _names(labels: Mapping[str, str]) -> tuple[str, ...]:
    for label in labels.values():
        if not isinstance(label, str):
            raise QueryError(f"labels contains {label!r}; give strings", field="labels")
    names = tuple(sorted(set(labels.values())))
    if len(names) < 2:
        count = f"there is only {names[0]!r}" if names else "there is none"
        raise QueryError(
            f"labels: at least two different labels are needed, and {count}; add "
            "documents with another label",
            field="labels",
        )
    return names


def _margins(scores: Matrix) -> Matrix:
    ordered = np.sort(scores, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


def _results(
    ids: Sequence[str | None], names: Sequence[str], scores: Matrix
) -> tuple[Classification, ...]:
    best = scores.argmax(axis=1) if len(scores) else np.zeros(0, np.int64)
    margins = _margins(scores)
    return tuple(
        Classification(
            id=id,
            label=names[best[i]],
            margin=float(margins[i]),
            scores=dict(zip(names, scores[i].tolist(), strict=True)),
        )
        for i, id in enumerate(ids)  # noqa: A001 - the field's own name
    )
