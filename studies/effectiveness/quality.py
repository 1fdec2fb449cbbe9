"""What `quality` is worth: against relevance, and on queries that a collection cannot answer.

Of each collection: how well the quality of the first ten hits tells relevant ones from others
(AUC), how many of them are relevant by quality, and how often an answer is said not to fit: to the
collection's own queries, which is wrong, and to those of the three other collections, which is
right where these are about something else (cisi and cacm are both about computing).
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from klsa_search import Index, SearchResults
from studies.effectiveness.measuring import FOUR, Bench, Task, heading, percent, row

BOUNDS = (0.0, 0.3, 0.5, 0.7, 1.0)
HITS = 10


def report(bench: Bench, data: Path) -> dict[str, Any]:
    """Measure and print; JSON has the qualities and the shares."""
    tasks = [Task.of_target(name, data) for name in FOUR]
    found = {task.name: _of_task(bench.index(task, {}), task, tasks) for task in tasks}
    heading("", *FOUR)
    row("own queries that are said not to fit", *(_percent(found[n]["own_refused"]) for n in FOUR))
    row("others' queries that are", *(_percent(found[n]["others_refused"]) for n in FOUR))
    row("own from others', AUC", *(f"{found[n]['auc_of_answers']:.3f}" for n in FOUR))
    row("relevant hits from others, AUC", *(f"{found[n]['auc_of_hits']:.3f}" for n in FOUR))
    for at, (low, high) in enumerate(pairwise(BOUNDS)):
        shares = [found[name]["relevant"][at] for name in FOUR]
        row(f"hits of {low} to {high} that are relevant", *map(_percent, shares))
    return found


def _of_task(index: Index, task: Task, tasks: list[Task]) -> dict[str, Any]:
    relevant = {(one.query_id, one.document_id) for one in task.judgements if one.grade > 0}
    judged = {query for query, _ in relevant}
    own, others, qualities, labels = [], [], [], []
    for query in task.queries:
        answer = _asked(index, query.text)
        own.append(answer.quality)
        for hit in answer if query.id in judged else ():
            qualities.append(hit.quality)
            labels.append((query.id, hit.id) in relevant)
    for other in tasks:
        if other is not task:
            others += [_asked(index, query.text).quality for query in other.queries]
    mine, theirs = np.array(own), np.array(others)
    of_hits, held = np.array(qualities), np.array(labels)
    within = [held[(of_hits >= low) & (of_hits < high)] for low, high in pairwise(BOUNDS)]
    return {
        "own_refused": float((mine < 0.5).mean()),
        "others_refused": float((theirs < 0.5).mean()),
        "auc_of_answers": auc(mine, theirs),
        "auc_of_hits": auc(of_hits[held], of_hits[~held]),
        "relevant": [float(part.mean()) if len(part) else None for part in within],
        "hits": [len(part) for part in within],
    }


def _asked(index: Index, text: str) -> SearchResults:
    return index.search(text, HITS, quality=True)


def auc(upper: Any, lower: Any) -> float:
    """How often one of the upper is above one of the lower; equals count half."""
    ranks = rankdata(np.concatenate((upper, lower)))[: len(upper)]
    pairs = len(upper) * len(lower)
    return float((ranks.sum() - len(upper) * (len(upper) + 1) / 2) / pairs) if pairs else 0.5


def _percent(share: float | None) -> str:
    return "" if share is None else percent(share).removeprefix("+")
