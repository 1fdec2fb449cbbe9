"""Feedback: pseudo-relevance feedback (RM3, Rocchio), and relevance feedback by examples.

Pseudo-relevance feedback adds terms to a query:

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

Relevance feedback moves scores by documents that are known to be relevant or not:

    s' = s / |s| + .75 · E+ / |E+| - .15 · E- / |E-|,   E± = Σ_d D(d, ·) over positive and negative

as Rocchio moves a query, with these weights, but in the space of documents, by the expansion D:
results need not share a word with positive examples. |·| is the length over the first documents of
s, or over the positive ones for an empty query; each part is clipped at 0 first. In several
partitions, the sums of the features of the examples and the first documents of s are those of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from klsa_search.core.array_types import DocIds, Matrix, Numbers, Scores
from klsa_search.core.parameters import RankingSettings
from klsa_search.kernels.document_kernel import FeatureSums
from klsa_search.lowrank.expansion_matrix import largest_entries
from klsa_search.search.engine.evidence import Evidence
from klsa_search.search.engine.query_terms import QueryTerms
from klsa_search.search.engine.snapshot import FIRST_LATER, Snapshot
from klsa_search.search.rankers.boosted_bm25 import boosted_bm25

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


def rank_expanded(
    feedback: Feedback,
    snapshot: Snapshot,
    query: QueryTerms,
    parameters: RankingSettings,
    evidence: Evidence,
) -> Scores:
    """Return BM25 scores of the expanded query. Cost: the postings of up to 20 more terms."""
    expanded, _ = expand_query(snapshot, query, parameters, feedback, evidence)
    return boosted_bm25(snapshot, expanded, parameters)


@dataclass(frozen=True)
class BestDocuments:
    """The best documents of a query, best first: sums over partitions.

    count       at most so many
    scores      (b,)
    ordinals    (b,) order of those with equal scores
    partitions  (b,) number of the partition of each
    values      arrays (b, ...) by name: what a ranking reads of the documents
    """

    count: int
    scores: Scores
    ordinals: Numbers
    partitions: Numbers
    values: Mapping[str, npt.NDArray[Any]]

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        doc_ids: DocIds,
        scores: Scores,
        count: int,
        values: Mapping[str, npt.NDArray[np.generic]],
    ) -> BestDocuments:
        """Return the best documents of a snapshot, by their doc ids."""
        partitions = np.full(len(doc_ids), snapshot.partition)
        return cls(count, scores, snapshot.ordinals_of(doc_ids), partitions, values)

    def __add__(self, other: BestDocuments) -> BestDocuments:
        """Return the best of both."""
        scores = np.concatenate((self.scores, other.scores))
        ordinals = np.concatenate((self.ordinals, other.ordinals))
        partitions = np.concatenate((self.partitions, other.partitions))
        best = np.lexsort((partitions, np.minimum(ordinals, FIRST_LATER), -scores))[: self.count]
        values = {
            name: np.concatenate((value, other.values[name]))[best]
            for name, value in self.values.items()
        }
        return BestDocuments(self.count, scores[best], ordinals[best], partitions[best], values)


def expand_query(
    snapshot: Snapshot,
    query: QueryTerms,
    parameters: RankingSettings,
    feedback: Feedback,
    evidence: Evidence,
) -> tuple[QueryTerms, DocIds]:
    """Return the query expanded by its best documents, and these; unchanged if there are none.

    evidence  adds up what depends on the documents of all partitions; documents of others are not
              returned
    """
    local, scores = largest_entries(boosted_bm25(snapshot, query, parameters), DOCUMENTS)
    if snapshot.collection is None:
        counts = snapshot.content_counts_of(local)
        return (add_terms(query, counts, scores, feedback) if len(local) else query), local
    best = evidence.total(("feedback",), lambda: _best_of(snapshot, local, scores))
    if not len(best.scores):
        return query, local
    from scipy import sparse

    numbers = snapshot.vocabulary.numbers
    terms = best.values["terms"]
    texts, columns = np.unique(np.concatenate([*terms]), return_inverse=True)
    starts = np.cumsum([0, *map(len, terms)])
    counts = sparse.csr_array(
        (np.concatenate([*best.values["counts"]]), columns, starts),
        shape=(len(best.scores), len(texts)),
    )
    of_texts = np.array([numbers[text] for text in texts.tolist()], np.int64)
    expanded = add_terms(query, counts, best.scores, feedback, of_texts)
    ordinals = best.ordinals[best.partitions == snapshot.partition]
    return expanded, local[np.isin(snapshot.ordinals_of(local), ordinals)]


def _best_of(snapshot: Snapshot, doc_ids: DocIds, scores: Scores) -> BestDocuments:
    """Return the best documents of a partition, and an array of each.

    terms   the texts of its terms
    counts  f(t,d)
    """
    counts = snapshot.content_counts_of(doc_ids)
    names = snapshot.vocabulary.terms
    texts = np.array([names[number] for number in counts.indices.tolist()], object)
    entries = {"terms": texts, "counts": counts.data.astype(np.float32)}
    bounds, size = counts.indptr[1:-1], len(doc_ids)
    of_each = {
        name: np.fromiter(np.split(values, bounds)[:size], object, size)
        for name, values in entries.items()
    }
    return BestDocuments.of(snapshot, doc_ids, scores, DOCUMENTS, of_each)


def add_terms(
    query: QueryTerms,
    counts: sparse.csr_array,
    scores: Scores,
    feedback: Feedback,
    numbers_of: Numbers | None = None,
) -> QueryTerms:
    """Add the terms of documents to the counts of a query: q' · ‖q‖ / original.

    Scaled so that scores remain in BM25 units, and a model of weight 0 gives BM25 to the bit.

    query       at least one term
    counts      f(d): (n, V) sparse, of the best documents
    scores      (n,) their BM25 scores
    numbers_of  (V,) term numbers of the columns, if these are others
    Cost: the entries of `counts`. Of terms with equal shares the first of the vocabulary are used.
    """
    norm = feedback.norm
    documents = np.repeat(np.arange(len(scores)), np.diff(counts.indptr))
    squares = np.bincount(documents, weights=counts.data**norm, minlength=len(scores))
    lengths = squares ** (1 / norm)
    weights = (scores if feedback.by_score else 1) / np.where(lengths > 0, lengths, 1)
    terms, columns = np.unique(counts.indices, return_inverse=True)
    terms = terms if numbers_of is None else numbers_of[terms]
    model = np.asarray(np.bincount(columns, counts.data * weights[documents]), dtype=np.float64)
    best, shares = largest_entries(model, TERMS)
    scale = feedback.model / feedback.original * np.linalg.norm(query.counts, norm)
    numbers, positions = np.unique(
        np.concatenate((query.numbers, terms[best])), return_inverse=True
    )
    added = np.concatenate((query.counts, scale * shares / np.linalg.norm(shares, norm)))
    return QueryTerms(numbers, np.bincount(positions, weights=added).astype(np.float32))


def clipped_length(scores: Scores) -> float:
    """Return the length of scores that are clipped at 0."""
    positive = np.maximum(scores, 0)
    # Not by BLAS, whose rounding depends on its threads.
    return float(np.sqrt(np.einsum("n,n->", positive, positive, dtype=np.float64)))


POSITIVE: Final = 0.75
NEGATIVE: Final = 0.15


@dataclass(frozen=True)
class _FirstDocuments:
    """The documents over which parts of scores are scaled, and the parts: sums over partitions.

    best      documents by the query, with the parts of their scores: (n, p)
    examples  (m, p) likewise of the positive examples
    """

    best: BestDocuments
    examples: Matrix

    def __add__(self, other: _FirstDocuments) -> _FirstDocuments:
        return _FirstDocuments(self.best + other.best, np.vstack((self.examples, other.examples)))

    @property
    def lengths(self) -> list[float]:
        """Return the length of each part over the best, or over the examples if there are none."""
        parts = self.best.values["parts"] if len(self.best.scores) else self.examples
        return [clipped_length(np.ascontiguousarray(part)) for part in parts.T]


def add_feedback(
    snapshot: Snapshot,
    scores: Scores,
    examples: tuple[DocIds | None, DocIds | None],
    parameters: RankingSettings,
    evidence: Evidence,
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

    def first_of() -> _FirstDocuments:
        best, best_scores = largest_entries(scores, parameters.z)
        values = {"parts": np.stack([part[best] for part in parts], axis=1)}
        documents = BestDocuments.of(snapshot, best, best_scores, parameters.z, values)
        return _FirstDocuments(documents, np.stack([part[positive] for part in parts], axis=1))

    first = evidence.total(("first",), first_of)
    result = np.zeros(len(scores), np.float32)
    for part, weight, length in zip(parts, weights, first.lengths, strict=True):
        result += np.float32(weight) * (np.maximum(part, 0) / np.float32(length or 1))
    result = np.maximum(result, 0)
    return result if snapshot.live is None else result * snapshot.live.allowed
