"""Explanations of the scores of documents in one state of an index: words, vectors and rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from klsa_search.core.parameters import RankingSettings
from klsa_search.kernels.vector_space import ABSENT
from klsa_search.search.engine.engine import Exact
from klsa_search.search.engine.mask import Mask
from klsa_search.search.engine.top_docs import TopDocs
from klsa_search.search.explain.explainer import Explainer
from klsa_search.search.explain.explanation import (
    Explanation,
    PassagePart,
    UndividedScore,
    VectorPart,
)
from klsa_search.search.pages.planning import QueryPlan
from klsa_search.search.pages.results import Hit
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.ranking.vector_ranking import (
    QueryVector,
    VectorParts,
    vector_parts,
    with_vectors,
)
from klsa_search.search.state.passages import PassageSearcher
from klsa_search.search.state.state import State


def set_explanations(state: State, plan: QueryPlan, hits: Sequence[Hit], top: TopDocs) -> None:
    """Explain the scores of hits."""
    if plan.rules.boosts and top.before is not None:
        top = top.before
    vector = None
    if plan.vector is not None:
        rank = state.searcher.ranking(plan.parsed, plan.parameters)
        evidence = state.searcher.evidence
        vector = vector_parts(state.snapshot, plan.vector, rank, evidence=evidence)
    explanations = _explanations_of(state, plan.parsed, plan.parameters, top, vector)
    for hit, doc_id, explanation in zip(hits, top.doc_ids.tolist(), explanations, strict=True):
        if rules := plan.rules.effects(doc_id, explanation.score):
            explanation = replace(explanation, score=hit.score, rules=rules)
        hit.explanation = explanation


def explanation_of(
    state: State,
    parsed: ParsedQuery,
    parameters: RankingSettings,
    query_vector: QueryVector | None,
    doc_id: int,
) -> Explanation:
    """Return the explanation of the score of a document, even if operators exclude it.

    Of a document that does not match it is what its words would score.
    """
    parsed, vector = parsed._replace(mask=None), None
    rank = state.searcher.ranking(parsed, parameters)
    if query_vector is not None:
        evidence = state.searcher.evidence
        vector = vector_parts(state.snapshot, query_vector, rank, evidence=evidence)
        rank = with_vectors(rank, vector)
    top = rank(1, Mask(np.zeros(len(state.snapshot), np.bool_)).with_document(doc_id))
    if not len(top.doc_ids):
        by_words = _stages(top)[-1]
        exact = None if by_words.exact is None else np.full(1, Exact.ALL, np.uint8)
        top = TopDocs(np.full(1, doc_id), np.full(1, np.nan), 0, exact)
    (explanation,) = _explanations_of(state, parsed, parameters, top, vector)
    return explanation


def _stages(top: TopDocs) -> list[TopDocs]:
    """Return ranked documents with their scores, and with those before each change of them."""
    stages = [top]
    while stages[-1].before is not None:
        stages.append(stages[-1].before)
    return stages


def _explanations_of(
    state: State,
    parsed: ParsedQuery,
    parameters: RankingSettings,
    top: TopDocs,
    vector: VectorParts | None,
) -> Iterator[Explanation]:
    stages = _stages(top)
    passages = next((stage.passages for stage in stages if stage.passages is not None), None)
    explanations = _by_words(state, parsed, parameters, stages[-1])
    of_passages: Iterator[Explanation] = iter(())
    if passages is not None:
        assert isinstance(state.searcher, PassageSearcher)
        of = state.searcher.passages.state
        query, matching = state.searcher.of_passages(parsed), passages.at(passages.scores > 0)
        of_passages = _by_words(of, query, parameters, matching)
    for at, explanation in enumerate(explanations):
        if passages is not None and passages.scores[at] > 0:
            part, weight = next(of_passages), parameters.passage_weight
            passage = PassagePart(value=weight * part.score, weight=weight, explanation=part)
            explanation = replace(
                explanation, score=explanation.score + passage.value, passage=passage
            )
        if vector is not None:
            explanation = _with_vector_part(explanation, vector, int(top.doc_ids[at]))
        yield explanation


def _by_words(
    state: State, parsed: ParsedQuery, parameters: RankingSettings, top: TopDocs
) -> Iterator[Explanation]:
    """Yield explanations of the scores of documents by their own words."""
    if parsed.stop_scores is None:
        explainer = Explainer(state.searcher, state.documents, parsed.terms, parameters)
        yield from explainer.explanations(top)
        return
    ids, scores = state.documents.ids(top.doc_ids.tolist()), np.nan_to_num(top.scores)
    for id_, score in zip(ids, scores.tolist(), strict=True):
        yield Explanation(
            id=id_, score=score, ranker=parameters.ranker, bm25=0.0, alpha=None, lexical=None,
            undivided=UndividedScore(value=score),
        )  # fmt: skip


def _with_vector_part(explanation: Explanation, parts: VectorParts, doc_id: int) -> Explanation:
    cosine = float(parts.cosines[doc_id])
    part = VectorPart(
        value=float(parts.values[doc_id]),
        space=parts.space,
        cosine=None if cosine == ABSENT else cosine,
        deviations=float(parts.deviations[doc_id]),
    )
    return replace(explanation, score=explanation.score + part.value, vector=part)
