"""Vectors as one more kernel: what the vector of a query adds to the scores of documents.

    score(d) = s(d) + w(c) · s₁ · (max(z(d), 0) / 5)ᵖ,   w(c) = a + b (1 - c²)

s   score by words, and s₁ that of the best document, 1 if no word is found
z   cosine of d and the query, less its mean over all documents with a vector, in units of its
    standard deviation
c   share of the weight of the words of the query that the first document of BM25 contains; words
    that no document contains count as the rarest

What stands out among all documents counts, and the more, the less the words say. The part depends
on no filter, so a filter changes no score. `docs/explanations/effectiveness.md` has how a, b and p
were chosen. Documents match if they match by words or are among the nearest `NEAREST`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from klsa_search.collection.vectors import Rows, quantised
from klsa_search.core.array_types import Scores
from klsa_search.errors import QueryError
from klsa_search.kernels.vector_space import ABSENT, VectorSpaces
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.workspace import TopDocs
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.query.terms import UNKNOWN
from klsa_search.search.ranking import Rank, scores_of
from klsa_search.search.snapshot import Snapshot

NEAREST: Final = 100
"""Documents without a word of the query that match by their vectors, at most."""

_UNIT: Final = 5.0
_EXACT: Final = 2**16
"""Cosines are summed as integers of this unit, so that sums do not depend on their order."""

GivenVector = Mapping[str, object]
"""The vector of a search: the name of its space, and an array or list of numbers."""


class Influence(NamedTuple):
    """How much vectors say: a, b and p of the module's formula."""

    least: float = 0.5
    more: float = 0.5
    power: float = 3.0

    def weight(self, contained: float) -> float:
        """Return w(c)."""
        return self.least + self.more * (1 - contained**2)


INFLUENCE: Final = Influence()


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The vector of a query in one space: (1, dimension), in stored form."""

    space: str
    row: Rows


@dataclass(frozen=True, slots=True)
class VectorParts:
    """What the vector of a query adds to the score of each document.

    values   (N,) float32
    cosines  (N,) float32, `ABSENT` for documents without a vector
    weight   w(c)
    """

    space: str
    values: Scores
    cosines: Scores
    weight: float


def checked_vector(given: object, spaces: VectorSpaces) -> QueryVector | None:
    """Return the vector of a search, as `{space: vector}`; QueryError."""
    if given is None:
        return None
    known = ", ".join(f"`{name}`" for name in sorted(spaces)) or "none"
    if not isinstance(given, Mapping) or len(given) != 1:
        raise QueryError(
            "vector: give one vector, as a mapping of the name of its space to it; the spaces are: "
            f"{known}",
            field="vector",
        )
    ((name, value),) = given.items()
    space = spaces.get(name)
    if space is None:
        raise QueryError(
            f"vector: no document has a vector in the space {str(name)[:60]!r}; the spaces are: "
            f"{known}",
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
    snapshot: Snapshot,
    query: ParsedQuery,
    vector: QueryVector,
    rank: Rank,
    influence: Influence = INFLUENCE,
) -> VectorParts:
    """Return what the vector of a query adds to the score of each document.

    rank  by words
    Cost: see `VectorSpace.cosines`, and a ranking of the best document.
    """
    cosines = snapshot.vectors[vector.space].cosines(vector.row[0], len(snapshot))
    if snapshot.live is not None:
        cosines[~snapshot.live.allowed] = ABSENT
    best = rank(1, None).scores
    weight = influence.weight(contained_share(snapshot, query))
    scale = weight * (float(best[0]) if len(best) else 1.0)
    standing = np.maximum(standardised(cosines), 0) / _UNIT
    values = (scale * standing**influence.power).astype(np.float32)
    return VectorParts(vector.space, values, cosines, weight)


def with_vectors(rank: Rank, parts: VectorParts) -> Rank:
    """Return a ranking by words and vectors.

    Exact for the scores by words: more documents are ranked by words until no other can be among
    the k best.
    """
    values = parts.values

    def ranked(k: int, mask: Mask | None) -> TopDocs:
        nearest, near = top_z(values if mask is None else values * mask.allowed, NEAREST)
        by_words = scores_of(rank, nearest, len(values))
        furthest = near[-1] if len(near) == NEAREST else np.float32(0)
        size = max(2 * k, 20)
        while True:
            own = rank(size, mask)
            others = ~np.isin(nearest, own.doc_ids)
            doc_ids = np.concatenate((own.doc_ids, nearest[others]))
            scores = np.concatenate((own.scores, by_words[others])) + values[doc_ids]
            order = np.lexsort((doc_ids, -scores))[:k]
            complete = len(own.doc_ids) < size
            if complete or scores[order[-1]] >= own.scores[-1] + furthest:
                total = own.total + int(np.count_nonzero(by_words == 0))
                return TopDocs(doc_ids[order], scores[order], total)
            size *= 2

    return ranked


def contained_share(snapshot: Snapshot, query: ParsedQuery) -> float:
    """Return c."""
    common = set(snapshot.common.tolist())
    known = sorted({term for term in query.terms if term >= 0} - common)
    weights = snapshot.query_kernel.term_weights[known]
    unknown = sum(term == UNKNOWN for term in query.terms) * snapshot.largest_weight
    (first,) = snapshot.bm25_engine.top([query.terms], 1)
    if not len(first.doc_ids) or not weights.any():
        return 0.0
    contained = np.isin(known, snapshot.counts_of(first.doc_ids.astype(np.int64)).indices)
    return float(weights[contained].sum() / (weights.sum() + unknown))


def standardised(cosines: Scores) -> np.ndarray[Any, np.dtype[np.float64]]:
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
