"""Hits of ranked documents: titles, passages and optional parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from klsa_search.collection.searched_text import field_text
from klsa_search.collection.vectors import without_vectors
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.config import SearchSettings
from klsa_search.core.deadlines import check_deadline
from klsa_search.kernels.vector_space import ABSENT
from klsa_search.search.collectors import unboosted_scores, vector_parts_of
from klsa_search.search.engine.workspace import TopDocs
from klsa_search.search.explain.explainer import Explainer
from klsa_search.search.explain.explanation import Explanation, PassagePart, VectorPart
from klsa_search.search.options import QueryPlan
from klsa_search.search.passage_hits import best_passages_of, with_places
from klsa_search.search.passage_searcher import PassageSearcher
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.results import Hit, highlighted
from klsa_search.search.snippets import LENGTH, snippet
from klsa_search.search.state import State
from klsa_search.search.vector_ranking import VectorParts
from klsa_search.storage.columns.values import as_number


def fetch_hits(state: State, plan: QueryPlan, top: TopDocs) -> tuple[tuple[Hit, ...], float | None]:
    """Return hits of the documents found, and the quality of the best one if requested."""
    check_deadline()
    terms = state.query_parser.known_terms(plan.parsed)
    weights = _weights(state, terms) if plan.highlight else None
    length = plan.snippet_length
    if isinstance(state.searcher, PassageSearcher):
        best_passages = best_passages_of(state, state.searcher, plan, top.doc_ids, terms, weights)
        snippets = best_passages.snippets
        hits = _hits_with(state, top.doc_ids, top.scores, snippets, plan.offset)
        hits = with_places(state, best_passages, hits, top.doc_ids)
    else:
        hits = hits_of(state, top.doc_ids, top.scores, terms, weights, plan.offset, length)
    best = None
    if plan.highlight:
        hits = tuple(_add_highlights(state, plan, hit, terms, weights) for hit in hits)
    if plan.quality:
        hits, best = _add_quality(state, plan, hits, top)
    if plan.explain and hits:
        hits = tuple(_explained(state, plan, hits, top))
    return hits, best


def _explained(state: State, plan: QueryPlan, hits: Sequence[Hit], top: TopDocs) -> Iterator[Hit]:
    """Yield hits with explanations of their scores."""
    parts = vector_parts_of(state, plan)
    by_words = unboosted_scores(state, plan, top, parts)
    if parts is not None:
        by_words = by_words - parts.values[top.doc_ids]
    explanations = explanations_of(
        state, plan.parsed, plan.parameters, plan.dimensions, top.doc_ids, by_words.tolist()
    )
    for hit, doc_id, explanation in zip(hits, top.doc_ids.tolist(), explanations, strict=True):
        if parts is not None:
            explanation = with_vector_part(explanation, parts, doc_id)
        if rules := plan.rules.effects(doc_id, explanation.score):
            explanation = replace(explanation, score=hit.score, rules=rules)
        yield replace(hit, explanation=explanation)


def with_vector_part(explanation: Explanation, parts: VectorParts, doc_id: int) -> Explanation:
    """Return the explanation of a score by words and vectors."""
    cosine = float(parts.cosines[doc_id])
    part = VectorPart(
        value=float(parts.values[doc_id]),
        space=parts.space,
        cosine=None if cosine == ABSENT else cosine,
        deviations=float(parts.deviations[doc_id]),
    )
    return replace(explanation, score=explanation.score + part.value, vector=part)


def explanations_of(
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
        state.snapshot, state.documents, numbers, parameters, dimensions, engine=use_klsa_engine
    )


def _add_highlights(
    state: State,
    plan: QueryPlan,
    hit: Hit,
    terms: Collection[str],
    weights: Mapping[str, float] | None,
) -> Hit:
    """Return a hit with highlights of title, snippet, and a passage of each other field."""
    check_deadline()
    analyzer, length = state.info.analyzer, plan.snippet_length
    texts = {"title": hit.title, "snippet": hit.snippet}
    for name in state.snapshot.forward.fields.others:
        if text := field_text(hit.metadata.get(name)):
            texts[name] = snippet(text, terms, analyzer, weights=weights, length=length)
    highlights = {name: highlighted(text, terms, analyzer) for name, text in texts.items()}
    return replace(hit, highlight=highlights)


def _add_quality(
    state: State, plan: QueryPlan, hits: tuple[Hit, ...], top: TopDocs
) -> tuple[tuple[Hit, ...], float | None]:
    """Return hits with their qualities, and the best; None for a query without words."""
    synonyms = plan.parsed.synonyms
    own = state.query_parser.known_terms(plan.parsed) - synonyms.added
    terms = own.union(plan.interpretation.unknown)
    if not terms and plan.named is None:
        return hits, None
    qualities = state.quality.of(state.snapshot, terms, top.doc_ids, synonyms.of)
    if plan.named is not None:
        qualities = [
            1.0 if doc_id == plan.named else quality
            for doc_id, quality in zip(top.doc_ids.tolist(), qualities, strict=True)
        ]
    hits_ = (replace(hit, quality=q) for hit, q in zip(hits, qualities, strict=True))
    return tuple(hits_), max(qualities, default=0.0)


def _weights(state: State, terms: Collection[str]) -> dict[str, float]:
    """Return the weights of terms in the ranking."""
    numbers, weights = state.snapshot.vocabulary.numbers, state.snapshot.query_kernel.term_weights
    return {term: float(weights[numbers[term]]) for term in terms if term in numbers}


def hits_of(
    state: State,
    doc_ids: DocIds,
    scores: Scores,
    terms: Collection[str],
    weights: Mapping[str, float] | None,
    offset: int = 0,
    length: int = LENGTH,
) -> tuple[Hit, ...]:
    """Return hits of ranked documents, in order. See `Index.hits`."""
    snippets = state.snippets.of(doc_ids, terms, weights=weights, length=length)
    return _hits_with(state, doc_ids, scores, snippets, offset)


def _hits_with(
    state: State, doc_ids: DocIds, scores: Scores, snippets: Sequence[str], offset: int
) -> tuple[Hit, ...]:
    """Return hits of ranked documents with these snippets, in order."""
    records = state.documents.records(doc_ids.tolist())
    numbers = [name for name, field in state.fields.items() if field.type == "number"]
    return tuple(
        Hit(
            rank=rank,
            id=record.id,
            score=score,
            title=record.title,
            snippet=snippet_,
            metadata=_parse_numbers(without_vectors(record.metadata), numbers),
        )
        for rank, (record, snippet_, score) in enumerate(
            zip(records, snippets, scores.tolist(), strict=True), start=offset + 1
        )
    )


def _parse_numbers(metadata: Mapping[str, Any], fields: Sequence[str]) -> Mapping[str, Any]:
    """Return metadata with numeric texts of number fields converted to numbers."""
    numbers_ = {name: as_number(metadata[name]) for name in fields if name in metadata}
    return {**metadata, **numbers_} if numbers_ else metadata
