"""The last step of a search: from hits to its results, reranked or within a number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from klsa_search.collection.model import Document
from klsa_search.embedding.model import embedded_text
from klsa_search.errors import EmbedderFailed, QueryError
from klsa_search.search.pages.facets import Facet
from klsa_search.search.pages.planning import QueryPlan
from klsa_search.search.pages.results import Hit, RerankScore, SearchResults
from klsa_search.search.query.interpretation import QueryInterpretation
from klsa_search.search.query.query import Query, estimated_tokens
from klsa_search.storage.passages import PassageId

if TYPE_CHECKING:
    from klsa_search.embedding.model import CheckedReranker

_MAX_CHARACTERS: Final = 8_000
"""Characters of a text that a reranker gets; models read some hundred words."""

_SHINGLE: Final = 5
"""Words of the sequences by which two passages are compared."""

_SAME: Final = 0.8
"""Share of their word sequences from which two passages repeat each other."""


def checked_rerank(
    rerank: int, reranker: CheckedReranker | None, *, is_sorted: bool
) -> CheckedReranker:
    """Return the reranker; QueryError if there is none, or the hits are sorted by fields."""
    if reranker is None:
        raise QueryError(
            f"rerank = {rerank}: the index was opened without a reranker; give one with "
            "--reranker, in Python open_index(..., reranker=...)",
            field="rerank",
        )
    if is_sorted:
        raise QueryError(
            "rerank: the hits are sorted by fields; leave out rerank or sort", field="rerank"
        )
    return reranker


def assemble_results(
    plan: QueryPlan,
    interpretation: QueryInterpretation,
    total: int,
    facets: Mapping[str, Facet],
    hits: tuple[Hit, ...],
    *,
    reranker: CheckedReranker | None,
    document_of: Callable[[str], Document],
) -> SearchResults:
    """Return the results of a search: its hits, reranked and limited in tokens if requested.

    interpretation  of the query, with the filters that it suggests
    total, facets  as `collect` returns them
    hits           as `fetch_hits` returns them
    document_of    returns a document of the index by ID
    """
    request, warnings = plan.request, plan.warnings
    if request.rerank is not None and reranker is not None:
        fixed = {pin.id for pin in plan.rules.pins.values()}
        if interpretation.id is not None:
            fixed.add(interpretation.id)
        hits, failed = _rerank_hits(hits, request, reranker, fixed, document_of)
        warnings += failed
        hits = hits[request.offset : request.offset + request.candidates]
    quality = None
    if request.quality:
        qualities = [hit.quality for hit in hits if hit.quality is not None]
        quality = max(
            qualities, default=0.0 if interpretation.words or interpretation.unknown else None
        )
    tokens = truncated = None
    if request.max_tokens is not None:

        @cache  # documents are long, and passages of one are compared repeatedly
        def text_of(id_: str) -> str:
            return document_of(id_).text

        hits, tokens, truncated = _within_budget(hits, request, request.max_tokens, text_of)
    return SearchResults(
        query=request.query,
        interpretation=interpretation,
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


def _rerank_hits(
    hits: tuple[Hit, ...],
    request: Query,
    reranker: CheckedReranker,
    fixed: Collection[str],
    document_of: Callable[[str], Document],
) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Order the first hits by the scores of a reranker; equal ones keep their order.

    fixed        IDs whose hits keep their ranks: they come first by a rule, or by their ID
    document_of  returns the document of an ID
    The reranker gets the best passage of a hit, or the beginning of its text, with its title. If
    it fails, the hits stay as they are, and a warning says so.
    """
    first = hits[: request.rerank]
    positions = [position for position, hit in enumerate(first) if hit.id not in fixed]
    if not positions or not request.query.strip():
        return hits, ()
    try:
        scores = reranker(
            request.query, [_text_of(hits[position], document_of) for position in positions]
        )
    except EmbedderFailed as failure:
        return hits, (f"the hits are not reranked: {failure.message}",)
    ordered = list(hits)
    order = sorted(range(len(positions)), key=lambda number: -scores[number])
    for position, number in zip(positions, order, strict=True):
        hit = hits[positions[number]]
        part = RerankScore(score=scores[number], rank=hit.rank)
        ordered[position] = replace(hit, rank=hits[position].rank, rerank=part)
    return tuple(ordered), ()


def _text_of(hit: Hit, document_of: Callable[[str], Document]) -> str:
    text = hit.text
    if text is None:
        full_text = document_of(hit.id).text
        text = full_text if hit.span is None else full_text[slice(*hit.span)]
    passage = Document(id=hit.id, title=hit.title, text=text)
    return embedded_text(passage)[:_MAX_CHARACTERS]


def _within_budget(
    hits: Sequence[Hit], request: Query, max_tokens: int, text_of: Callable[[str], str]
) -> tuple[tuple[Hit, ...], int, bool]:
    """Return the best passages within some tokens, their tokens, and whether others did not fit.

    At most k, in their order.

    hits     passages, best first
    text_of  returns the text of a document by ID
    A passage that repeats an earlier one is left out. A passage that does not fit is left out, and
    a later one may fit. Passages that follow each other in a document become one hit, with the rank
    of the better one. Cost: the texts of the hits and of their documents.
    """
    chosen: list[Hit] = []
    joined: list[Hit] = []
    tokens, truncated = 0, False
    seen: list[frozenset[tuple[str, ...]]] = []
    for hit in hits:
        shingles = _shingles(hit.text or "")
        if any(len(shingles & one) >= _SAME * min(len(shingles), len(one)) for one in seen):
            continue
        with_hit = _joined([*chosen, hit], text_of)
        if len(with_hit) > request.k:
            break
        size = sum(request.count_tokens(hit.text or "") for hit in with_hit)
        if size > max_tokens:
            truncated = True
            continue
        chosen.append(hit)
        seen.append(shingles)
        joined, tokens = with_hit, size
    ranked = tuple(replace(hit, rank=rank) for rank, hit in enumerate(joined, start=1))
    return ranked, tokens, truncated


def _joined(hits: Sequence[Hit], text_of: Callable[[str], str]) -> list[Hit]:
    """Return hits in which passages with nothing between them are one, by the best rank of each."""
    runs: list[list[Hit]] = []
    for hit in sorted(hits, key=lambda hit: (hit.document_id or "", hit.span or (0, 0))):
        previous = runs[-1][-1] if runs else None
        if previous is not None and previous.document_id == hit.document_id:
            end, begin = (previous.span or (0, 0))[1], (hit.span or (0, 0))[0]
            if not text_of(hit.document_id or "")[end:begin].strip():
                runs[-1].append(hit)
                continue
        runs.append([hit])
    return sorted((_one(run, text_of) for run in runs), key=lambda hit: hit.rank)


def _one(run: Sequence[Hit], text_of: Callable[[str], str]) -> Hit:
    """Return consecutive passages as one, with the score of the best."""
    best = min(run, key=lambda hit: hit.rank)
    if len(run) == 1:
        return best
    document_id = best.document_id or ""
    begin, end = (run[0].span or (0, 0))[0], (run[-1].span or (0, 0))[1]
    return replace(
        best,
        id=str(PassageId(document_id, begin, end)),
        span=(begin, end),
        page=run[0].page,
        heading=run[0].heading,
        text=text_of(document_id)[begin:end],
    )


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = text.lower().split()
    return frozenset(
        tuple(words[first : first + _SHINGLE]) for first in range(max(len(words) - _SHINGLE + 1, 1))
    )


def beginning(text: str, max_tokens: int) -> str:
    """Return the beginning of a text within an estimated number of tokens, to the end of a word.

    >>> from klsa_search.search.pages.assembly import beginning
    >>> beginning("Check the coolant hose.", 5)
    'Check the coolant'
    """
    if estimated_tokens(text) <= max_tokens:
        return text
    start = text.encode()[: 4 * max_tokens].decode(errors="ignore")
    if not text[len(start)].isspace():
        last = max(start.rfind(" "), start.rfind("\n"))
        start = start[:last] if last > 0 else start
    return start
