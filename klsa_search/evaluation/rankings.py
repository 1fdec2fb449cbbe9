"""From an index and queries to a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypedDict, Unpack

import numpy as np

from klsa_search import keywords
from klsa_search.collection import Query
from klsa_search.evaluation.runs import Ranking
from klsa_search.search import Index
from klsa_search.search.batch import ids_by_position

AS_WORDS: Final[dict[str, Any]] = {"operators": False, "spelling": "off", "synonyms": False}
"""Parameters that take the words of a query as they stand."""

_AT_ONCE: Final = 4096
"""Queries of a batch that are in memory with their hits."""


class SearchParameters(TypedDict, total=False):
    """How to search; what is left out is the index's own setting."""

    ranker: str
    alpha: float
    z: int
    dimensions: int
    sharpness: float
    spectral: str
    gamma: float
    operators: bool
    spelling: str
    synonyms: bool


def rank_all(
    index: Index, queries: Iterable[Query], **parameters: Unpack[SearchParameters]
) -> Iterator[Ranking]:
    """Rank every document of the index for each query, lazily, in the order of the queries.

    Order: score descending, then document order, down to the last document; empty if no score is
    above 0, for then the index has nothing to say. Queries are read as any search reads them;
    `AS_WORDS` takes their words as they stand. QueryError for a bad parameter.
    Cost a query: that of `Index.scores`, and O(N log N) to sort.
    """
    ids = np.array(index.ids(), dtype=object)
    chosen: dict[str, Any] = {**parameters}
    for query in queries:
        scores = index.scores(query.text, **chosen)
        if len(scores) > len(ids):  # there are positions without a document
            scores = scores[index.snapshot.counting()]
        order = np.argsort(-scores, kind="stable")
        if not scores.max(initial=0) > 0:
            order = order[:0]
        yield Ranking(query.id, tuple(ids[order]), scores[order])


def rank_best(
    index: Index,
    queries: Sequence[Query],
    k: int,
    *,
    threads: int = 1,
    dimensions: int | None = None,
    **parameters: Unpack[keywords.SearchParameters],
) -> Iterator[Ranking]:
    """Rank the k best documents for each query, lazily, in the order of the queries.

    What `Index.rank_many` gives, with its parameters, some thousand queries in memory at a time.
    """
    ids = ids_by_position(index)
    for begin in range(0, len(queries), _AT_ONCE):
        some = queries[begin : begin + _AT_ONCE]
        texts = [query.text for query in some]
        answers = index.rank_many(texts, k, threads=threads, dimensions=dimensions, **parameters)
        for query, (positions, scores) in zip(some, answers, strict=True):
            yield Ranking(query.id, tuple(ids[positions]), scores)
