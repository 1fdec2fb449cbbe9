"""Merging the answers to several searches into one list of hits.

Scores of different indexes cannot be compared, so hits are merged by rank: hit r of a search with
weight w has the weighted score w / r. Searches with equal weights take turns; one with weight 2
contributes about two hits for each hit of the others. Pinned hits and hits that are sorted by
fields keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from klsa_search.service.schemas.search_requests import Federation


def merged(
    answers: Sequence[dict[str, Any]], weights: Sequence[float], page: Federation
) -> dict[str, Any]:
    """Return a `FederatedAnswer` from the `SearchAnswer` of each search, whose hits are removed.

    A document that several searches of one index find counts once, where it comes first. Equal
    weighted scores are in the order of the searches.
    """
    ranked = sorted(
        (-weight / hit["rank"], number, hit["rank"], hit)
        for number, (answer, weight) in enumerate(zip(answers, weights, strict=True))
        for hit in answer.pop("hits")
    )
    hits: dict[tuple[str, str], dict[str, Any]] = {}
    for negative, number, rank, hit in ranked:
        index = answers[number]["index"]
        origin = {"index": index, "query": number, "rank": rank, "weighted_score": -negative}
        hits.setdefault((index, hit["id"]), hit | {"federation": origin})
    listed = list(hits.values())[page.offset : page.last]
    return {
        "hits": [hit | {"rank": rank} for rank, hit in enumerate(listed, page.offset + 1)],
        "limit": page.limit,
        "offset": page.offset,
        "total": sum(answer["total"] for answer in answers),
        "results": [answer | {"hits": []} for answer in answers],
    }
