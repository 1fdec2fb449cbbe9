"""Relevance feedback: scores moved by documents that are known to be relevant or not.

    s' = s / |s| + .75 · E+ / |E+| - .15 · E- / |E-|,   E± = Σ_d D(d, ·) over positive and negative

as Rocchio moves a query [1971; Manning, Raghavan & Schütze 2008, §9.1, with these weights], but in
the space of documents, by the expansion D: results need not share a word with positive examples.
|·| is the length over the first documents of s, or over the positive ones for an empty query; each
part is clipped at 0 first.

In several partitions, the sums of the features of the examples and the first documents of s are
those of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Matrix, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.kernels.document_kernel import FeatureSums
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.feedback import clipped_length

POSITIVE: Final = 0.75
NEGATIVE: Final = 0.15


@dataclass(frozen=True)
class _First:
    """The documents over which parts of scores are scaled, and the parts: sums over partitions.

    count     of the best documents by the query, at most
    scores    (n,) of these, largest first
    ordinals  (n,) of these
    parts     (p, n) of their scores
    examples  (p, m) of the positive examples
    """

    count: int
    scores: Scores
    ordinals: npt.NDArray[np.int64]
    parts: Matrix
    examples: Matrix

    def __add__(self, other: _First) -> _First:
        """Return the best of both."""
        scores = np.concatenate((self.scores, other.scores))
        ordinals = np.concatenate((self.ordinals, other.ordinals))
        best = np.lexsort((ordinals, -scores))[: self.count]
        parts = np.hstack((self.parts, other.parts))[:, best]
        examples = np.hstack((self.examples, other.examples))
        return _First(self.count, scores[best], ordinals[best], parts, examples)

    @property
    def lengths(self) -> list[float]:
        """Return the length of each part over the best, or over the examples if there are none."""
        parts = self.parts if len(self.scores) else self.examples
        return [clipped_length(np.ascontiguousarray(part)) for part in parts]


def add_feedback(
    snapshot: Snapshot,
    scores: Scores,
    examples: tuple[DocIds | None, DocIds | None],
    parameters: SearchSettings,
    evidence: Evidence = LOCAL,
) -> Scores:
    """Move the scores of all documents, (N,), by positive and negative examples; at least 0.

    examples  positive and negative ones among these documents; None if there are none at all
    evidence  of the documents of all partitions
    Cost: an expansion of the positive and one of the negative examples.
    """
    expansion = snapshot.expansion_of(parameters)
    parts, weights = [scores], [1.0]
    for doc_ids, weight in zip(examples, (POSITIVE, -NEGATIVE), strict=True):
        if doc_ids is None:
            continue

        def of_all(sums: FeatureSums, weight: float = weight) -> FeatureSums:
            return evidence.total(("examples", weight), lambda: sums)

        ones = np.ones(len(doc_ids), np.float32)
        parts.append(expansion.expand(doc_ids, ones, of_all))
        weights.append(weight)
    positive = np.zeros(0, np.int64) if examples[0] is None else examples[0]
    first = evidence.total(("first",), lambda: _first_of(snapshot, parts, positive, parameters.z))
    result = np.zeros(len(scores), np.float32)
    for part, weight, length in zip(parts, weights, first.lengths, strict=True):
        result += np.float32(weight) * (np.maximum(part, 0) / np.float32(length or 1))
    result = np.maximum(result, 0)
    return result if snapshot.live is None else result * snapshot.live.allowed


def _first_of(snapshot: Snapshot, parts: Sequence[Scores], positive: DocIds, count: int) -> _First:
    """Return the first documents of a snapshot."""
    doc_ids, scores = largest_entries(parts[0], count)
    return _First(
        count,
        scores,
        snapshot.ordinals_of(doc_ids),
        np.stack([part[doc_ids] for part in parts]),
        np.stack([part[positive] for part in parts]),
    )
