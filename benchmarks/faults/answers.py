"""Everything an index says, as a value to compare."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path
from typing import Any

from klsa_search import Index, open_index
from klsa_search.search.rankers import needs_eigenvectors

QUERIES = ("boat7 sail3", "bread1", "shared2 wing5 wing6", "nowhere")

Answers = dict[str, Any]
"""By what was asked: documents with their scores to the last bit, and the sum of all documents."""


def answers(path: Path, *, thoroughly: bool = False) -> Answers:
    """Everything an index says: what it ranks and every document it holds."""
    with closing(open_index(path)) as index:
        return answers_of(index, thoroughly=thoroughly)


def answers_of(index: Index, *, thoroughly: bool = False) -> Answers:
    """The same of an open index; `thoroughly` with every ranker, so that every array is read."""
    asked: list[dict[str, Any]] = [{}, {"ranker": "bm25"}]
    if thoroughly:
        asked.append({"exact": True})
    if thoroughly and needs_eigenvectors(index.settings):
        asked += [{"ranker": name} for name in ("lsi", "lsi-cosine", "rm3", "rocchio")]
        asked += [{"spectral": "exponential"}, {"alpha": 1.0, "dimensions": 2}]
    found: Answers = {}
    for parameters in asked:
        for query in QUERIES:
            results = index.search(query, 10, **parameters)
            hits = [(hit.id, hit.score.hex(), hit.title, hit.snippet) for hit in results]
            found[f"{query} {parameters}"] = (results.total, hits)
    ids = index.ids()
    held = [index.document(id) for id in ids]  # noqa: A001 - the field's own name
    found["documents"] = hashlib.sha256(repr([(ids, held)]).encode()).hexdigest()
    return found
