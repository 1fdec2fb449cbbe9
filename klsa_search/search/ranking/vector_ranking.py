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
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from klsa_search.collection.vectors import Rows, quantised
from klsa_search.core.array_types import Scores
from klsa_search.errors import QueryError
from klsa_search.kernels.vector_space import ABSENT, VectorSpaces
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.search.engine.engine import TopDocs
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.ranking.rank import Rank, ranked

NEAREST: Final = 100
"""Documents without a word of the query that match by their vectors, at most."""

_UNIT: Final = 5.0
_EXACT: Final = 2**16
"""Cosines are summed as integers of this unit, so that sums do not depend on their order."""

Deviations = npt.NDArray[np.float64]

VectorLike = Mapping[str, object]
"""The vector of a search: the name of its space, and an array or list of numbers."""


class Influence(NamedTuple):
    """How much vectors say: w and p of the module's formula."""

    weight: float = 0.5
    power: float = 3.0


INFLUENCE: Final = Influence()


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
    """

    space: str
    values: Scores
    cosines: Scores
    deviations: Deviations


def checked_vector(vector: object, spaces: VectorSpaces) -> QueryVector | None:
    """Return the vector of a search, as `{space: vector}`; QueryError."""
    if vector is None:
        return None
    choices = ", ".join(f"`{name}`" for name in sorted(spaces)) or "none"
    if not isinstance(vector, Mapping) or len(vector) != 1:
        raise QueryError(
            "vector: give one vector, as a mapping of the name of its space to it; the spaces are: "
            f"{choices}",
            field="vector",
        )
    ((name, value),) = vector.items()
    space = spaces.get(name)
    if space is None:
        raise QueryError(
            f"vector: no document has a vector in the space {str(name)[:60]!r}; the spaces are: "
            f"{choices}",
            field="vector",
        )
    try:
        row = quantised(value)
    except ValueError as error:
        raise QueryError(f"vector: the vector of `{name}` {error}", field="vector") from None
    if row.shape != (1, space.dimension):
        size = " x ".join(map(str, row.shape)) if len(row) > 1 else f"{row.shape[1]:,}"
        raise QueryError(
            f"vector: the vector of `{name}` has {size} values, and the space has "
            f"{space.dimension:,}; use the model that the documents were embedded with",
            field="vector",
        )
    return QueryVector(name, row)


def vector_parts(
    snapshot: Snapshot, vector: QueryVector, rank: Rank, influence: Influence = INFLUENCE
) -> VectorParts:
    """Return what the vector of a query adds to the score of each document.

    rank  by words
    Cost: see `VectorSpace.cosines`, and a ranking of the best document.
    """
    cosines = snapshot.vectors[vector.space].cosines(vector.row[0], len(snapshot))
    if snapshot.live is not None:
        cosines[~snapshot.live.allowed] = ABSENT
    best = rank(1, None).scores
    scale = influence.weight * (float(best[0]) if len(best) else 1.0)
    deviations = standardised(cosines)
    values = scale * (np.maximum(deviations, 0) / _UNIT) ** influence.power
    return VectorParts(vector.space, values.astype(np.float32), cosines, deviations)


def with_vectors(rank: Rank, parts: VectorParts) -> Rank:
    """Return a ranking by words and vectors.

    Exact for the scores by words: more documents are ranked by words until no other can be among
    the k best.
    """
    values = parts.values

    def by_both(k: int, mask: Mask | None) -> TopDocs:
        nearest, near = top_z(values if mask is None else values * mask.allowed, NEAREST)
        by_words = ranked(rank, nearest, len(values))
        furthest = near[-1] if len(near) == NEAREST else np.float32(0)
        size = max(2 * k, 20)
        while True:
            own = rank(size, mask)
            every = own.joined(by_words.at(~np.isin(nearest, own.doc_ids)))
            scores = every.scores + values[every.doc_ids]
            order = np.lexsort((every.doc_ids, -scores))[:k]
            complete = len(own.doc_ids) < size
            if complete or scores[order[-1]] >= own.scores[-1] + furthest:
                total = own.total + int(np.count_nonzero(by_words.scores == 0))
                return every.at(order).rescored(scores[order], total)
            size *= 2

    return by_both


def standardised(cosines: Scores) -> Deviations:
    """Return z of all documents, 0 for those without a vector."""
    present = cosines != ABSENT
    exact = np.rint(cosines[present].astype(np.float64) * _EXACT).astype(np.int64)
    count, total, squares = len(exact), int(exact.sum()), int((exact * exact).sum())
    deviations = np.zeros(len(cosines))
    deviations[present] = 1  # if all are equally near
    if count * squares > total * total:
        mean, spread = total / count, math.sqrt(count * squares - total * total) / count
        deviations[present] = (cosines[present] - mean / _EXACT) / (spread / _EXACT)
    return deviations
