"""Shares of a query that documents and their neighbours cover, for any ranker.

`lowrank.coverage` has the formula. Here all live documents count, not only the best of a query, and
each term counts once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds
from klsa_search.lowrank.coverage import HALF, NEIGHBOURHOOD
from klsa_search.lowrank.sparse_expansion import LEVELS
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot

Values = npt.NDArray[np.float64]


def shares_of(snapshot: Snapshot, query: QueryTerms, unknown: int, documents: DocIds) -> Values:
    """Return T of documents as a share of the query: (d,).

    unknown  distinct terms of the query that no document contains
    Cost: see `_term_coverage`.
    """
    weights = snapshot.query_kernel.term_weights[query.numbers].astype(np.float64)
    total = weights.sum() + unknown * snapshot.query_kernel.unseen
    if not len(documents) or not total:
        return np.zeros(len(documents))
    covered = np.zeros(len(documents))
    shares = _term_coverage(snapshot, query.numbers, documents)
    for weight, share in zip(weights, shares, strict=True):
        covered += weight * share
    return np.asarray(covered / total)


def shares_with(
    snapshot: Snapshot,
    analyzed: Collection[str],
    synonyms: Mapping[str, Collection[tuple[str, ...]]],
    documents: DocIds,
) -> Values:
    """Return T of documents, with synonyms if they are covered better: (d,).

    synonyms  by term, the known terms of each synonym, whose mean counts
    """
    numbers, weights = snapshot.vocabulary.numbers, snapshot.query_kernel.term_weights
    others = (term for some in synonyms.values() for terms in some for term in terms)
    term_numbers = sorted({numbers[term] for term in (*analyzed, *others) if term in numbers})
    of_known = _term_coverage(snapshot, np.array(term_numbers, np.int64), documents)
    coverage = dict(zip(term_numbers, of_known, strict=True))
    covered, total, nothing = np.zeros(len(documents)), 0.0, np.zeros(len(documents))
    for term in sorted(analyzed):
        number = numbers.get(term)
        best = nothing if number is None else coverage[number]
        for terms in synonyms.get(term, ()):
            best = np.maximum(best, np.mean([coverage[numbers[term]] for term in terms], axis=0))
        weight = snapshot.query_kernel.unseen if number is None else float(weights[number])
        covered, total = covered + weight * best, total + weight
    return np.asarray(covered / total)


def contain_all(
    snapshot: Snapshot,
    analyzed: Collection[str],
    synonyms: Mapping[str, Collection[tuple[str, ...]]],
    documents: DocIds,
) -> npt.NDArray[np.bool_]:
    """Return whether each document contains every term or a synonym of it: (d,)."""
    numbers = snapshot.vocabulary.numbers

    def contain(terms: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        if not all(term in numbers for term in terms):
            return np.zeros(len(documents), np.bool_)
        term_numbers = np.array([numbers[term] for term in terms], np.int64)
        contained: npt.NDArray[np.bool_] = (
            snapshot.bm25_engine.saturations(term_numbers, documents) > 0
        )
        return np.asarray(contained.all(axis=1))

    every = np.ones(len(documents), np.bool_)
    for term in analyzed:
        if not every.any():  # soon, for long queries
            break
        every &= np.any([contain(form) for form in ((term,), *synonyms.get(term, ()))], axis=0)
    return every


def _term_coverage(snapshot: Snapshot, terms: npt.NDArray[np.int64], documents: DocIds) -> Values:
    """Return g of each term in the documents: (n, d), from 0 to 1.

    Cost: a look-up for each term in each document and its neighbours.
    """
    rows = snapshot.sparse_expansion.rows[documents, : snapshot.neighbour_count]
    levels = (rows & np.uint32(LEVELS)).astype(np.float64)
    shares = levels / np.maximum(levels.sum(axis=1, keepdims=True), 1.0)  # of sum 1 or 0
    near = (rows >> np.uint32(8)).astype(np.int64)
    candidates, places = np.unique(
        np.concatenate((documents[:, None], near), 1), return_inverse=True
    )
    places = places.reshape(len(documents), -1)
    steps = snapshot.query_kernel.postings.step * snapshot.live_docs()[candidates].astype(
        np.float64
    )
    saturations = snapshot.bm25_engine.saturations(terms, candidates).T * steps
    of_neighbours = np.einsum("dn,tdn->td", shares, saturations[:, places[:, 1:]])
    covered = saturations[:, places[:, 0]] + NEIGHBOURHOOD * of_neighbours
    return np.asarray(covered / (covered + HALF))
