"""Vectors as one more kernel: what the vector of a query adds to the scores of documents.

    score(d) = s(d) + w · s₁ · (max(z(d), 0) / 5)ᵖ

s   score by words, and s₁ that of the best document, 1 if no word is found
z   cosine of d and the query, less its mean over all documents with a vector, in units of its
    standard deviation

What stands out among all documents counts, and a model that does not know the language of the
documents lets none stand out. The part depends on no filter, so a filter changes no score.
`docs/explanations/effectiveness.md` has how w and p were chosen, and what was tried. Documents
match if they match by words or are among the nearest `NEAREST`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import add
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.vectors import Rows, quantised
from klsa_search.core.array_types import DocIds, DocumentMask, Numbers, Scores
from klsa_search.errors import QueryError
from klsa_search.kernels.vector_space import ABSENT, VectorSpaces
from klsa_search.search.engine.evidence import LOCAL, Evidence
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.engine.top_docs import Rank, TopDocs, ranked

NEAREST: Final = 100
"""Documents without a word of the query that match by their vectors, at most."""

_UNIT: Final = 5.0
_EXACT: Final = 2**16
"""Cosines are summed as integers of this unit, so that sums do not depend on their order."""

Deviations = npt.NDArray[np.float64]

WEIGHT: Final = 0.5
POWER: Final = 3.0
"""How much vectors say: w and p of the module's formula."""


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The vector of a query in one space: (1, dimension), in stored form."""

    space: str
    row: Rows


@dataclass(frozen=True, slots=True)
class VectorParts:
    """What the vector of a query adds to the score of each document.

    values      (N,) float32
    cosines     (N,) float32, `ABSENT` for documents without a vector
    deviations  (N,) z
    matches     (N,) whether each document matches by its vector
    furthest    largest value of a document that does not, at most
    """

    space: str
    values: Scores
    cosines: Scores
    deviations: Deviations
    matches: DocumentMask
    furthest: np.float32


class Moments(NamedTuple):
    """Number, sum and sum of squares of cosines, as integers of `1 / _EXACT`."""

    documents: int
    total: int
    squares: int


@dataclass(frozen=True, slots=True)
class VectorTotals:
    """What scores by vectors depend on, of all documents: sums over partitions.

    moments    of the cosines: see `moments_of`
    best       score by words of the best document; 0 if no word is found
    nearest    (n,) cosines of the nearest documents that a search may find, largest first
    ordinals   (n,) of these
    """

    moments: Moments
    best: float
    nearest: npt.NDArray[np.float32]
    ordinals: Numbers

    def __add__(self, other: VectorTotals) -> VectorTotals:
        """Return the totals of the documents of both."""
        nearest = np.concatenate((self.nearest, other.nearest))
        ordinals = np.concatenate((self.ordinals, other.ordinals))
        first = np.lexsort((ordinals, -nearest))[:NEAREST]
        moments = Moments(*map(add, self.moments, other.moments))
        best = max(self.best, other.best)
        return VectorTotals(moments, best, nearest[first], ordinals[first])

    def values(self, deviations: Deviations) -> Scores:
        """Return what z adds to the score of each document."""
        scale = WEIGHT * (self.best or 1.0)
        values = scale * (np.maximum(deviations, 0) / _UNIT) ** POWER
        return values.astype(np.float32)


def checked_vector(vector: object, spaces: VectorSpaces) -> QueryVector | None:
    """Return the vector of a search, as `{space: vector}`; QueryError."""
    if vector is None:
        return None
    choices = ", ".join(f"`{name}`" for name in sorted(spaces)) or "none"
    if not isinstance(vector, Mapping) or len(vector) != 1:
        raise _invalid(
            "give one vector, as a mapping of the name of its space to it; the spaces are: "
            f"{choices}"
        )
    ((name, value),) = vector.items()
    space = spaces.get(name)
    if space is None:
        raise _invalid(
            f"no document has a vector in the space {str(name)[:60]!r}; the spaces are: {choices}"
        )
    try:
        row = quantised(value)
    except ValueError as error:
        raise _invalid(f"the vector of `{name}` {error}") from None
    if row.shape != (1, space.dimension):
        size = " x ".join(map(str, row.shape)) if len(row) > 1 else f"{row.shape[1]:,}"
        raise _invalid(
            f"the vector of `{name}` has {size} values, and the space has {space.dimension:,}; "
            "use the model that the documents were embedded with"
        )
    return QueryVector(name, row)


def _invalid(reason: str) -> QueryError:
    return QueryError(f"vector: {reason}", field="vector")


def vector_parts(
    snapshot: Snapshot,
    vector: QueryVector,
    rank: Rank,
    mask: Mask | None = None,
    evidence: Evidence = LOCAL,
) -> VectorParts:
    """Return what the vector of a query adds to the score of each document.

    rank      by words
    mask      documents that the search may find, of which the nearest match
    evidence  of the documents of all partitions
    Cost: see `VectorSpace.cosines`, and a ranking of the best document.
    """
    cosines = snapshot.vectors[vector.space].cosines(vector.row[0], len(snapshot))
    if snapshot.live is not None:
        cosines[~snapshot.live.allowed] = ABSENT
    totals = evidence.total(("vector",), lambda: _totals(snapshot, cosines, rank, mask))
    deviations = standardised(cosines, totals.moments)
    values = totals.values(deviations)
    matches, furthest = values > 0, np.float32(0)
    if len(totals.nearest) == NEAREST:
        last = totals.nearest[-1:]
        tied = np.flatnonzero(matches & (cosines == last))
        matches &= cosines > last
        matches[tied] = snapshot.ordinals_of(tied) <= totals.ordinals[-1]
        (furthest,) = totals.values(standardised(last, totals.moments))
    return VectorParts(vector.space, values, cosines, deviations, matches, furthest)


def _totals(snapshot: Snapshot, cosines: Scores, rank: Rank, mask: Mask | None) -> VectorTotals:
    present = cosines != ABSENT
    best = rank(1, None).scores
    documents = np.flatnonzero(present if mask is None else present & mask.allowed)
    if len(documents) > NEAREST:
        least = np.partition(cosines[documents], -NEAREST)[-NEAREST]
        documents = documents[cosines[documents] >= least]
    ordinals = snapshot.ordinals_of(documents)
    first = np.lexsort((ordinals, -cosines[documents]))[:NEAREST]
    of_best = float(best[0]) if len(best) else 0.0
    return VectorTotals(moments_of(cosines), of_best, cosines[documents[first]], ordinals[first])


def with_vectors(rank: Rank, parts: VectorParts, always: DocIds | None = None) -> Rank:
    """Return a ranking by words and vectors.

    always  documents that match in any case, such as pinned ones; None for all
    Exact for the scores by words: more documents are ranked by words until no other can be among
    the k best.
    """
    values, near, furthest = parts.values, parts.matches.copy(), parts.furthest
    if always is None:
        near, furthest = values > 0, np.float32(0)
    else:
        near[always] = values[always] > 0

    def by_both(k: int, mask: Mask | None, *, matches: bool = False) -> TopDocs:
        nearest = np.flatnonzero(near if mask is None else near & mask.allowed)
        by_words = ranked(rank, nearest, len(values))
        size = max(2 * k, 20)
        while True:
            top = rank(size, mask, matches=matches)
            candidates = top.joined(by_words.at(~np.isin(nearest, top.doc_ids)))
            scores = candidates.scores + values[candidates.doc_ids]
            order = np.lexsort((candidates.doc_ids, -scores))[:k]
            complete = len(top.doc_ids) < size
            if complete or scores[order[-1]] >= top.scores[-1] + furthest:
                only_near = nearest[by_words.scores == 0]
                both = candidates.at(order).rescored(scores[order], top.total + len(only_near))
                if both.matches is None:
                    return both
                return both._replace(
                    matches=both.matches | Mask.of_documents(only_near, len(values))
                )
            size *= 2

    return by_both


def moments_of(cosines: Scores) -> Moments:
    """Return the moments of the cosines of documents that have a vector."""
    present = cosines[cosines != ABSENT].astype(np.float64)
    exact = np.rint(present * _EXACT).astype(np.int64)
    return Moments(len(exact), int(exact.sum()), int((exact * exact).sum()))


def standardised(cosines: Scores, moments: Moments) -> Deviations:
    """Return z of documents, 0 for those without a vector, by the moments of all documents."""
    count, total, squares = moments
    present = cosines != ABSENT
    deviations = np.zeros(len(cosines))
    deviations[present] = 1  # if all are equally near
    if count * squares > total * total:
        mean, spread = total / count, math.sqrt(count * squares - total * total) / count
        deviations[present] = (cosines[present] - mean / _EXACT) / (spread / _EXACT)
    return deviations
