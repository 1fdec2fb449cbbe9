"""Hits of passages, and the best passages of documents that were found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from klsa_search.collection.passages import SEPARATOR, page_of
from klsa_search.core.array_types import DocIds
from klsa_search.search.pages.planning import QueryPlan
from klsa_search.search.pages.results import Hit
from klsa_search.search.state.passage_searcher import PassageSearcher
from klsa_search.search.state.passages import PassageIndex
from klsa_search.search.state.state import State
from klsa_search.storage.documents import PassageId


class BestPassages(NamedTuple):
    """The best passages of documents, in their order.

    passages  in which the rows are
    rows      -1 for a document without a matching passage, as when only a filter matches
    counts    how many passages of each document match
    snippets  from the best passages, otherwise from the whole text
    """

    passages: PassageIndex
    rows: DocIds
    counts: DocIds
    snippets: list[str]


def best_passages_of(
    state: State,
    searcher: PassageSearcher,
    plan: QueryPlan,
    doc_ids: DocIds,
    terms: Sequence[int],
    weights: Sequence[float],
) -> BestPassages:
    """Return the best passages of documents that a search found.

    terms, weights  of the query, as `StoredSnippets.of` takes them
    """
    rows, counts = searcher.best_passages(plan.parsed, doc_ids, plan.parameters)
    names = [state.snapshot.vocabulary.terms[term] for term in terms]
    weights_of = dict(zip(names, weights, strict=False))
    snippets = [""] * len(doc_ids)
    for source, which, ids in (
        (searcher.passages.state, rows >= 0, rows),
        (state, rows < 0, doc_ids),
    ):
        numbers = source.snippets.numbered(names, weights_of)
        texts = source.snippets.of(ids[which].tolist(), *numbers, plan.request.snippet_length)
        for number, snippet in zip(np.flatnonzero(which).tolist(), texts, strict=True):
            snippets[number] = snippet
    return BestPassages(searcher.passages, rows, counts, snippets)


def set_places(
    state: State, best: BestPassages, hits: Sequence[Hit], doc_ids: Sequence[int]
) -> None:
    """Set the places of the best passages of documents."""
    for hit, doc_id, row, count in zip(
        hits, doc_ids, best.rows.tolist(), best.counts.tolist(), strict=True
    ):
        if row >= 0:
            _set_place(hit, hit.id, best.passages, row, state.documents.text(doc_id))
            hit.more_passages = count - 1


def set_passages(state: State, hits: Sequence[Hit]) -> None:
    """Set documents, texts and places of hits of passages.

    If the index has no passages, the hits are documents, and each is one passage.
    """
    passages = state.passages
    if passages is None:
        for hit in hits:
            _set_whole_text(state, hit)
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


def _set_whole_text(state: State, hit: Hit) -> None:
    """Make the hit of a document that of its only passage."""
    (doc_id,) = state.documents.doc_ids([hit.id])
    hit.text = text = state.documents.text(doc_id)
    hit.document_id, hit.span, hit.page = hit.id, (0, len(text)), page_of(text, 0)
    hit.id = str(PassageId(hit.id, 0, len(text)))


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
