"""Order the first hits of a search by a reranker, such as a cross-encoder."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from klsa_search.collection.model import Document
from klsa_search.embedding.model import embedded_text
from klsa_search.errors import EmbedderFailed, QueryError
from klsa_search.search.pages.results import Hit, Reranked

if TYPE_CHECKING:
    from klsa_search.embedding.model import CheckedReranker

_MAX_CHARACTERS: Final = 8_000
"""Characters of a text that a reranker gets; models read some hundred words."""


class RerankedHits(NamedTuple):
    """Hits in their new order, and a warning if the reranker failed and they have the old one."""

    hits: tuple[Hit, ...]
    warnings: tuple[str, ...]


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


def rerank_hits(
    hits: tuple[Hit, ...],
    query: str,
    count: int,
    reranker: CheckedReranker,
    fixed: Collection[str],
    document_of: Callable[[str], Document],
) -> RerankedHits:
    """Order the first `count` hits by the scores of a reranker; equal ones keep their order.

    fixed        IDs whose hits keep their ranks: they come first by a rule, or by their ID
    document_of  returns the document of an ID
    The reranker gets the best passage of a hit, or the beginning of its text, with its title. If
    it fails, the hits stay as they are.
    """
    positions = [position for position, hit in enumerate(hits[:count]) if hit.id not in fixed]
    if not positions or not query.strip():
        return RerankedHits(hits, ())
    try:
        scores = reranker(query, [_text_of(hits[position], document_of) for position in positions])
    except EmbedderFailed as failure:
        return RerankedHits(hits, (f"the hits are not reranked: {failure.message}",))
    ordered = list(hits)
    order = sorted(range(len(positions)), key=lambda number: -scores[number])
    for position, number in zip(positions, order, strict=True):
        hit = hits[positions[number]]
        part = Reranked(score=scores[number], rank=hit.rank)
        ordered[position] = replace(hit, rank=hits[position].rank, rerank=part)
    return RerankedHits(tuple(ordered), ())


def _text_of(hit: Hit, document_of: Callable[[str], Document]) -> str:
    text = hit.text
    if text is None:
        full_text = document_of(hit.id).text
        text = full_text if hit.span is None else full_text[slice(*hit.span)]
    passage = Document(id=hit.id, title=hit.title, text=text)
    return embedded_text(passage)[:_MAX_CHARACTERS]
