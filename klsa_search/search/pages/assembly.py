"""The last step of a search: from hits to its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from klsa_search.collection.model import Document
from klsa_search.search.pages.budget import within_budget
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.planning import QueryPlan
from klsa_search.search.pages.reranking import rerank_hits
from klsa_search.search.pages.results import Hit, SearchResults

if TYPE_CHECKING:
    from klsa_search.embedding.model import CheckedReranker


def assemble_results(
    plan: QueryPlan,
    total: int,
    facets: Mapping[str, Facet],
    hits: tuple[Hit, ...],
    *,
    reranker: CheckedReranker | None,
    document_of: Callable[[str], Document],
) -> SearchResults:
    """Return the results of a search: its hits, reranked and limited in tokens if requested.

    total, facets  as `collect` returns them
    hits           as `fetch_hits` returns them
    document_of    returns a document of the index by ID
    """
    request, warnings = plan.request, plan.warnings
    if request.rerank is not None and reranker is not None:
        fixed = {pin.id for pin in plan.rules.pins.values()}
        if plan.interpretation.id is not None:
            fixed.add(plan.interpretation.id)
        hits, failed = rerank_hits(
            hits, request.query, request.rerank, reranker, fixed, document_of
        )
        warnings += failed
        hits = hits[request.offset : request.offset + request.candidates]
    quality, said = None, plan.interpretation
    if request.quality:
        qualities = [hit.quality for hit in hits if hit.quality is not None]
        quality = max(qualities, default=0.0 if said.words or said.unknown else None)
    tokens = truncated = None
    if request.max_tokens is not None:

        @cache  # documents are long, and passages of one are compared repeatedly
        def text_of(id_: str) -> str:
            return document_of(id_).text

        hits, tokens, truncated = within_budget(
            hits, request.k, request.max_tokens, request.count_tokens, text_of
        )
    return SearchResults(
        query=request.query,
        interpretation=said,
        hits=hits,
        total=total,
        ranker=plan.parameters.ranker,
        parameters=plan.reported,
        offset=request.offset,
        facets=facets,
        quality=quality,
        tokens=tokens,
        truncated=truncated,
        rules=plan.rules.ids,
        warnings=warnings,
    )
