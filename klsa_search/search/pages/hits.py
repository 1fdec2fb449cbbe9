"""Hits of ranked documents: titles, passages and optional parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from klsa_search.collection.field_paths import value_at
from klsa_search.collection.searched_text import field_text
from klsa_search.collection.vectors import without_vectors
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.deadlines import check_deadline
from klsa_search.search.engine.top_docs import TopDocs
from klsa_search.search.pages.hit_explanations import set_explanations
from klsa_search.search.pages.passage_hits import best_passages_of, set_passages, set_places
from klsa_search.search.pages.planning import QueryPlan
from klsa_search.search.pages.results import Highlight, Hit, highlighted
from klsa_search.search.snippets import snippet
from klsa_search.search.state.passage_searcher import PassageSearcher
from klsa_search.search.state.state import State


def fetch_hits(opened: State, state: State, plan: QueryPlan, top: TopDocs) -> tuple[Hit, ...]:
    """Return hits of the documents found.

    opened  state of the index
    state   that the search was executed on: see `plan_search`
    """
    check_deadline()
    numbers = [*{number for number in plan.parsed.terms if number >= 0}]
    weights: list[float] = []
    if plan.request.highlight:
        weights = state.snapshot.query_kernel.term_weights(numbers).tolist()
    doc_ids, length = top.doc_ids.tolist(), plan.request.snippet_length
    if isinstance(state.searcher, PassageSearcher):
        best = best_passages_of(state, state.searcher, plan, top.doc_ids, numbers, weights)
        hits = _hits_with(state, doc_ids, top.scores, best.snippets, plan.offset)
        set_places(state, best, hits, doc_ids)
    else:
        snippets = state.snippets.of(doc_ids, numbers, weights, length)
        hits = _hits_with(state, doc_ids, top.scores, snippets, plan.offset)
    if plan.request.highlight:
        names = state.snapshot.vocabulary.terms
        of_terms = {names[n]: weight for n, weight in zip(numbers, weights, strict=True)}
        for hit in hits:
            hit.highlight = _highlights(state, plan, hit, of_terms)
    if plan.request.quality:
        _set_qualities(state, plan, hits, top)
    if plan.request.explain and hits:
        set_explanations(state, plan, hits, top)
    if plan.request.group == "passage":
        set_passages(opened, hits)
    return hits


def _highlights(
    state: State,
    plan: QueryPlan,
    hit: Hit,
    weights: Mapping[str, float],
) -> dict[str, Highlight]:
    """Return highlights of title, snippet, and a passage of each other field.

    weights  of the terms of the query
    """
    check_deadline()
    analyzer, length = state.info.analyzer, plan.request.snippet_length
    texts = {"title": hit.title, "snippet": hit.snippet}
    for name in state.snapshot.forward.fields.others:
        if text := field_text(value_at(hit.metadata, name)):
            texts[name] = snippet(text, weights, analyzer, weights=weights, length=length)
    return {name: highlighted(text, weights, analyzer) for name, text in texts.items()}


def _set_qualities(state: State, plan: QueryPlan, hits: Sequence[Hit], top: TopDocs) -> None:
    """Set the qualities of hits; none for a query without words."""
    synonyms = plan.parsed.synonyms
    query_terms = state.query_parser.term_names(plan.parsed) - synonyms.added
    terms = query_terms.union(plan.interpretation.unknown)
    if not terms and plan.id_match is None:
        return
    qualities = state.quality.of(state.snapshot, terms, top.doc_ids, synonyms.of)
    for hit, doc_id, quality in zip(hits, top.doc_ids.tolist(), qualities, strict=True):
        hit.quality = 1.0 if doc_id == plan.id_match else quality


def hits_of(
    state: State, doc_ids: DocIds, scores: Scores, terms: Sequence[int], weights: Sequence[float]
) -> tuple[Hit, ...]:
    """Return hits of ranked documents, in order. See `Index.hits`.

    terms, weights  as `StoredSnippets.of` takes them
    """
    ids = doc_ids.tolist()
    return _hits_with(state, ids, scores, state.snippets.of(ids, terms, weights), 0)


def _hits_with(
    state: State, doc_ids: Sequence[int], scores: Scores, snippets: Sequence[str], offset: int
) -> tuple[Hit, ...]:
    """Return hits of ranked documents with these snippets, in order."""
    hits, rank = [], offset
    heads = state.documents.heads(doc_ids)
    for (id_, title, metadata), snippet_, score in zip(
        heads, snippets, scores.tolist(), strict=True
    ):
        rank += 1
        if metadata:
            metadata = state.fields.with_numbers(without_vectors(metadata))
        hits.append(Hit(rank, id_, score, title, snippet_, metadata))
    return tuple(hits)
