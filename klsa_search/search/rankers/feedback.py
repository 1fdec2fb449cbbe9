"""Pseudo-relevance feedback (RM3, Rocchio) and relevance feedback from examples.

    q' = original · q / ‖q‖ + model · m / ‖m‖,   m = Σ_d weight(d) · f(d) / ‖f(d)‖

over the best documents d of BM25, with f(d) their counts of terms and m cut to its largest terms.

RM3      norm 1, so that f(d) / ‖f(d)‖ is the maximum likelihood P(t|d); weight(d) the document's
         score; m a relevance model [Lavrenko & Croft, SIGIR 2001], mixed with the query half and
         half [Abdul-Jaleel et al., TREC 2004].
Rocchio  norm 2 and weight(d) = 1, the mean of unit vectors; α = 1, β = 0.75, γ = 0 [Rocchio 1971;
         Manning, Raghavan & Schütze 2008, §9.1], no document being known as not relevant.

As in Anserini: BM25 in both rounds, its score as the query's likelihood, ten documents, RM3's half,
and Rocchio's unit vectors and weights. Unlike Anserini: 20 terms instead of 10, and terms of more
than a tenth of all documents are kept; on average both help on the four SMART collections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.lowrank.expansion_matrix import top_z
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import Snapshot
from klsa_search.search.rankers.bm25 import boosted_bm25
from klsa_search.search.rankers.totals import Total, own_total

if TYPE_CHECKING:
    from scipy import sparse


DOCUMENTS = 10
TERMS = 20


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """Parameters of a feedback method, named as in the formula above.

    norm      1 or 2
    by_score  weight(d) is the document's score, else 1
    """

    norm: int
    by_score: bool
    original: float
    model: float


RM3 = Feedback(norm=1, by_score=True, original=0.5, model=0.5)
ROCCHIO = Feedback(norm=2, by_score=False, original=1.0, model=0.75)


def rank_rm3(
    snapshot: Snapshot,
    query: QueryTerms,
    parameters: SearchSettings,
    dimensions: int,
    total: Total = own_total,
) -> Scores:
    """Return BM25 scores with a relevance model. Cost: the postings of up to 20 more terms."""
    return _rank(snapshot, query, parameters, RM3)


def rank_rocchio(
    snapshot: Snapshot,
    query: QueryTerms,
    parameters: SearchSettings,
    dimensions: int,
    total: Total = own_total,
) -> Scores:
    """Return BM25 scores of the query moved towards its best documents. Cost: as for RM3."""
    return _rank(snapshot, query, parameters, ROCCHIO)


def _rank(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, feedback: Feedback
) -> Scores:
    return boosted_bm25(
        snapshot, expand_query(snapshot, query, parameters, feedback)[0], parameters
    )


def expand_query(
    snapshot: Snapshot, query: QueryTerms, parameters: SearchSettings, feedback: Feedback
) -> tuple[QueryTerms, DocIds]:
    """Return the query expanded by its best documents, and these; unchanged if there are none."""
    best, scores = top_z(boosted_bm25(snapshot, query, parameters), DOCUMENTS)
    if not len(best):
        return query, best
    return add_terms(query, snapshot.content_counts_of(best), scores, feedback), best


def add_terms(
    query: QueryTerms, counts: sparse.csr_array, scores: Scores, feedback: Feedback
) -> QueryTerms:
    """Add the terms of documents to the counts of a query: q' · ‖q‖ / original.

    Scaled so that scores remain in BM25 units, and a model of weight 0 gives BM25 to the bit.

    query   at least one term
    counts  f(d): (n, V) sparse, of the best documents
    scores  (n,) their BM25 scores
    Cost: the entries of `counts`. Of terms with equal shares the first of the vocabulary are used.
    """
    norm = feedback.norm
    documents = np.repeat(np.arange(len(scores)), np.diff(counts.indptr))
    squares = np.bincount(documents, weights=counts.data**norm, minlength=len(scores))
    lengths = squares ** (1 / norm)
    weights = (scores if feedback.by_score else 1) / np.where(lengths > 0, lengths, 1)
    terms, columns = np.unique(counts.indices, return_inverse=True)
    model = np.asarray(np.bincount(columns, counts.data * weights[documents]), dtype=np.float64)
    largest, shares = top_z(model, TERMS)
    scale = feedback.model / feedback.original * np.linalg.norm(query.counts, norm)
    numbers, places = np.unique(
        np.concatenate((query.numbers, terms[largest])), return_inverse=True
    )
    added = np.concatenate((query.counts, scale * shares / np.linalg.norm(shares, norm)))
    return QueryTerms(numbers, np.bincount(places, weights=added).astype(np.float32))


def clipped_length(scores: Scores) -> float:
    """Return the length of scores that are clipped at 0."""
    positive = np.maximum(scores, 0)
    # Not by BLAS, whose rounding depends on its threads.
    return float(np.sqrt(np.einsum("n,n->", positive, positive, dtype=np.float64)))
