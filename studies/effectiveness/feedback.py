"""How much relevance feedback on the first hits is worth.

Of the ten best of the default, up to two that are relevant are positive examples and up to two that
are not are negative ones. Measured on what is left of the ranking, without these documents
[residual collection, Chang, Cirillo & Razon 1971]; queries without positive examples, or with no
relevant documents left, are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from klsa_search import Index
from klsa_search.collection.model import Query
from studies.effectiveness.measuring import FOUR, Bench, Task, heading, percent, row

SEEN: Final = 10
"""Hits that are looked at."""
JUDGED: Final = 2
"""Of these, how many are positive and negative examples, at most."""


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print; JSON has every average precision."""
    found: dict[str, Any] = {}
    heading("residual MAP", "queries", "default", "with feedback", "change")
    for name in FOUR:
        task = Task.of_target(name, data)
        index = bench.index(task, {})
        relevant: dict[str, set[str]] = {}
        for judgement in task.judgements:
            if judgement.grade > 0:
                relevant.setdefault(judgement.query_id, set()).add(judgement.document_id)
        pairs = [
            pair
            for query in task.queries
            if (pair := _before_and_after(index, query, relevant.get(query.id, set())))
        ]
        before, after = np.array(pairs).T
        found[name] = {"default": before.tolist(), "feedback": after.tolist()}
        change = percent(after.mean() / before.mean() - 1)
        row(name, str(len(pairs)), f"{before.mean():.4f}", f"{after.mean():.4f}", change)
    return found


def _before_and_after(index: Index, query: Query, relevant: set[str]) -> tuple[float, float] | None:
    first = _ids(index, query.text)
    positive = [id_ for id_ in first[:SEEN] if id_ in relevant][:JUDGED]
    negative = [id_ for id_ in first[:SEEN] if id_ not in relevant][:JUDGED]
    judged = {*positive, *negative}
    left = relevant - judged
    if not positive or not left:
        return None
    moved = _ids(index, query.text, positive=positive, negative=negative)
    before, after = (
        average_precision([id_ for id_ in ids if id_ not in judged], left) for ids in (first, moved)
    )
    return before, after


def _ids(index: Index, text: str, **feedback: Any) -> list[str]:
    answer = index.search(text, len(index), operators=False, spelling="off", **feedback)
    return [hit.id for hit in answer.hits]


def average_precision(ranking: list[str], relevant: set[str]) -> float:
    """Mean of the precisions at the relevant documents; one that is not ranked counts 0."""
    places = [place for place, id_ in enumerate(ranking, start=1) if id_ in relevant]
    return sum(hit / place for hit, place in enumerate(places, start=1)) / len(relevant)
