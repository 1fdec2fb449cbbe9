"""Hits of ranked documents: titles, passages and optional parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from klsa_search.collection.mappings import value_at
from klsa_search.collection.searched_text import field_text
from klsa_search.collection.vectors import without_vectors
from klsa_search.core.array_types import DocIds, Scores
from klsa_search.core.deadlines import check_deadline
from klsa_search.core.parameters import SNIPPET
from klsa_search.search.engine.top_docs import TopDocs
from klsa_search.search.pages.hit_explanations import explained_hits
from klsa_search.search.pages.passage_hits import as_passages, best_passages_of, with_places
from klsa_search.search.pages.planning import QueryPlan
from klsa_search.search.pages.results import Hit, highlighted
from klsa_search.search.snippets import snippet
from klsa_search.search.state.passages import PassageSearcher
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
    length = plan.request.snippet_length
    if isinstance(state.searcher, PassageSearcher):
        best_passages = best_passages_of(state, state.searcher, plan, top.doc_ids, numbers, weights)
        snippets = best_passages.snippets
        hits = _hits_with(state, top.doc_ids.tolist(), top.scores, snippets, plan.offset)
        hits = with_places(state, best_passages, hits, top.doc_ids)
    else:
        hits = hits_of(state, top.doc_ids, top.scores, numbers, weights, plan.offset, length)
    if plan.request.highlight:
        names = state.snapshot.vocabulary.terms
        of_terms = {names[n]: weight for n, weight in zip(numbers, weights, strict=True)}
        hits = tuple(_add_highlights(state, plan, hit, of_terms) for hit in hits)
    if plan.request.quality:
        hits = _add_quality(state, plan, hits, top)
    if plan.request.explain and hits:
        hits = tuple(explained_hits(state, plan, hits, top))
    if plan.request.group == "passage":
        hits = as_passages(opened, hits, opened.passages)
    return hits


def _add_highlights(
    state: State,
    plan: QueryPlan,
    hit: Hit,
    weights: Mapping[str, float],
) -> Hit:
    """Return a hit with highlights of title, snippet, and a passage of each other field.

    weights  of the terms of the query
    """
    check_deadline()
    analyzer, length = state.info.analyzer, plan.request.snippet_length
    texts = {"title": hit.title, "snippet": hit.snippet}
    for name in state.snapshot.forward.fields.others:
        if text := field_text(value_at(hit.metadata, name)):
            texts[name] = snippet(text, weights, analyzer, weights=weights, length=length)
    highlights = {name: highlighted(text, weights, analyzer) for name, text in texts.items()}
    return replace(hit, highlight=highlights)


def _add_quality(
    state: State, plan: QueryPlan, hits: tuple[Hit, ...], top: TopDocs
) -> tuple[Hit, ...]:
    """Return hits with their qualities; without for a query without words."""
    synonyms = plan.parsed.synonyms
    query_terms = state.query_parser.known_terms(plan.parsed) - synonyms.added
    terms = query_terms.union(plan.interpretation.unknown)
    if not terms and plan.named is None:
        return hits
    qualities = state.quality.of(state.snapshot, terms, top.doc_ids, synonyms.of)
    if plan.named is not None:
        qualities = [
            1.0 if doc_id == plan.named else quality
            for doc_id, quality in zip(top.doc_ids.tolist(), qualities, strict=True)
        ]
    return tuple(replace(hit, quality=q) for hit, q in zip(hits, qualities, strict=True))


def hits_of(
    state: State,
    doc_ids: DocIds,
    scores: Scores,
    terms: Sequence[int],
    weights: Sequence[float],
    offset: int = 0,
    length: int = SNIPPET,
) -> tuple[Hit, ...]:
    """Return hits of ranked documents, in order. See `Index.hits`.

    terms, weights  as `StoredSnippets.of` takes them
    """
    ids = doc_ids.tolist()
    snippets = state.snippets.of(ids, terms, weights, length)
    return _hits_with(state, ids, scores, snippets, offset)


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
