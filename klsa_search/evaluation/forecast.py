"""Prediction of the difficulty of queries, without judgements.

    WIG(q) = (mean of the first five BM25 scores - s(C)) / √|q|

is the weighted information gain of [Zhou, Croft 2007]: how far the results are above the
collection. s(C) is the BM25 score of the collection as one document,

    s(C) = Σ_t f(t,q) · h(t) · w(t) · (k1 + 1) · c_t / (c_t + k1 · (1 - b + b · N))

for N documents with c_t occurrences of t in total; |q| is the number of terms of the query, unknown
ones included. It was chosen for its correlation with the quality of the default ranking
(`python -m studies.effectiveness difficulty`), whose own scores are normalised by query and
predict less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from klsa_search.collection.model import Query
from klsa_search.evaluation.runs import AS_WORDS
from klsa_search.search.index import Index

_FIRST: Final = 5
"""Number of scores, as in the paper."""


class Forecast(NamedTuple):
    """Prediction for one query.

    query  ID and text
    wig    weighted information gain: higher is easier; None if nothing is found
    """

    query: Query
    wig: float | None


def forecast(index: Index, queries: Sequence[Query]) -> list[Forecast]:
    """Return queries in order of expected difficulty, the most difficult first.

    The prediction is the weighted information gain of BM25 (Zhou & Croft, SIGIR 2007). It orders
    the queries of one index; it is not a probability, and not comparable across indexes. Queries
    are read as plain words. Cost: the five best documents by BM25 per query.
    """
    texts = [query.text for query in queries]
    plain = {"ranker": "bm25", "boosts": ""}
    rankings = index.rank_many(texts, _FIRST, **{**AS_WORDS, **plain})
    forecasts = []
    for query, (_, scores) in zip(queries, rankings, strict=True):
        terms = index.analyzer.terms(query.text)
        wig = None
        if len(scores):
            gain = float(scores.mean(dtype=np.float64)) - score_of_collection(index, terms)
            wig = gain / len(terms) ** 0.5
        forecasts.append(Forecast(query, wig))
    return sorted(forecasts, key=lambda each: -np.inf if each.wig is None else each.wig)


def score_of_collection(index: Index, terms: Sequence[str]) -> float:
    """Return s(C) for the terms of a query; 0 if no document contains any."""
    settings, bm25, numbers = (
        index.settings,
        index.arrays.query_kernel,
        index.arrays.vocabulary.numbers,
    )
    counts = Counter(numbers[term] for term in terms if term in numbers)
    term_ids = np.array([*counts], np.int64)
    c = bm25.occurrences[term_ids].astype(np.float64)
    norm = settings.k1 * (1 - settings.b + settings.b * bm25.documents)
    weights = np.array([*counts.values()], np.float64) * bm25.term_weights[term_ids]
    # A term without live documents has score 0, also for k1 = 0.
    saturations = np.where(c > 0, (settings.k1 + 1) * c / np.where(c > 0, c + norm, 1.0), 0.0)
    return float((weights * saturations).sum())
