"""Run queries on an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Unpack

from klsa_search.collection import Query
from klsa_search.evaluation.runs import Ranking
from klsa_search.keywords import SearchParameters
from klsa_search.search.batch import ids_by_position
from klsa_search.search.index import Index

AS_WORDS: Final[dict[str, Any]] = {"operators": False, "spelling": "off", "synonyms": False}
"""Parameters that read queries as plain words."""

_AT_ONCE: Final = 4096
"""Queries of a batch that are in memory with their hits."""


DEPTH: Final = 1000
"""Documents of a ranking that are judged, as is usual in TREC."""


def rank_best(
    index: Index,
    queries: Sequence[Query],
    k: int = DEPTH,
    *,
    threads: int = 1,
    dimensions: int | None = None,
    **parameters: Unpack[SearchParameters],
) -> Iterator[Ranking]:
    """Yield the k best documents for each query, in order.

    Takes the parameters of `Index.rank_many`. Memory: some thousand queries at a time.
    """
    ids = ids_by_position(index)
    for begin in range(0, len(queries), _AT_ONCE):
        some = queries[begin : begin + _AT_ONCE]
        texts = [query.text for query in some]
        answers = index.rank_many(texts, k, threads=threads, dimensions=dimensions, **parameters)
        for query, (positions, scores) in zip(some, answers, strict=True):
            yield Ranking(query.id, tuple(ids[positions]), scores)
