"""Explanations of the scores of documents in one state of an index: words, vectors and rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.core.deadlines import check_deadline
from klsa_search.kernels.vector_space import ABSENT
from klsa_search.search.engine.engine import ALL_CANDIDATES, TopDocs
from klsa_search.search.engine.mask import Mask
from klsa_search.search.explain.explainer import Explainer
from klsa_search.search.explain.explanation import Explanation, PassagePart, VectorPart
from klsa_search.search.passage_searcher import PassageSearcher
from klsa_search.search.planning import QueryPlan
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.ranking import Rank, scores_of
from klsa_search.search.results import Hit
from klsa_search.search.state import State
from klsa_search.search.vector_ranking import (
    QueryVector,
    VectorParts,
    vector_parts,
    with_vectors,
)


def explained_hits(
    state: State, plan: QueryPlan, hits: Sequence[Hit], top: TopDocs
) -> Iterator[Hit]:
    """Yield hits with explanations of their scores."""
    rank = state.searcher.ranking(plan.parsed, plan.parameters, plan.dimensions)
    parts = None
    if plan.vector is not None:
        parts = vector_parts(state.snapshot, plan.vector, rank)
        rank = with_vectors(rank, parts)
    scores = top.scores
    if plan.rules.boosts and plan.request.query.strip():
        scores = _unboosted_scores(rank, top.doc_ids, len(state.snapshot))
    if parts is not None:
        scores = scores - parts.values[top.doc_ids]
    explanations = _explanations_of(
        state, plan.parsed, plan.parameters, plan.dimensions, top.doc_ids, scores.tolist()
    )
    for hit, doc_id, explanation in zip(hits, top.doc_ids.tolist(), explanations, strict=True):
        if parts is not None:
            explanation = _with_vector_part(explanation, parts, doc_id)
        if rules := plan.rules.effects(doc_id, explanation.score):
            explanation = replace(explanation, score=hit.score, rules=rules)
        yield replace(hit, explanation=explanation)


def explanation_of(
    state: State,
    parsed: ParsedQuery,
    parameters: SearchSettings,
    dimensions: int,
    vector: QueryVector | None,
    doc_id: int,
) -> Explanation:
    """Return the explanation of the score of a document, even if operators exclude it."""
    parsed = parsed._replace(mask=None)
    rank = state.searcher.ranking(parsed, parameters, dimensions)
    alone = Mask(np.zeros(len(state.snapshot), np.bool_)).with_document(doc_id)
    scores: list[float | None] = rank(1, alone).scores.tolist() or [None]
    doc_ids = np.array([doc_id], np.int64)
    (explanation,) = _explanations_of(state, parsed, parameters, dimensions, doc_ids, scores)
    if vector is None:
        return explanation
    return _with_vector_part(explanation, vector_parts(state.snapshot, vector, rank), doc_id)


def _unboosted_scores(rank: Rank, doc_ids: DocIds, size: int) -> Scores:
    """Return the scores of documents of which boosts used those of a deep ranking."""

    def deep(k: int, mask: Mask | None) -> TopDocs:
        return rank(max(k, ALL_CANDIDATES), mask)

    return scores_of(deep, doc_ids, size)


def _with_vector_part(explanation: Explanation, parts: VectorParts, doc_id: int) -> Explanation:
    """Return the explanation of a score by words and vectors."""
    cosine = float(parts.cosines[doc_id])
    part = VectorPart(
        value=float(parts.values[doc_id]),
        space=parts.space,
        cosine=None if cosine == ABSENT else cosine,
        deviations=float(parts.deviations[doc_id]),
    )
    return replace(explanation, score=explanation.score + part.value, vector=part)


def _explanations_of(
    state: State,
    parsed: ParsedQuery,
    parameters: SearchSettings,
    dimensions: int,
    doc_ids: DocIds,
    scores: Sequence[float | None],
) -> Iterator[Explanation]:
    """Yield explanations of the scores of documents for a query."""
    explainer = _explainer_of(state, parsed, parameters, dimensions)
    searcher = state.searcher
    if not isinstance(searcher, PassageSearcher) or not searcher.uses_passages(parameters):
        for doc_id, score in zip(doc_ids.tolist(), scores, strict=True):
            check_deadline()
            yield explainer.of(doc_id, score)
        return
    own = searcher.own_scores(parsed, doc_ids, parameters, dimensions).tolist()
    rows, best, _ = searcher.best_passages(parsed, doc_ids, parameters)
    of_passages = searcher.passages.state
    explain_passage = _explainer_of(
        of_passages,
        searcher.of_passages(parsed),
        parameters,
        of_passages.parameters.dimensions(None, parameters),
    )
    for doc_id, score, own_score, row, passage_score in zip(
        doc_ids.tolist(), scores, own, rows.tolist(), best.tolist(), strict=True
    ):
        check_deadline()
        explanation = explainer.of(doc_id, own_score if score else score)
        if row >= 0 and score:
            passage = PassagePart(
                value=score - own_score,
                weight=parameters.passage_weight,
                explanation=explain_passage.of(row, passage_score),
            )
            explanation = replace(explanation, score=score, passage=passage)
        yield explanation


def _explainer_of(
    state: State, parsed: ParsedQuery, parameters: SearchSettings, dimensions: int
) -> Explainer:
    """Return an explainer for the scores of a query."""
    numbers = list(parsed.terms)
    use_klsa_engine = state.searcher.uses_klsa_engine(numbers, parameters)
    return Explainer(
        state.snapshot, state.documents, numbers, parameters, dimensions,
        engine=use_klsa_engine, shared=state.searcher.shared_seeds,
    )  # fmt: skip
