"""Hits of ranked documents or passages: titles, best passages, explanations and other parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from klsa_search.analysis.passages import SEPARATOR, page_of
from klsa_search.analysis.searched_text import field_text
from klsa_search.collection.field_paths import value_at
from klsa_search.collection.vectors import without_vectors
from klsa_search.core.array_types import Scores
from klsa_search.core.deadlines import check_deadline
from klsa_search.core.lazy import set_when_read
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
from klsa_search.search.pages.results import Highlight, Hit, highlighted
from klsa_search.search.query.parser import ParsedQuery
from klsa_search.search.ranking.vector_ranking import (
    QueryVector,
    VectorParts,
    vector_parts,
    with_vectors,
)
from klsa_search.search.snippets import snippet
from klsa_search.search.state.passages import PassageIndex, PassageSearcher
from klsa_search.search.state.state import State
from klsa_search.storage.documents import Record
from klsa_search.storage.passages import PassageId


def _with_best_passages(
    state: State,
    searcher: PassageSearcher,
    plan: QueryPlan,
    top: TopDocs,
    terms: Sequence[int],
    weights: Sequence[float],
) -> tuple[Hit, ...]:
    """Return hits with the places of their best passages.

    Snippets are of these; of the whole text if no passage matches, as when only a filter does.
    terms, weights  of the query, as `StoredSnippets.of` takes them
    """
    doc_ids, passages = top.doc_ids, searcher.passages
    rows, counts = searcher.best_passages(plan.parsed, doc_ids, plan.parameters)
    names = [state.snapshot.vocabulary.terms[term] for term in terms]
    weights_of = dict(zip(names, weights, strict=False))
    snippets = [""] * len(doc_ids)
    for source, which, ids in ((passages.state, rows >= 0, rows), (state, rows < 0, doc_ids)):
        numbers = source.snippets.numbered(names, weights_of)
        texts = source.snippets.of(ids[which].tolist(), *numbers, plan.request.snippet_length)
        for number, text in zip(np.flatnonzero(which).tolist(), texts, strict=True):
            snippets[number] = text
    hits = hits_of(state, doc_ids.tolist(), top.scores, snippets, plan.offset)
    for hit, doc_id, row, count in zip(
        hits, doc_ids.tolist(), rows.tolist(), counts.tolist(), strict=True
    ):
        if row >= 0:
            _set_place(hit, hit.id, passages, row, state.documents.text(doc_id))
            hit.more_passages = count - 1
    return hits


def _set_passages(state: State, hits: Sequence[Hit]) -> None:
    """Set documents, texts and places of hits of passages.

    If the index has no passages, the hits are documents, and each is one passage.
    """
    passages = state.passages
    if passages is None:
        for hit in hits:
            (doc_id,) = state.documents.doc_ids([hit.id])
            hit.text = text = state.documents.text(doc_id)
            hit.document_id, hit.span, hit.page = hit.id, (0, len(text)), page_of(text, 0)
            hit.id = str(PassageId(hit.id, 0, len(text)))
        return
    ids = [PassageId.of(hit.id) for hit in hits]
    documents = passages.state.documents
    rows = documents.doc_ids([hit.id for hit in hits])
    document_id: str | None = None
    title = text = ""
    # By document, because decoding a text of megabytes for each of its passages takes longer than
    # the search, and all texts at once take too much memory.
    for number in sorted(range(len(hits)), key=lambda number: ids[number].document_id):
        if ids[number].document_id != document_id:
            document_id = ids[number].document_id
            doc_ids = state.documents.doc_ids([document_id])
            (title,), text = state.documents.titles(doc_ids), state.documents.text(doc_ids[0])
        hit, row = hits[number], rows[number]
        hit.title, hit.text = title, documents.text(row)
        _set_place(hit, document_id, passages, row, text)


def place_of(hit: Hit) -> dict[str, Any]:
    """Return document, span, page and heading of a hit with `group="passage"`, as JSON has them."""
    return {
        "document_id": hit.document_id,
        "span": list(hit.span or ()),
        "page": hit.page,
        "heading": hit.heading or "",
    }


def _set_place(hit: Hit, document_id: str, passages: PassageIndex, row: int, text: str) -> None:
    """Set the place of a passage.

    hit   with the title of the document
    text  of the document
    """
    (record,) = passages.state.documents.records([row])
    passage = PassageId.of(record.id)
    hit.document_id, hit.span = document_id, (passage.begin, passage.end)
    hit.page = page_of(text, passage.begin)
    hit.heading = record.title.removeprefix(hit.title).removeprefix(SEPARATOR)


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
    if isinstance(state.searcher, PassageSearcher):
        hits = _with_best_passages(state, state.searcher, plan, top, numbers, weights)
    else:
        doc_ids = top.doc_ids.tolist()
        snippets = state.snippets.of(doc_ids, numbers, weights, plan.request.snippet_length)
        hits = hits_of(state, doc_ids, top.scores, snippets, plan.offset)
    if plan.request.highlight:
        names = state.snapshot.vocabulary.terms
        of_terms = {names[n]: weight for n, weight in zip(numbers, weights, strict=True)}
        for hit in hits:
            hit.highlight = _highlights(state, plan, hit, of_terms)
    if plan.request.quality:
        _set_qualities(state, plan, hits, top)
    if plan.request.explain and hits:
        _set_explanations(state, plan, hits, top)
    if plan.request.group == "passage":
        _set_passages(opened, hits)
    return hits


def _highlights(
    state: State, plan: QueryPlan, hit: Hit, weights: Mapping[str, float]
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
    state: State, doc_ids: Sequence[int], scores: Scores, snippets: Sequence[str], offset: int = 0
) -> tuple[Hit, ...]:
    """Return hits of documents, in order, of which `offset` come before."""
    hits, rank = [], offset
    heads = state.documents.heads(doc_ids)
    for head, snippet_, score in zip(heads, snippets, scores.tolist(), strict=True):
        rank += 1
        id_, title, metadata = head
        hit = Hit(rank, id_, score, title, snippet_, {})
        if metadata:
            set_when_read(hit, "metadata", partial(_shown, state, head))
        hits.append(hit)
    return tuple(hits)


def _shown(state: State, head: tuple[str, str, str]) -> Record:
    """Return a record as answers show it: its metadata without vectors, and with numbers."""
    record = state.documents.record(*head)
    return record._replace(metadata=state.fields.with_numbers(without_vectors(record.metadata)))


def _set_explanations(state: State, plan: QueryPlan, hits: Sequence[Hit], top: TopDocs) -> None:
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
            doc_id = int(top.doc_ids[at])
            cosine = float(vector.cosines[doc_id])
            of_vector = VectorPart(
                value=float(vector.values[doc_id]),
                space=vector.space,
                cosine=None if cosine == ABSENT else cosine,
                deviations=float(vector.deviations[doc_id]),
            )
            score = explanation.score + of_vector.value
            explanation = replace(explanation, score=score, vector=of_vector)
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
