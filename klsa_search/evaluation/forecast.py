"""Prediction of the difficulty of queries, without judgements.

    WIG(q) = (mean of the first five scores of BM25 - s(C)) / √|q|

the weighted information gain of [Zhou, Croft 2007]: how far what is found stands above the
collection as a whole. s(C) is what BM25 gives the collection as one document,

    s(C) = Σ_t f(t,q) · h(t) · w(t) · (k1 + 1) · c_t / (c_t + k1 · (1 - b + b · N))

of N documents with c_t occurrences of t in all, and |q| counts the terms of the query, those that
no document holds among them. It was chosen by how well the default ranking does
(`python -m studies.effectiveness difficulty`), whose own scores are scaled query by query and say
less.
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
"""Scores that count, as the authors have it."""


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
    plain = {"ranker": "bm25", "title_boost": 1.0, "text_boost": 1.0}
    found = index.rank_many(texts, _FIRST, **{**AS_WORDS, **plain})
    forecasts = []
    for query, (_, scores) in zip(queries, found, strict=True):
        terms = index.analyzer.terms(query.text)
        wig = None
        if len(scores):
            above = float(scores.mean(dtype=np.float64)) - score_of_collection(index, terms)
            wig = above / len(terms) ** 0.5
        forecasts.append(Forecast(query, wig))
    return sorted(forecasts, key=lambda each: -np.inf if each.wig is None else each.wig)


def score_of_collection(index: Index, terms: Sequence[str]) -> float:
    """s(C) of the terms of a query; 0 where no document holds any."""
    settings, bm25, numbers = index.settings, index.arrays.bm25, index.arrays.vocabulary.numbers
    counts = Counter(numbers[term] for term in terms if term in numbers)
    asked = np.array([*counts], np.int64)
    c = bm25.occurrences[asked].astype(np.float64)
    norm = settings.k1 * (1 - settings.b + settings.b * bm25.documents)
    weights = np.array([*counts.values()], np.float64) * bm25.term_weights[asked]
    # A term that stands nowhere any more counts for nothing, with k1 = 0 as well.
    saturations = np.where(c > 0, (settings.k1 + 1) * c / np.where(c > 0, c + norm, 1.0), 0.0)
    return float((weights * saturations).sum())
